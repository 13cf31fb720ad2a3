"""What a person does with the page of the lessons, and what it shows."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from selenium.webdriver.common.keys import Keys

from murmuration.lessons.lessons import Lesson
from murmuration.lessons.own_router import STARTER
from tests.lessons.solved import Step
from tests.page.played import click, note, said, until

OWN = "document.querySelector('[data-lessons=own]')"
_STARTS_S = 120
"""As long as Python may take to start on a busy computer."""


def state(driver: Any) -> str:
    """What the page says of itself, and of the link that it was opened by."""
    return str(driver.execute_script("return document.querySelector('[data-lessons=state]').textContent"))


def task(driver: Any) -> str:
    """The task, and how far it is solved."""
    return str(driver.execute_script("return document.querySelector('[data-lessons=task]').innerText"))


def begin(driver: Any, address: str, title: str) -> None:
    """Open that link, and wait until the lesson of this title is begun."""
    driver.get(address)
    is_ready = "return 'ready' in document.querySelector('section.live').dataset"
    until(lambda: driver.execute_script(is_ready) and title in task(driver) and "brokers up" in said(driver), _STARTS_S)


def is_at(driver: Any, time_s: float) -> bool:
    """Has the page so much of the run?"""
    reached = "return document.querySelector('section.live').page.run.endUs >= arguments[0]"
    return bool(driver.execute_script(reached, time_s * 1e6))


def typed(driver: Any, place: str, words: str) -> None:
    until(lambda: driver.find_elements("css selector", place))
    driver.find_element("css selector", place).send_keys(words, Keys.ENTER)


def in_words(entry: Mapping[str, Any]) -> str:
    """An order as a person types it."""
    (verb, about), *more = entry.items()
    words = [verb, *([about] if isinstance(about, str) else about)]
    for key, value in more:
        words += [str(value)] if key == "filter" else [key, str(value)]
    return " ".join(words)


def do(driver: Any, steps: Sequence[Step]) -> None:
    """Have time pass faster, and do this at about these times."""
    for _ in range(2):
        click(driver, "Time: faster")
    due_s = 0.0
    for seconds, entry in steps:
        due_s += seconds
        until(functools.partial(is_at, driver, due_s))
        typed(driver, "[data-live=hands] input", in_words(entry))
        until(lambda: not driver.find_elements("css selector", ".live-asked") and "took effect" in note(driver))


def fail(driver: Any) -> None:
    """Do nothing, and begin anew."""
    click(driver, "Finish: no more orders")
    until(lambda: "Not yet: " in task(driver))
    click(driver, "Begin anew", "[data-lessons=task] button")
    until(lambda: "Not yet" not in task(driver))


def solve(driver: Any, lesson: Lesson, steps: Sequence[Step], answer: str) -> None:
    """Do what solves the lesson."""
    do(driver, steps)
    click(driver, "Finish: no more orders")
    until(lambda: "Save this run" in task(driver))
    if lesson.question:
        typed(driver, "[data-lessons=task] input", answer)
        until(lambda: "Where did the way" not in task(driver))
    assert "Solved." in task(driver), task(driver)


def try_router(driver: Any, line: str, words: str) -> None:
    """Try the router that has this line, until the page says these words of it."""
    made = STARTER.replace("return []  # here", line)
    driver.execute_script(f"{OWN}.querySelector('textarea').value = arguments[0]", made)
    click(driver, "Try it", "[data-lessons=own] button")
    until(lambda: words in driver.execute_script(f"return {OWN}.querySelector('[role=status]').textContent"), _STARTS_S)


def content(driver: Any, link: str) -> str:
    """What that link of the page would save."""
    read = "fetch(document.querySelector(arguments[0]).href).then((answer) => answer.text()).then(arguments[1])"
    return str(driver.execute_async_script(read, link))
