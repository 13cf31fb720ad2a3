"""The lessons in a real browser, from a static server, without any other network."""

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.keys import Keys

from murmuration.lessons.folder import size_of
from murmuration.lessons.lessons import LESSONS
from murmuration.lessons.own_router import STARTER
from murmuration.lessons.witnesses import journal_hash, pairs
from murmuration.runs.driver import execute
from murmuration.scenario.load import load_scenario
from murmuration.version import own_version
from tests.lessons.served import built, served
from tests.page.browser import browser
from tests.page.played import click, requested, said, told, until

pytestmark = [pytest.mark.browser, pytest.mark.slow]
_SIZE_MAX = 15_000_000
_OUTSIDE = """
const { overlay, run } = document.querySelector('section.live').page;
const inside = (node) => overlay.at(node)[0] > 0 && overlay.at(node)[0] < overlay.width
  && overlay.at(node)[1] > 0 && overlay.at(node)[1] < overlay.height;
return run.brokers.filter((node) => !inside(node)).map((node) => node.name);
"""
"""The brokers that the picture leaves out."""


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("lessons"))


@pytest.fixture(scope="module")
def address(play: Path) -> Iterator[str]:
    with served(play) as found:
        yield found


@pytest.fixture(scope="module")
def window() -> Iterator[Any]:
    """A browser for all tests: the page loads Python once, and goes from lesson to lesson by its address."""
    with browser(1280, 900) as driver:
        yield driver


def test_the_folder_is_small(play: Path) -> None:
    assert 5_000_000 < size_of(play) < _SIZE_MAX


def ready(driver: Any) -> None:
    """Wait until the picture of the lesson is there."""
    until(lambda: driver.execute_script("return 'ready' in document.querySelector('section.live').dataset"), 120)


def task(driver: Any) -> str:
    return str(driver.execute_script("return document.querySelector('[data-lessons=task]').innerText"))


def shows(driver: Any, title: str) -> bool:
    """Is the lesson of this title begun?"""
    return title in task(driver) and "brokers up" in said(driver)


def test_a_lesson_is_failed_and_then_solved_and_its_export_plays_the_same_run(
    address: str, window: Any, tmp_path: Path
) -> None:
    window.get(f"{address}/#lesson=losing&seed=3")
    ready(window)
    click(window, "Finish: no more orders")
    until(lambda: "Not yet: Every event came to everybody" in task(window))
    click(window, "Begin anew", "[data-lessons=task] button")
    until(lambda: "Not yet" not in task(window))
    words = "[data-live=hands] input"
    until(lambda: window.find_elements("css selector", words))
    window.find_element("css selector", words).send_keys("link b0 b1 loss 0.5", Keys.ENTER)
    until(lambda: "by hand: change link b0-b1" in told(window))
    for _ in range(4):
        click(window, "Time: faster")
    until(lambda: window.execute_script("return document.querySelector('section.live').page.run.end.lost") > 5)
    click(window, "Finish: no more orders")
    until(lambda: "did the way of the first event end" in task(window))
    window.find_element("css selector", "[data-lessons=task] input").send_keys("from b0 to b1", Keys.ENTER)
    until(lambda: "Solved." in task(window))
    read = (
        "fetch(document.querySelector('[data-lessons=task] a').href).then((answer) => answer.text()).then(arguments[0])"
    )
    saved = tmp_path / "by-hand.yaml"
    saved.write_text(window.execute_async_script(read))
    execute(load_scenario(saved), tmp_path / "again", lambda *_: None)
    assert journal_hash(tmp_path / "again" / "journal")[:16] in task(window)
    assert all(each.startswith((address, "data:", "blob:")) for each in requested(window))
    assert [entry for entry in window.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_each_lesson_opens_and_a_link_of_another_version_or_to_nothing_is_said(address: str, window: Any) -> None:
    state = "return document.querySelector('[data-lessons=state]').textContent"
    for lesson in LESSONS.values():
        window.get(f"{address}/#lesson={lesson.name}&seed=2&version={own_version()}")
        ready(window)
        until(functools.partial(shows, window, lesson.title))
        assert window.execute_script(_OUTSIDE) == []
    window.get(f"{address}/#lesson=losing&seed=2&version=0.0.1")
    until(lambda: "The link is of murmur 0.0.1" in window.execute_script(state))
    window.get(f"{address}/#lesson=nothing")
    until(lambda: "There is no lesson nothing" in window.execute_script(state))
    window.get(f"{address}/#lesson=losing&seed=-1")
    until(lambda: "A seed is a whole number" in window.execute_script(state))


def test_a_router_written_in_the_page_is_tried_and_one_that_loops_is_ended(address: str, window: Any) -> None:
    """The page stays awake meanwhile, and the next router is tried by a new worker."""
    window.get(f"{address}/#lesson=own&seed=1")
    until(lambda: window.execute_script("return 'ready' in document.documentElement.dataset"), 120)
    own = "document.querySelector('[data-lessons=own]')"
    said_of_it = f"return {own}.querySelector('[role=status]').textContent"

    def tries(line: str, words: str) -> None:
        made = STARTER.replace("return []  # here", line)
        window.execute_script(f"{own}.querySelector('textarea').value = arguments[0]", made)
        click(window, "Try it", "[data-lessons=own] button")
        until(lambda: words in window.execute_script(said_of_it), 120)

    tries("return []", "Not yet: 0 of 3 are valid")
    window.execute_script("window.setTimeout = ((plain) => (what, ms) => plain(what, Math.min(ms, 3000)))(setTimeout)")
    tries("while True: pass", "it loops")
    tries("return [Hop(peer) for peer in self._neighbors]", "in Own.next_hops")
    tries("return [Hop(peer) for peer in self._neighbours if peer != came_from]", "Solved")


def test_every_protocol_leaves_the_same_journal_here_and_as_webassembly(address: str, window: Any) -> None:
    window.get(f"{address}/#lesson=losing&seed=1")
    until(lambda: window.execute_script("return 'ready' in document.documentElement.dataset"), 60)
    window.execute_script("document.querySelector('[data-lessons=same]').open = true")
    click(window, "Play them here", "[data-lessons=same] button")
    section = "return document.querySelector('[data-lessons=same]')"
    until(lambda: window.execute_script(f"{section}.dataset.equal !== undefined"), 120)
    told = window.execute_script(f"{section}.innerText")
    assert f"{len(pairs())} of {len(pairs())} the same" in told, told
    assert all(each.startswith((address, "data:", "blob:")) for each in requested(window))
