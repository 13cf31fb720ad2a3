"""The page in a real browser: opened from disk, at two widths, by keyboard alone, and without a word to any network."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from murmur_page.frozen import write_page
from murmur_page.recorded import recorded
from murmur_pubsub.journal_rows import read_segment
from murmur_pubsub.run_manifest import read_manifest
from murmuration.harness.cluster import Cluster
from murmuration.live.background import page_server
from murmuration.runs.driver import execute
from murmuration.runs.hands import SAVED
from murmuration.scenario.load import load_scenario
from tests.page.asked import Growing
from tests.page.browser import browser
from tests.page.played import Played, click, is_ready, press, requested, said, until

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which b1 of five brokers is killed after 1 s and comes back after 2 s."""
    folder = tmp_path_factory.mktemp("page")
    with Cluster.start(overlay={"kind": "chain", "brokers": 5}, links={"delay": "2 ms"}, folder=folder / "run") as it:
        it.clients["c4"].subscribe("price > 10")
        it.settle()
        for number in range(60):
            if number == 20:
                it.faults.kill("b1")
            if number == 40:
                it.faults.restart("b1")
            it.clients["c0"].publish({"price": number})
            it.advance("50 ms")
    path = folder / "page.html"
    write_page(path, recorded(folder / "run"))
    return path


@pytest.fixture(scope="module", params=[(1280, 900), (400, 800)], ids=["wide", "narrow"])
def window(request: pytest.FixtureRequest) -> Iterator[Any]:
    with browser(*request.param) as driver:
        yield driver


@pytest.fixture
def opened(page: Path, window: Any) -> Any:
    window.get("about:blank")
    window.get(page.as_uri())
    until(lambda: is_ready(window))
    return window


