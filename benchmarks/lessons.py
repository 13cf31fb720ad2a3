"""The lessons in headless Chromium: `python -m benchmarks.lessons FOLDER`, a folder that `make play` made.

Prints how large the folder is, how long it takes from the address to the first picture of a run, the memory of the
page's process then, and how many inputs machines take a second when every protocol's witness is played and judged.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import psutil

from murmuration.lessons.folder import size_of
from tests.lessons.served import served
from tests.page.browser import browser
from tests.page.played import click, until

_SECTION = "document.querySelector('[data-lessons=same]')"
_TIMES = 3


def _first_picture_s(driver: Any, address: str) -> float:
    driver.get("about:blank")
    began = time.monotonic()
    driver.get(address)
    until(lambda: driver.execute_script("return 'ready' in document.querySelector('section.live').dataset"))
    return time.monotonic() - began


def _largest_renderer_bytes(driver: Any) -> int:
    """What the process that draws and computes the page holds by itself."""
    children = psutil.Process(driver.service.process.pid).children(recursive=True)
    renderers = (each for each in children if "--type=renderer" in each.cmdline())
    return max(int(each.memory_full_info().uss) for each in renderers)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    with served(given.folder) as address, browser(1280, 900) as driver:
        times = sorted(_first_picture_s(driver, address) for _ in range(_TIMES))
        memory = _largest_renderer_bytes(driver)
        driver.execute_script(f"{_SECTION}.open = true")
        click(driver, "Play them here", "[data-lessons=same] button")
        until(lambda: driver.execute_script(f"return {_SECTION}.dataset.equal !== undefined"), 300)
        told = driver.execute_script(f"return {_SECTION}.querySelector('[role=status]').textContent")
    print(f"folder: {size_of(given.folder) / 1e6:.1f} MB")
    print(f"first picture: {times[_TIMES // 2]:.1f} s (median of {_TIMES}, {times[0]:.1f} to {times[-1]:.1f})")
    print(f"memory of the page: {memory / 1e6:.0f} MB")
    print(told)


if __name__ == "__main__":
    main()
