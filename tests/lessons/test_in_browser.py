"""The lessons in a real browser, from a static server, without any other network."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from murmuration.lessons.folder import size_of
from murmuration.lessons.lessons import LESSONS
from murmuration.lessons.witnesses import journal_hash, keys_of, pairs
from murmuration.runs.driver import execute
from murmuration.scenario.load import load_scenario
from murmuration.version import own_version
from tests.lessons.opened import OWN, begin, content, fail, solve, state, task, try_router
from tests.lessons.served import built, served
from tests.lessons.solved import ROUTER, SOLVED
from tests.page.browser import browser
from tests.page.played import click, requested, until

pytestmark = [pytest.mark.browser, pytest.mark.slow]
_SIZE_MAX = 15_000_000
_PAGES = 1_024
"""Of 64 KiB: the memory in which Python starts, with a lesson."""
_OUTSIDE = """
const { overlay, run } = document.querySelector('section.live').page;
const inside = (node) => overlay.at(node)[0] > 0 && overlay.at(node)[0] < overlay.width
  && overlay.at(node)[1] > 0 && overlay.at(node)[1] < overlay.height;
return run.brokers.filter((node) => !inside(node)).map((node) => node.name);
"""
"""The brokers that the picture leaves out."""
_LOST = "return document.querySelector('section.live').page.overlay.way?.hops.some((hop) => hop.lost)"
"""Is a way drawn on which something was lost?"""


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


def played_again(scenario: str, folder: Path) -> str:
    """The beginning of its journal's hash, as the page shows it."""
    folder.mkdir()
    (folder / "by-hand.yaml").write_text(scenario)
    execute(load_scenario(folder / "by-hand.yaml"), folder / "run", lambda *_: None)
    return journal_hash(folder / "run" / "journal")[:16]


def test_the_folder_is_small(play: Path) -> None:
    assert 5_000_000 < size_of(play) < _SIZE_MAX


def test_each_lesson_is_failed_and_then_solved_and_its_export_plays_the_same_run(
    address: str, window: Any, tmp_path: Path
) -> None:
    for lesson in LESSONS.values():
        begin(window, f"{address}/#lesson={lesson.name}&seed=3&version={own_version()}", lesson.title)
        assert window.execute_script(_OUTSIDE) == []
        fail(window)
        solve(window, lesson, *SOLVED[lesson.name])
        saved = content(window, "[data-lessons=task] a[download]")
        assert played_again(saved, tmp_path / lesson.name) in task(window)
    assert all(each.startswith((address, "data:", "blob:")) for each in requested(window))
    assert [entry for entry in window.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_the_way_of_a_missing_event_is_drawn_and_a_link_to_the_run_is_the_run(address: str, window: Any) -> None:
    lesson = LESSONS["losing"]
    begin(window, f"{address}/#lesson=losing&seed=5", lesson.title)
    solve(window, lesson, *SOLVED["losing"])
    window.find_element("css selector", ".lessons-missing button").click()
    until(lambda: window.execute_script(_LOST))
    assert "lost by the link" in window.execute_script("return document.querySelector('[data-live=way]').innerText")
    hashed = window.execute_script("return document.querySelectorAll('[data-lessons=task] code')[1].innerText")
    begin(window, window.find_element("link text", "this link").get_attribute("href"), "The run of a link")
    click(window, "Finish: no more orders")
    until(lambda: "Save this run" in task(window))
    assert hashed in task(window)


def test_a_link_to_a_scenario_of_the_zipf_workload_is_played(address: str, window: Any, tmp_path: Path) -> None:
    keys = keys_of("forwarding", "best_effort") | {"workload": {"kind": "zipf", "clients": 4, "publications": 60}}
    begin(window, f"{address}/#{urlencode({'scenario': json.dumps(keys)})}", "The run of a link")
    click(window, "Finish: no more orders")
    until(lambda: "Save this run" in task(window))
    saved = content(window, "[data-lessons=task] a[download]")
    assert played_again(saved, tmp_path / "zipf") in task(window)


def test_what_is_wrong_with_a_link_is_said(address: str, window: Any) -> None:
    churning = keys_of("forwarding", "best_effort") | {"churn": {"days": 1}}
    for link, words in {
        "lesson=losing&seed=2&version=0.0.1": "The link is of murmur 0.0.1",
        "lesson=nothing": "There is no lesson nothing",
        "lesson=losing&seed=-1": "A seed is a whole number",
        "scenario=overlay%3A+%5B": "the link, line 1, column",
        "scenario=name%3A+x": "key overlay: found nothing",
        urlencode({"scenario": json.dumps(churning)}): "This takes numpy, which Python in a browser does not have",
    }.items():
        window.get(f"{address}/#{link}")
        until(lambda words=words: words in state(window), 120)  # type: ignore[misc]


def test_a_browser_without_webassembly_is_told_so(address: str, window: Any) -> None:
    without = {"source": "delete self.WebAssembly"}
    added = window.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", without)
    try:
        window.get("about:blank")
        window.get(address)
        until(lambda: "This browser has no WebAssembly" in state(window))
    finally:
        window.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)
        window.get("about:blank")


