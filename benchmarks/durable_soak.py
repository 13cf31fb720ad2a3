"""The soak of durable subscriptions, live: every broker dies twice, and the clients of one that dies go to another.

`python -m benchmarks.durable_soak [--seconds 900] [--folder FOLDER]` plays the overlay and the load of `murmur run
gryphon-soak` on Ray, and prints the verdict. One broker after the other is killed, at random times, every other time
with SIGKILL. Subscribers whose own broker is killed go to others, and stay there until those die. Nothing may be
missing. `--virtual` plays it in virtual time.
"""

import argparse
import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from murmuration.runs.driver import execute
from murmuration.scenario.load import check_scenario
from spark_analysis.main import judge

CELLS: Mapping[str, Sequence[str]] = {
    "p": ["p1"], "left": ["b1", "b2"], "right": ["b3", "b4"],
    "s1": ["s1"], "s2": ["s2"], "s3": ["s3"], "s4": ["s4"], "s5": ["s5"],
}  # fmt: skip
LINKS = [
    ["p", "left"], ["p", "right"], ["left", "s1"], ["left", "s2"], ["right", "s3"], ["right", "s4"], ["right", "s5"],
]  # fmt: skip
_TOLD = (
    "published", "required", "delivered", "missing", "duplicate", "spurious", "out_of_order", "explained",
    "faults_took_effect", "faults_failed", "catch_up_us", "delay_live_p99_us", "delay_caught_up_p99_us", "verdict",
    "reason",
)  # fmt: skip


def soak(
    seconds: float,
    cells: Mapping[str, Sequence[str]] = CELLS,
    links: Sequence[Sequence[str]] = LINKS,
    publishers: int = 4,
    subscribers: int = 4,
    deaths: int = 2,
    seed: int = 1,
) -> dict[str, Any]:
    """The scenario, without a runtime. The brokers whose names begin with p have publishers, and those with s that many
    subscribers each; every broker dies that often."""
    brokers = [broker for members in cells.values() for broker in members]
    homes = [broker for broker in brokers if broker.startswith("s")]
    entrances = {broker: publishers for broker in brokers if broker.startswith("p")}
    first = sum(entrances.values())
    at = {f"c{first + number}": homes[number // subscribers] for number in range(subscribers * len(homes))}
    rng = random.Random(seed)
    order = [broker for _ in range(deaths) for broker in rng.sample(brokers, len(brokers))]
    return {
        "seed": seed,
        "overlay": {"kind": "cells", "cells": dict(cells), "links": [list(link) for link in links]},
        "workload": {
            "kind": "paced", "publishers": entrances, "subscribers": dict.fromkeys(homes, subscribers),
            "rate_per_s": 25, "seconds": seconds,
        },
        "broker": {
            "routing": "cells", "reliability": "durable", "parameters": {"durable": {"pubends": dict(entrances)}},
        },
        "failure_detection": {"heartbeat": "500 ms", "timeout": "2 s", "reconnect": "100 ms"},
        "faults": deaths_in_turn(
            rng, order, seconds, at, [homes], lambda number, _: {"signal": "SIGKILL"} if number % 2 else {}
        ),
    }  # fmt: skip


def deaths_in_turn(
    rng: random.Random,
    order: Sequence[str],
    seconds: float,
    at: dict[str, str],
    places: Sequence[Sequence[str]],
    how: Callable[[int, str], Mapping[str, str]],
) -> list[dict[str, Any]]:
    """The brokers die in that order, and each is back before the next one dies. `at`: client to the broker where it is;
    clients whose broker dies go to others of the same one of the `places`. `how`: further keys of each kill, by its
    number and the broker."""
    turn_ms = int(seconds * 1_000 / (len(order) + 0.5))
    faults: list[dict[str, Any]] = []
    for number, broker in enumerate(order):
        begin_ms = number * turn_ms + rng.randint(turn_ms // 10, turn_ms // 3)
        away_ms = rng.randint(turn_ms // 4, turn_ms // 2)
        faults.append({"at": f"{begin_ms} ms", "kill": broker, "for": f"{away_ms} ms", **how(number, broker)})
        others = [each for place in places if broker in place for each in place if each != broker]
        for number_there, client in enumerate(client for client, home in at.items() if home == broker):
            at[client] = others[number_there % len(others)]
            faults.append({"at": f"{begin_ms + away_ms // 2} ms", "move_client": client, "to": at[client]})
    return faults


def play(description: str | None, make: Callable[[float], dict[str, Any]], name: str) -> None:
    """Play the scenario for as long as the command line says, and print the verdict."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=900)
    parser.add_argument("--folder", type=Path, help="where the run is kept (default: it is not)")
    parser.add_argument("--virtual", action="store_true", help="in virtual time")
    given = parser.parse_args()
    runtime = "virtual" if given.virtual else "ray"
    loaded = check_scenario({"name": name, **make(given.seconds), "runtime": runtime}, name)
    with tempfile.TemporaryDirectory() as kept:
        folder = given.folder or Path(kept) / "run"
        verdict = judge(execute(loaded, folder, lambda *_: None).folder)
    for key in _TOLD:
        value = verdict[key]
        print(f"{key:24}{value:,}" if isinstance(value, int) else f"{key:24}{value}")


if __name__ == "__main__":
    play(__doc__, soak, "durable-soak")
