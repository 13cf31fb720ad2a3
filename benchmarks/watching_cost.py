"""What a viewer costs a live run: `python -m benchmarks.watching_cost [SECONDS]`.

One live run of eight brokers at 400 publications a second is served by its driver, as `murmur run --watch` does. Nobody
looks on and somebody looks on in turn, four stretches of each. Printed are, with a viewer and without, the share of a
core that the driver and the nodes take and the hop latency, and their ratios: both within one run, on one computer.
"""

import asyncio
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import numpy as np
import pandas as pd
import psutil

from murmur_page.journal_tail import last_row_us
from murmur_pubsub.journal import RowKind
from murmur_pubsub.journal_rows import read_segment
from murmuration.live.background import page_server
from murmuration.runs.driver import execute
from murmuration.runs.hands import Hands
from murmuration.scenario.load import check_scenario

_STRETCHES = 8
_SETTLING_S = 2.0
"""After a viewer has come or gone, before anything is measured."""


@dataclass(slots=True)
class Stretch:
    """A part of the run: seconds of a core a second, and from when to when, in emulated time."""

    watched: bool
    driver: float
    nodes: float
    from_us: int
    until_us: int


async def view(link: str) -> None:
    """Look on until the end of the process, as a page does."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        async with session.get(link) as answer:
            page = answer.url
        async with session.ws_connect(page / "feed", headers={"Origin": str(page.origin())}, max_msg_size=0) as feed:
            async for _ in feed:
                pass


def measure(link: str, folder: Path, seconds: float) -> list[Stretch]:
    """The stretches, with nobody and with somebody looking on in turn."""
    stretches = []
    for number in range(_STRETCHES):
        watched = number % 2 == 1
        command = [sys.executable, "-m", "benchmarks.watching_cost", "--view", link]
        viewer = subprocess.Popen(command) if watched else None
        time.sleep(_SETTLING_S)
        before, from_us, began = _spent(), last_row_us(folder / "journal"), time.monotonic()
        time.sleep(seconds)
        passed, after = time.monotonic() - began, _spent()
        stretches.append(
            Stretch(
                watched, (after[0] - before[0]) / passed, (after[1] - before[1]) / passed, from_us,
                last_row_us(folder / "journal"),
            )
        )  # fmt: skip
        if viewer is not None:
            viewer.terminate()
            viewer.wait()
    return stretches


def _spent() -> tuple[float, float]:
    """Seconds of a core that this process, and all nodes together, have taken."""
    own = psutil.Process().cpu_times()
    below = psutil.Process().children(recursive=True)
    nodes = [each.cpu_times() for each in below if "".join(each.cmdline()).startswith("ray::NodeActor")]
    return own.user + own.system, sum(each.user + each.system for each in nodes)


def hop_latencies(folder: Path) -> pd.DataFrame:
    """`time_us` and `took_us` of each event's way over each link that it passed once."""
    rows = np.concatenate([read_segment(path)[1] for path in sorted((folder / "journal").glob("*.seg"))])
    rows = rows[rows["source"] >= 0]
    sent, received = (pd.DataFrame(rows[rows["kind"] == kind]) for kind in (RowKind.SEND, RowKind.RECEIVE))
    keys = ["source", "sequence", "node", "peer"]
    received = received.rename(columns={"node": "peer", "peer": "node"})
    both = [each.drop_duplicates(keys, keep=False)[[*keys, "time_us"]] for each in (sent, received)]
    hops = both[0].merge(both[1], on=keys, suffixes=("", "_received"))
    return pd.DataFrame({"time_us": hops["time_us"], "took_us": hops["time_us_received"] - hops["time_us"]})


def main(seconds: float) -> None:
    """Play, measure and print."""
    lasts_s = int(_STRETCHES * (seconds + _SETTLING_S)) + 10
    scenario = {
        "name": "watched", "runtime": "ray", "overlay": {"kind": "balanced", "brokers": 8, "degree": 3},
        "workload": {
            "kind": "zipf", "clients": 4, "publications": 400 * lasts_s, "rate_per_s": 400, "subscribers_per_actor": 4,
        },
    }  # fmt: skip
    stretches: list[Stretch] = []
    with tempfile.TemporaryDirectory() as place, page_server(Path(place)) as server:
        folder = Path(place) / "run"

        def watched(hands: Hands) -> None:
            hands.held = True
            server.let_steer(folder, hands)
            threading.Thread(target=look, args=(hands,), daemon=True).start()

        def look(hands: Hands) -> None:
            while '"publishing"' not in phases and not hands.over:
                time.sleep(0.1)
            stretches.extend(measure(server.link(folder), folder, seconds))
            hands.finish()

        phases: set[str] = set()
        execute(
            check_scenario(scenario, "benchmark"), folder, lambda step, *_: phases.add(f'"{step}"'), watched=watched
        )
        hops = hop_latencies(folder)
    _tell(stretches, hops)


def _tell(stretches: list[Stretch], hops: pd.DataFrame) -> None:
    figures: dict[bool, list[float]] = {}
    for watched in (False, True):
        own = [each for each in stretches if each.watched is watched]
        inside = [hops["time_us"].between(each.from_us, each.until_us) for each in own]
        took = hops["took_us"][np.logical_or.reduce(inside)]
        figures[watched] = [
            statistics.mean(each.driver for each in own), statistics.mean(each.nodes for each in own),
            float(took.quantile(0.5)) / 1e3, float(took.quantile(0.99)) / 1e3,
        ]  # fmt: skip
    for name, without, viewed in zip(
        ("driver, of a core", "nodes, of a core", "hop latency p50, ms", "hop latency p99, ms"),
        figures[False], figures[True], strict=True,
    ):  # fmt: skip
        print(f"{name:22} {without:8.3f} without a viewer, {viewed:8.3f} with one: ratio {viewed / without:.3f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--view"]:
        asyncio.run(view(sys.argv[2]))
    else:
        main(float(sys.argv[1]) if len(sys.argv) > 1 else 10.0)
