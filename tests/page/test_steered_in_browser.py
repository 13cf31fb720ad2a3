"""Hands on a run in a real browser: a partition by a lasso, and a page that was asleep or cut off meanwhile."""

from pathlib import Path
from typing import Any

import pytest

from murmur_pubsub.run_manifest import read_manifest
from murmuration.harness.cluster import Cluster
from murmuration.live.background import page_server
from tests.page.browser import browser
from tests.page.played import Played, click, is_ready, press, said, told, until

pytestmark = [pytest.mark.browser, pytest.mark.slow]
_PLACES = """
const { overlay, run } = document.querySelector('.live').page;
return run.brokers.map((node) => overlay.at(node).slice(0, 2).map(Math.round));
"""


_GATHERED = "return [...document.querySelector('.live').page.overlay.gathered].sort()"


def circled(driver: Any, brokers: list[int]) -> bool:
    """Draw a lasso around these brokers, with shift and the pointer; True: it has them. The canvas may find its size
    while the pointer is on its way."""
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    places = [driver.execute_script(_PLACES)[number] for number in brokers]
    left, right = min(x for x, _ in places) - 22, max(x for x, _ in places) + 22
    top, bottom = min(y for _, y in places) - 22, max(y for _, y in places) + 22
    canvas = driver.find_element("css selector", "[data-live=overlay]")
    middle_x, middle_y = canvas.size["width"] // 2, canvas.size["height"] // 2
    corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
    acts = ActionChains(driver).key_down(Keys.SHIFT)
    for number, (x, y) in enumerate(corners):
        acts.move_to_element_with_offset(canvas, x - middle_x, y - middle_y)
        if number == 0:
            acts.click_and_hold()
    acts.release().key_up(Keys.SHIFT).perform()
    return bool(driver.execute_script(_GATHERED) == brokers)


def test_brokers_that_were_circled_are_cut_off_and_united_by_one_key_each(tmp_path: Path) -> None:
    played = Played(tmp_path / "runs" / "hands")
    with page_server(tmp_path / "runs") as server, browser(1280, 900) as driver:
        played.steered_from(server)
        driver.get(server.link(played.folder))
        until(lambda: is_ready(driver) and "5 of 5 brokers up" in said(driver))
        until(lambda: circled(driver, [0, 1]))
        press(driver, "x")
        until(lambda: "1 link cut" in said(driver))
        assert "by hand: partition of b0,b1,c0,c1 | b2, b3, b4 and 3 more" in told(driver)
        press(driver, "u")
        until(lambda: "link cut" not in said(driver))
        driver.execute_script("document.querySelector('.live').page.hands.post({speed: 100})")
        click(driver, "Let time pass")
        click(driver, "Finish: no more orders")
        played.join(60)
    assert [(each.text.split(" ")[0], each.by_hand) for each in read_manifest(played.folder).faults] == [
        ("partition", True), ("unite", True),
    ]  # fmt: skip


def test_a_page_that_slept_or_lost_its_connection_shows_what_happened_meanwhile(tmp_path: Path) -> None:
    """An hour of emulated time passes while the page is frozen, as in a laptop that was closed; then its connection is
    lost. It joins again by itself, and its picture is that of a page opened then."""
    with (
        Cluster.start(overlay={"kind": "chain", "brokers": 3}, folder=tmp_path / "runs" / "chain") as cluster,
        page_server(tmp_path / "runs") as server,
        browser(1280, 800) as driver,
    ):
        cluster.settle()
        driver.get(server.link(cluster.folder))
        until(lambda: is_ready(driver) and "3 of 3 brokers up" in said(driver))
        driver.execute_cdp_cmd("Page.setWebLifecycleState", {"state": "frozen"})
        cluster.faults.kill("b1")
        cluster.advance("1 h")
        driver.execute_cdp_cmd("Page.setWebLifecycleState", {"state": "active"})
        until(lambda: "2 of 3 brokers up; b1 down" in said(driver))
        driver.execute_script("document.querySelector('.live').watching.socket.close()")
        cluster.faults.restart("b1")
        cluster.advance("1 s")
        until(lambda: "3 of 3 brokers up" in said(driver))
        shown = driver.execute_script("return document.querySelector('.live').page.run.endUs")
        assert shown >= 3_600_000_000
        assert "restart b1" in told(driver)
