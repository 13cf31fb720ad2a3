"""A virtual run that is played beside the test, with hands on it, and what a person does with its page."""

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from murmuration.live.server import PageServer
from murmuration.runs.driver import execute
from murmuration.runs.hands import Hands
from murmuration.scenario.load import check_scenario

_WAIT_S = 60


class Played(threading.Thread):
    """A virtual run with hands on it, in a thread, beside the server of its page."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)  # a test that fails leaves it waiting
        self.folder = folder
        self.begun = threading.Event()
        self.hands: Hands | None = None
        self._data = {
            "name": "hands",
            "runtime": "virtual",
            "overlay": {"kind": "chain", "brokers": 5},
            "workload": {"kind": "zipf", "clients": 5, "publications": 400, "rate_per_s": 100},
            "links": {"delay": "2 ms"},
            "keep_inputs": True,
        }

    def run(self) -> None:
        def watched(hands: Hands) -> None:
            hands.paused = True
            self.hands = hands
            self.begun.set()

        execute(check_scenario(self._data, "test"), self.folder, lambda *_: None, watched=watched)

    def steered_from(self, server: PageServer) -> None:
        """Begin, paused, and let the server's page have the hands."""
        self.start()
        assert self.begun.wait(30)
        assert self.hands is not None
        server.let_steer(self.folder, self.hands)


def requested(driver: Any) -> list[str]:
    """The addresses that the page has asked for since this was asked last."""
    return [
        json.loads(entry["message"])["message"]["params"]["request"]["url"]
        for entry in driver.get_log("performance")
        if '"Network.requestWillBeSent"' in entry["message"]
    ]


def is_ready(driver: Any) -> bool:
    """Does the page show its run?"""
    return bool(driver.execute_script("return document.querySelector('.live').dataset.ready !== undefined"))


def until(condition: Callable[[], Any], wait_s: float = _WAIT_S) -> None:
    """Wait for it, as long as a busy computer may take."""
    end = time.monotonic() + wait_s
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen")


def click(driver: Any, words: str, among: str = "[data-live=hands] button") -> None:
    from selenium.common.exceptions import StaleElementReferenceException

    def clicked() -> bool:
        try:
            buttons = driver.find_elements("css selector", among)
            found = [each for each in buttons if each.text == words]
            if found:
                found[0].click()
        except StaleElementReferenceException:
            return False
        return bool(found)

    until(clicked)


def press(driver: Any, *keys: str) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    for key in keys:
        ActionChains(driver).send_keys(key).perform()


def said(driver: Any) -> str:
    return str(driver.execute_script("return document.querySelector('[data-live=say]').textContent"))


def note(driver: Any) -> str:
    """What the page answered last."""
    return str(driver.execute_script("return document.querySelector('[data-live=note]').textContent"))


def told(driver: Any) -> str:
    """What happened, as the page tells it."""
    return str(driver.execute_script("return document.querySelector('[data-live=told]').textContent"))
