"""Pictures of the six lessons: `python -m benchmarks.lesson_pictures FOLDER TARGET`, a folder that `make play` made.

Each shows the page where there is something to see, and is named lesson-NAME.png. `--width 400` shows it as a
telephone does; `--solved` shows each lesson in its end.
"""

import argparse
import base64
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from murmuration.lessons.lessons import LESSONS, Lesson
from tests.lessons.opened import begin, do, is_at, solve, task, try_router
from tests.lessons.served import served
from tests.lessons.solved import ROUTER, SOLVED
from tests.page.browser import browser
from tests.page.played import click, until

_MOMENTS: Mapping[str, tuple[int, float]] = {
    "losing": (1, 6.0),
    "dead-broker": (1, 3.5),
    "exactly-once": (2, 4.0),
    "shortcuts": (1, 12.0),
    "churn": (3, 5.0),
}
"""After how many of the steps that solve the lesson, and when."""


def _take(driver: Any, path: Path) -> None:
    """A picture of the whole page."""
    size = driver.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
    whole = {"format": "png", "captureBeyondViewport": True, "clip": {**size, "scale": 1}}
    path.write_bytes(base64.b64decode(driver.execute_cdp_cmd("Page.captureScreenshot", whole)["data"]))
    print(path)


def _stop(driver: Any, lesson: Lesson) -> None:
    """Let time stand; but where something is asked in the end, show what the answer is found by."""
    if lesson.question:
        click(driver, "Finish: no more orders")
        until(lambda: "Missing somewhere" in task(driver))
        driver.find_element("css selector", ".lessons-missing button").click()
        until(lambda: driver.execute_script("return document.querySelector('[data-live=way]').innerText"))
    else:
        click(driver, "Stop time")
        until(lambda: "Let time pass" in driver.execute_script("return document.body.innerText"))


def main() -> None:
    """Take them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--solved", action="store_true")
    given = parser.parse_args()
    with served(given.folder) as address, browser(given.width, 900) as driver:
        for name, (done, moment_s) in _MOMENTS.items():
            lesson, (steps, answer) = LESSONS[name], SOLVED[name]
            begin(driver, f"{address}/#lesson={name}&seed=3", lesson.title)
            if given.solved:
                solve(driver, lesson, steps, answer)
            else:
                do(driver, steps[:done])
                until(functools.partial(is_at, driver, moment_s))
                _stop(driver, lesson)
            _take(driver, given.target / f"lesson-{name}.png")
        driver.get(f"{address}/#lesson=own&seed=1")
        try_router(driver, ROUTER, "Solved")
        _take(driver, given.target / "lesson-own.png")


if __name__ == "__main__":
    main()
