"""The figures of a report in a real browser: what the pointer and the arrow keys have them say, at two widths."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

from spark_analysis import plots
from spark_analysis.charts import Axis
from spark_analysis.report import figure_script, fill_template
from tests.page.browser import browser

_PAGE = """<!DOCTYPE html><meta http-equiv="Content-Security-Policy" content="{{ policy }}">
<style>{% include "style.css" %}</style>
<main>{% for each in figures %}<figure>{{ each|safe }}</figure>{% endfor %}</main>
<script>{{ script|safe }}</script>"""


def figures() -> list[str]:
    """A course of ten seconds in which b1 was down from 4 to 6 s, a CDF, and an overlay of three."""
    seconds = [1_000_000 * each for each in range(10)]
    traffic = pd.DataFrame(
        {"bucket_us": seconds, "published": 7, "delivered": [40 + each for each in range(10)], "sent": 0}
    )
    rates = pd.DataFrame({"bucket_us": seconds, "delivery_rate": [0.5 if each == 4 else 1.0 for each in range(10)]})
    phases = pd.DataFrame({"phase": ["publishing", "draining"], "begin_us": [0, 9_000_000]})
    faults = pd.DataFrame({"fault": ["kill b1 (step 0)"], "from_us": [4_000_000], "until_us": [5_900_000]})
    cdf = pd.DataFrame({"delay_us": [1_000, 2_000, 4_000], "share": [0.25, 0.5, 1.0]})
    brokers = pd.DataFrame({"name": ["b0", "b1", "b2"], "load": [0.1, 0.2, 0.9]})
    made = [
        plots.course(traffic, rates, phases, faults, {"bucket_us": 1_000_000, "last_us": 9_900_000}),
        plots.delay_cdf(cdf, {"p50_us": 2_000, "p99_us": 4_000}, "delivery delay"),
        plots.overlay_graph(["b0", "b1", "b2"], [("b0", "b1"), ("b1", "b2")], brokers),
    ]
    return [each for each in made if each is not None]


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("figures")
    (folder / "page.j2").write_text(_PAGE)
    page = folder / "page.html"
    page.write_text(fill_template("page.j2", folder, figures=figures(), **figure_script()))
    with browser(1280, 900) as opened:
        opened.get(page.as_uri())
        yield opened


@pytest.fixture(params=[1280, 400])
def opened(driver: Any, request: pytest.FixtureRequest) -> Any:
    metrics = {"width": request.param, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    return driver


def pointed_at(driver: Any, figure: int, across: float, down: float = 0.5) -> str:
    """What the figure says with the pointer over that part of its first panel."""
    from selenium.webdriver.common.action_chains import ActionChains

    panel = driver.find_elements("css selector", ".chart")[figure].find_element("css selector", ".panel")
    x, y = round((across - 0.5) * panel.size["width"]), round((down - 0.5) * panel.size["height"])
    ActionChains(driver).move_to_element_with_offset(panel, x, y).perform()
    return said(driver, figure)


def said(driver: Any, figure: int) -> str:
    return str(driver.find_elements("css selector", ".chart .tip")[figure].text)


@pytest.mark.browser
@pytest.mark.slow
def test_the_pointer_has_values_and_their_time_said(opened: Any) -> None:
    assert pointed_at(opened, 0, 0.45).split("\n") == [
        "4.000 to 5.000 s", "publications: 7\u202f/s", "deliveries: 44\u202f/s", "delivery rate: 50.00\u202f%",
        "in force: kill b1 (step 0)",
    ]  # fmt: skip
    assert "in force" not in pointed_at(opened, 0, 0.75)
    assert pointed_at(opened, 1, 0.48) == "2\u202fms\nno later: 50.00\u202f%"
    assert pointed_at(opened, 2, 0.95) == "b2\nload: 90.00\u202f%"
    assert said(opened, 1) == "", "one that the pointer has left says nothing"
    wide, window = opened.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert wide <= window, "nothing hangs over to the right"
    assert [entry for entry in opened.get_log("browser") if entry["level"] == "SEVERE"] == []


@pytest.mark.browser
@pytest.mark.slow
def test_arrow_keys_read_a_figure(opened: Any) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    opened.execute_script("document.querySelectorAll('.chart')[1].focus()")
    for key, words in (
        (Keys.ARROW_RIGHT, "1\u202fms"), (Keys.ARROW_RIGHT, "2\u202fms"), (Keys.END, "4\u202fms"),
        (Keys.ARROW_RIGHT, "4\u202fms"), (Keys.HOME, "1\u202fms"), (Keys.ESCAPE, ""),
    ):  # fmt: skip
        ActionChains(opened).send_keys(key).perform()
        assert said(opened, 1).split("\n")[0] == words


def test_marks_are_round_and_within_the_axis() -> None:
    assert [mark for mark, _ in Axis.of(0, 7.3, "").marks] == [0, 2, 4, 6]
    assert [mark for mark, _ in Axis.of(-0.6, 3.6, "", whole=True).marks] == [0, 1, 2, 3]
    assert [words for _, words in Axis.of_powers(0.4, 2_000, "").marks] == ["1", "10", "100", "1,000"]


def test_values_beyond_an_end_are_drawn_at_it() -> None:
    assert Axis.of(10, 20, "").places([0, 10, 15, 99]).tolist() == [0, 0, 0.5, 1]
    assert Axis.of_powers(1, 100, "").places([0, 1, 10, 1_000]).tolist() == [0, 0, 0.5, 1]


def test_a_name_in_a_run_cannot_become_markup() -> None:
    brokers = pd.DataFrame({"name": ["<b>", "'\""], "load": [0.1, 0.2]})
    made = plots.overlay_graph(["<b>", "'\""], [("<b>", "'\"")], brokers)
    assert made is not None
    assert "<b>" not in made
    assert made.count("'") == 0