def test_a_browser_with_little_memory_is_told_so(address: str) -> None:
    """Too little to begin with, and enough to begin with, but not for a run of a thousand brokers."""
    with browser(1280, 900, f"--js-flags=--wasm-max-mem-pages={_PAGES // 16}") as window:
        window.get(address)
        until(lambda: "Python could not be started: This browser gives a page too little memory" in state(window))
    large = {"overlay": {"kind": "random", "brokers": 1_000}, "workload": {"kind": "zipf", "clients": 1_000}}
    link = urlencode({"scenario": json.dumps(keys_of("forwarding", "best_effort") | large)})
    with browser(1280, 900, f"--js-flags=--wasm-max-mem-pages={_PAGES}") as window:
        window.get(f"{address}/#{link}")
        until(lambda: "It takes more memory than this browser gives to a page" in state(window), 120)
        begin(window, f"{address}/#lesson=losing", LESSONS["losing"].title)


def test_a_router_that_raises_loops_or_floods_is_ended_and_a_right_one_plays_the_same_runs_elsewhere(
    address: str, window: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page stays awake meanwhile, and after one that loops the next is tried by a new worker."""
    window.get(f"{address}/#lesson=own&seed=1")
    until(lambda: window.execute_script("return 'ready' in document.documentElement.dataset"), 120)
    try_router(window, "return []", "Not yet: 0 of 3 are valid")
    try_router(window, "return [Hop(peer) for peer in self._neighbors]", "own.py:24, in Own.next_hops")
    try_router(window, "return [Hop(peer) for peer in self._neighbours]", "It floods")
    plain = "window.plain = window.setTimeout; window.setTimeout = (what, ms) => plain(what, Math.min(ms, 3000))"
    window.execute_script(plain)
    try_router(window, "while True: pass", "it loops")
    window.execute_script("window.setTimeout = window.plain")
    try_router(window, ROUTER, "Solved")
    (tmp_path / "own.py").write_text(content(window, "[data-lessons=own] a[download='own.py']"))
    monkeypatch.syspath_prepend(tmp_path)
    for number in range(1, 4):
        saved = content(window, f"[data-lessons=own] a[download='own-{number}.yaml']")
        shown = window.execute_script(f"return {OWN}.querySelectorAll('tbody code')[{number - 1}].innerText")
        assert played_again(saved, tmp_path / str(number)) == shown


def test_every_protocol_leaves_the_same_journal_here_and_as_webassembly(address: str, window: Any) -> None:
    window.get(f"{address}/#lesson=losing&seed=1")
    until(lambda: window.execute_script("return 'ready' in document.documentElement.dataset"), 120)
    window.execute_script("document.querySelector('[data-lessons=same]').open = true")
    click(window, "Play them here", "[data-lessons=same] button")
    section = "return document.querySelector('[data-lessons=same]')"
    until(lambda: window.execute_script(f"{section}.dataset.equal !== undefined"), 240)
    told = window.execute_script(f"{section}.innerText")
    assert f"{len(pairs())} of {len(pairs())} the same" in told, told
    assert all(each.startswith((address, "data:", "blob:")) for each in requested(window))
