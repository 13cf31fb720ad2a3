"""`murmur run --watch` prints its link, waits for a page, and ends at one interrupt, in the run and after it."""

import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from http.cookiejar import CookieJar
from pathlib import Path

import pytest

SCENARIO = """
name: watched
runtime: virtual
overlay: {kind: chain, brokers: 2}
workload: {kind: zipf, clients: 2, publications: 20, rate_per_s: 100}
"""


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    (tmp_path / "watched.yaml").write_text(SCENARIO)
    command = [sys.executable, "-m", "murmuration", "run", str(tmp_path / "watched.yaml"), "--watch", "--no-analysis"]
    started = subprocess.Popen(
        [*command, "--out", str(tmp_path / "run")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    yield started
    if started.poll() is None:
        started.kill()
    started.communicate()


def opened(started: subprocess.Popen[str]) -> tuple[str, urllib.request.OpenerDirector]:
    """The address of the run's page, and who has its cookie."""
    assert started.stderr is not None
    link = started.stderr.readline().strip()
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    return opener.open(link, timeout=120).geturl(), opener


def test_an_interrupt_ends_a_run_that_waits_for_its_page(watched: subprocess.Popen[str], tmp_path: Path) -> None:
    page, _ = opened(watched)
    assert page.endswith("/run/run/")
    assert watched.stderr is not None
    while "starting actors" not in watched.stderr.readline():
        pass
    time.sleep(1)  # now it waits: of an interrupt within an import Python may make nothing
    watched.send_signal(signal.SIGINT)
    _, said = watched.communicate(timeout=120)
    # Either is 130 in a shell: Python ends by the signal itself if the interrupt came while an import ran `exec`.
    assert watched.returncode in (130, -signal.SIGINT)
    assert "interrupted" in said
    assert "Traceback" not in said
    assert '"status": "interrupted"' in (tmp_path / "run" / "manifest.json").read_text()


def test_the_page_stays_after_the_run_until_an_interrupt(watched: subprocess.Popen[str], tmp_path: Path) -> None:
    page, opener = opened(watched)
    origin = page.split("/run/")[0]
    request = urllib.request.Request(f"{page}do", b'{"paused": false}', {"Origin": origin})
    opener.open(request, timeout=120)
    assert watched.stderr is not None
    for line in watched.stderr:
        if "stays until Ctrl-C" in line:
            break
    assert opener.open(page, timeout=120).status == 200
    watched.send_signal(signal.SIGINT)
    out, said = watched.communicate(timeout=120)
    assert watched.returncode == 0, said
    assert f"run folder: {tmp_path / 'run'}" in out