def test_a_run_is_watched_while_it_goes_on(tmp_path: Path) -> None:
    """A kill is on the page a moment after it was done, and the page says when the run is over."""
    from selenium.webdriver.common.keys import Keys

    with (
        Cluster.start(overlay={"kind": "chain", "brokers": 3}, folder=tmp_path / "runs" / "chain") as cluster,
        page_server(tmp_path / "runs") as server,
        browser(1280, 800) as driver,
    ):
        cluster.settle()
        driver.get(server.link(cluster.folder))
        until(lambda: is_ready(driver) and "3 of 3 brokers up" in said(driver))
        cluster.clients["c0"].publish({"price": 1})
        cluster.advance("10 ms")
        press(driver, "/", "0:0", Keys.ENTER)
        way = "return document.querySelector('[data-live=way]').textContent"
        until(lambda: "The way of event 0:0" in driver.execute_script(way))
        cluster.faults.kill("b1")
        cluster.advance("10 ms")
        driver.execute_script("document.activeElement.blur()")
        press(driver, Keys.END)
        until(lambda: "2 of 3 brokers up; b1 down" in said(driver))
        assert driver.current_url.endswith("/run/chain/"), "the token is not in the address"
        cluster.faults.restart("b1")
        cluster.end()
        until(lambda: driver.execute_script("return !document.querySelector('.live').page.live"))
        assert "3 of 3 brokers up" in said(driver)
        assert [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_what_ends_the_watching_of_a_run_is_said_on_its_page(tmp_path: Path) -> None:
    growing = Growing(tmp_path / "runs")
    growing.publish(3)
    with page_server(tmp_path / "runs") as server, browser(1280, 800) as driver:
        driver.get(server.link(growing.built.folder))
        until(lambda: is_ready(driver))
        (growing.built.folder / "journal").rename(tmp_path / "away")
        note = "return document.querySelector('[data-live=note]').textContent"
        until(lambda: "This run cannot be shown: " in driver.execute_script(note))
        until(lambda: driver.execute_script("return document.querySelector('.live').watching.socket.readyState") == 3)
        assert "journal" in driver.execute_script(note)


@pytest.mark.slow
def test_a_broker_is_killed_by_hand_and_the_saved_scenario_does_it_again(tmp_path: Path) -> None:
    """By click and by key: killed, seen dead, restarted, a link cut in words, finished, saved, played again."""
    from selenium.webdriver.common.keys import Keys

    played = Played(tmp_path / "runs" / "hands")
    with page_server(tmp_path / "runs") as server, browser(1280, 900) as driver:
        played.steered_from(server)
        driver.get(server.link(played.folder))
        until(lambda: is_ready(driver) and "5 of 5 brokers up" in said(driver))
        click(driver, "Let time pass")
        until(lambda: driver.execute_script("return document.querySelector('.live').page.us") > 300_000)
        driver.execute_script("document.querySelector('.live').page.select(1)")
        click(driver, "Kill b1 (k)")
        until(lambda: "4 of 5 brokers up; b1 down" in said(driver))
        press(driver, "r")
        until(lambda: "5 of 5 brokers up" in said(driver))
        words = driver.find_element("css selector", "[aria-label='order in words']")
        words.send_keys("cut b2 b3", Keys.ENTER)
        until(lambda: "1 link cut" in said(driver))
        words.send_keys("cut b2 b3", Keys.ENTER)
        until(
            lambda: "Not done" in driver.execute_script("return document.querySelector('[data-live=note]').textContent")
        )
        note = "return document.querySelector('[data-live=note]').textContent"
        story = "return document.querySelector('[data-live=told]').textContent"
        driver.execute_script("document.activeElement.blur()")
        press(driver, "i")
        inside = "return document.querySelector('[data-live=state]').textContent"
        until(lambda: "Inside b1 at " in driver.execute_script(inside))
        assert "Its incarnation 1 after " in driver.execute_script(inside)
        press(driver, "f")
        until(lambda: words.get_attribute("value").startswith("subscribe c1 "))
        words.send_keys(Keys.ENTER)
        until(lambda: "by hand: subscribe at c1: " in driver.execute_script(story))
        driver.execute_script("document.activeElement.blur()")
        press(driver, "t")
        until(lambda: words.get_attribute("value").startswith("unsubscribe c1 "))
        words.send_keys(Keys.ENTER)
        until(lambda: "by hand: unsubscribe at c1: " in driver.execute_script(story))
        words.send_keys("publish c0 a0 = somewhere", Keys.ENTER)
        until(lambda: "Texts are in quotes" in driver.execute_script(note))
        words.clear()
        words.send_keys("publish c0 a0 = 1, by = 'my hand', up=true", Keys.ENTER)
        until(lambda: "publish at c0: a0 = 1, by = 'my hand', up = True" in driver.execute_script(story))
        driver.execute_script("document.querySelector('.live').page.hands.post({speed: 100})")
        click(driver, "Finish: no more orders")
        played.join(60)
        assert not played.is_alive()
        until(lambda: driver.execute_script("return !document.querySelector('.live').page.live"))
        assert "by hand: kill b1" in driver.execute_script(story)
        assert [
            entry for entry in driver.get_log("browser") if "409" not in entry["message"] and entry["level"] == "SEVERE"
        ] == []
    again = execute(load_scenario(played.folder / SAVED), tmp_path / "again", lambda *_: None).folder
    texts = [[fault.text for fault in read_manifest(run).faults] for run in (played.folder, again)]
    assert texts[0] == texts[1]
    assert [text.split(":")[0] for text in texts[0]] == [
        "kill b1", "restart b1", "cut b2-b3", "subscribe at c1", "unsubscribe at c1", "publish at c0",
    ]  # fmt: skip
    rows = [read_segment(next((run / "journal").glob("*.seg")))[1].tobytes() for run in (played.folder, again)]
    assert rows[0] == rows[1]


def test_the_bar_of_an_order_ends(tmp_path: Path) -> None:
    chain = {"kind": "chain", "brokers": 3}
    with Cluster.start(chain, routing="cells", reliability="durable", folder=tmp_path / "run") as cluster:
        cluster.settle()
        cluster.faults.order("forget", "b0", "b2")
        cluster.faults.kill("b1")
        cluster.settle()
    write_page(tmp_path / "page.html", recorded(tmp_path / "run"))
    with browser(1280, 800) as driver:
        driver.get((tmp_path / "page.html").as_uri())
        until(lambda: is_ready(driver))
        faults = driver.execute_script("return document.querySelector('.live').page.run.faults")
    order, kill = faults
    assert order["until"] == order["from"]
    assert kill["until"] is None


def drawn_colours(driver: Any, name: str) -> int:
    """How many different colours are on that canvas."""
    return int(
        driver.execute_script(
            "const canvas = document.querySelector(`[data-live=${arguments[0]}]`);"
            "const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;"
            "return new Set(new Uint32Array(data.buffer)).size",
            name,
        )
    )


def test_it_is_drawn_fits_its_window_and_asks_for_nothing(opened: Any) -> None:
    until(lambda: drawn_colours(opened, "overlay") > 20 and drawn_colours(opened, "course") > 20)
    wide, window = opened.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert wide <= window, "nothing hangs over to the right"
    asked = requested(opened)
    assert [url for url in asked if not url.startswith(("file:", "blob:", "data:"))] == []
    assert [entry for entry in opened.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_its_frames_are_those_of_the_run(opened: Any, page: Path) -> None:
    found = opened.execute_script("return document.querySelector('.live').page.run.frames")
    frames = recorded(page.parent / "run")["frames"]
    for frame in (*found, *frames):
        for part in ("m", "a", "d"):
            frame.get(part, []).sort()
    assert found == frames


def test_it_opens_in_the_first_fault_and_says_so_in_words(opened: Any) -> None:
    assert "4 of 5 brokers up; b1 down" in said(opened)


def test_everything_is_reached_by_keyboard_alone(opened: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    press(opened, Keys.HOME)
    assert said(opened).startswith("0.000 s")
    press(opened, Keys.END)
    assert "5 of 5 brokers up" in said(opened)
    press(opened, Keys.ARROW_LEFT, "n")
    under = "return document.querySelector('[data-live=under] h3').textContent"
    assert opened.execute_script(under) == "b0"
    press(opened, "n", "n")
    assert opened.execute_script(under) == "b2"
    press(opened, "/", "c4", Keys.ENTER)
    assert opened.execute_script(under) == "b4"
    press(opened, Keys.TAB)
    opened.execute_script("document.activeElement.blur()")
    press(opened, Keys.HOME, " ")
    until(lambda: not said(opened).startswith("0.000 s"))
    press(opened, "?")
    assert opened.execute_script("return document.querySelector('[data-live=help]').open")


def test_a_moment_is_gone_to_by_the_slider_and_the_curves(opened: Any) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    opened.execute_script(
        "const slider = document.querySelector('[data-live=slider]'); slider.value = 200;"
        "slider.dispatchEvent(new Event('input'))"
    )
    assert "5 of 5 brokers up" in said(opened)
    course = opened.find_element("css selector", "[data-live=course]")
    ActionChains(opened).move_to_element(course).click().perform()
    assert "b1 down" in said(opened)


def test_what_cannot_be_found_is_said(opened: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    press(opened, "/", "b77", Keys.ENTER)
    note = "return document.querySelector('[data-live=note]').textContent"
    assert "There is no b77" in opened.execute_script(note)
    press(opened, Keys.ESCAPE, "n", "i")
    assert "murmur run --keep-inputs" in opened.execute_script(note)
    opened.execute_script("document.querySelector('.live').page.run.head.inputs = true")
    opened.find_element("css selector", "[data-live=open]").click()
    assert "murmur replay run --node b0 --at '" in opened.execute_script(note)


def test_colours_stand_for_what_is_chosen(opened: Any) -> None:
    legend = "return document.querySelector('[data-live=legend]').firstChild.textContent"
    assert "messages received: 0 to " in opened.execute_script(legend)
    press(opened, "m")
    assert "messages on their way to it: 0 to " in opened.execute_script(legend)
    choice = opened.find_element("css selector", "[data-live=metric]")
    assert choice.get_attribute("selectedIndex") == "1"
    opened.execute_script("arguments[0].selectedIndex = 2; arguments[0].dispatchEvent(new Event('change'))", choice)
    assert "deliveries to its clients: 0 to " in opened.execute_script(legend)


def test_the_table_says_what_the_picture_shows(opened: Any) -> None:
    opened.execute_script("document.querySelector('[data-live=table]').parentElement.open = true")
    rows = "return [...document.querySelectorAll('[data-live=table] tbody tr')].map((row) => row.textContent)"
    until(lambda: len(opened.execute_script(rows)) == 5)
    assert [row.startswith("b1down") for row in opened.execute_script(rows)] == [False, True, False, False, False]
