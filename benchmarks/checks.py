"""What the checks of machines cost: the same run with and without them, by turns in one process, as a ratio of times.

`python -m benchmarks.checks [--rounds 15]` (docs/decisions/0022). Taken out are the checks of each effect, next hop and
timer, and the count of what follows from each other at one instant.
"""

import argparse
import contextlib
import gc
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType

from benchmarks.swapped_code import functions_by_code, swap
from benchmarks.table import print_table
from murmur_pubsub.deployment import Deployment
from murmur_virtual import virtual_node, virtual_runtime
from murmur_virtual.run import play_virtual
from murmuration.deployment.build_deployment import build
from murmuration.scenario.load import check_scenario
from reliability import broker

_CHECKS: tuple[tuple[ModuleType, str, str, str], ...] = (
    (
        virtual_node,
        '        """Carry out the effects in order."""\n',
        "        for effect in effects:\n",
        "",
    ),
    (
        virtual_node,
        "                key, delay_us = effect\n",
        "                self._timers[key] = self._push(now_us + delay_us",
        "",
    ),
    (
        broker,
        "        hops = self._next_hops(event, came_from, header)\n",
        "    def notify(",
        "        return hops\n",
    ),
    (
        virtual_runtime,
        "            done += 1\n",
        "            if kind <= CONTROL_MESSAGE:\n",
        "",
    ),
)
"""Module, what stands before a check, what stands behind it, and what is there without it."""
_PAIRS = (("forwarding", "best_effort"), ("cells", "gryphon"), ("irbr", "best_effort"))


@contextlib.contextmanager
def without_checks() -> Iterator[None]:
    """Take the checks out of the functions that are in use, for as long as the block lasts."""
    texts: dict[ModuleType, tuple[str, str]] = {}
    for module, before, behind, instead in _CHECKS:
        whole = Path(str(module.__file__)).read_text()
        shorter = texts.get(module, (whole, whole))[1]
        begin = shorter.index(before) + len(before)
        end = shorter.index(behind, begin)
        lines = shorter.count("\n", begin, end) - instead.count("\n")  # all other functions stay where they are
        texts[module] = whole, shorter[:begin] + instead + "\n" * lines + shorter[end:]
    _swap_all(texts)
    try:
        yield
    finally:
        _swap_all({module: (shorter, whole) for module, (whole, shorter) in texts.items()})


def _swap_all(texts: Mapping[ModuleType, tuple[str, str]]) -> None:
    functions = functions_by_code()  # gone before anything is measured: the collector would walk it
    for module, (before, after) in texts.items():
        swap(functions, str(module.__file__), before, after)


def deployment_of(routing: str, reliability: str) -> Deployment:
    """A run of a second or so."""
    structured = routing == "irbr"
    data = {
        "name": "checks",
        "runtime": "virtual",
        "overlay": {"kind": "structured" if structured else "balanced", "brokers": 40},
        "workload": {"kind": "zipf", "clients": 20, "publications": 400, "rate_per_s": 200, "matching_rate": 0.1},
        "broker": {"routing": routing, "reliability": reliability},
        "drain": {"limit": "2 s"},
        **({"datagrams": {"delay": {"uniform": ["1 ms", "2 ms"]}}} if structured else {}),
    }
    return build(check_scenario(data, "checks")).deployment


def play(deployment: Deployment) -> float:
    """Seconds of CPU that the run costs."""
    gc.collect()
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        play_virtual(deployment, Path(folder), lambda *_: None)
        return time.process_time() - began


def measure(deployment: Deployment, rounds: int) -> tuple[float, list[float]]:
    """Seconds without the checks, the least of all rounds; and the ratio with them to without them, round by round."""
    without_s, ratios = [], []
    for number in range(rounds):
        spent = {}
        for checked in (True, False) if number % 2 else (False, True):
            with contextlib.nullcontext() if checked else without_checks():
                spent[checked] = play(deployment)
        without_s.append(spent[False])
        ratios.append(spent[True] / spent[False])
    return min(without_s), ratios


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    rows = []
    for pair in _PAIRS:
        deployment = deployment_of(*pair)
        play(deployment)
        seconds, ratios = measure(deployment, given.rounds)
        low, middle, high = statistics.quantiles(ratios, n=4)
        rows.append(("/".join(pair), f"{seconds:.2f}", *(f"{100 * (each - 1):+.1f} %" for each in (low, middle, high))))
    headings = ("pair", "without, CPU s", "checks: lower quartile", "median", "upper quartile")
    print_table("What the checks of machines cost (aim: under 2 %)", headings, rows)


if __name__ == "__main__":
    main()
