"""A real browser for tests: Chromium and its driver, where they are installed."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

_ARGUMENTS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
)  # fmt: skip
_PROGRAMS = (("chromium", "chromium-browser", "google-chrome"), ("chromedriver",))


def installed() -> tuple[str, str]:
    """The paths of browser and driver; skips the test, with the reason, where one is missing."""
    found = [next(filter(None, map(shutil.which, names)), None) for names in _PROGRAMS]
    browser, driver = found
    if browser is None or driver is None:
        pytest.skip("no Chromium with chromedriver here (Debian: apt-get install chromium chromium-driver)")
    return browser, driver


@contextmanager
def browser(width: int, height: int, *more: str) -> Iterator[Any]:
    """A browser with a window of that size, and more arguments; its console and its requests are logged."""
    path, driver = installed()
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = path
    for argument in (*_ARGUMENTS, *more, f"--window-size={width},{height}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    opened: Any = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        yield opened
    except BaseException:
        # A failure tells what a person would have seen.
        print("the page as it was:", opened.execute_script("return document.body.innerText"), sep="\n")
        print("its console:", *(line["message"] for line in opened.get_log("browser")), sep="\n")
        raise
    finally:
        opened.quit()
