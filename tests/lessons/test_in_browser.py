"""The lessons in a real browser, from a static server, without any other network."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from murmuration.lessons.folder import size_of
from murmuration.lessons.witnesses import pairs
from tests.lessons.served import built, served
from tests.page.browser import browser
from tests.page.played import click, requested, until

pytestmark = [pytest.mark.browser, pytest.mark.slow]
_SIZE_MAX = 15_000_000


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("lessons"))


@pytest.fixture(scope="module")
def address(play: Path) -> Iterator[str]:
    with served(play) as found:
        yield found


@pytest.fixture
def window() -> Iterator[Any]:
    with browser(1280, 900) as driver:
        yield driver


def test_the_folder_is_small(play: Path) -> None:
    assert 5_000_000 < size_of(play) < _SIZE_MAX


def test_every_protocol_leaves_the_same_journal_here_and_as_webassembly(address: str, window: Any) -> None:
    window.get(address)
    until(lambda: window.execute_script("return 'ready' in document.documentElement.dataset"), 60)
    click(window, "Play them here", "[data-lessons=same] button")
    section = "return document.querySelector('[data-lessons=same]')"
    until(lambda: window.execute_script(f"{section}.dataset.equal !== undefined"), 120)
    told = window.execute_script(f"{section}.innerText")
    assert f"{len(pairs())} of {len(pairs())} the same" in told, told
    assert all(each.startswith((address, "data:", "blob:")) for each in requested(window))
