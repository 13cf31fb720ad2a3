"""Push on chains and stars of which one link is down for a while, each drawn from a seed.

A publisher and one to three subscribers are at dispatchers of their own, all others have none. Ten events are published
at some time while the link is down, and it is mended before anybody has forgotten the patterns, or after that. Then
every subscriber must have every event.
"""

import contextlib
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from murmuration import Cluster
from spark_analysis.plain_judge import Judgement, judge_run

EVENTS = 10


@contextlib.contextmanager
def pushing(overlay: Mapping[str, Any], clients: Mapping[str, str], folder: Path) -> Iterator[Cluster]:
    """A cluster whose dispatchers push; faults of links are noticed after a tenth of a second."""
    with Cluster.start(
        overlay=overlay,
        clients=clients,
        reliability="epidemic",
        parameters={"epidemic": {"algorithm": "push", "settle": "0 ms"}},
        folder=folder / "run",
        links={"delay": "1 ms"},
        datagrams={"delay": "1 ms"},
        failure_detection={"heartbeat": "50 ms", "timeout": "100 ms", "reconnect": "20 ms"},
        drain={"quiet": "1 s", "limit": "60 s"},
    ) as cluster:
        yield cluster


def publish(cluster: Cluster, count: int) -> None:
    """Have the client `p` publish so many events, 10 ms apart."""
    for number in range(count):
        cluster.clients["p"].publish({"x": number})
        cluster.advance("10 ms")


def judged(cluster: Cluster) -> Judgement:
    """The judgement of the run, which ends."""
    cluster.end()
    return judge_run(cluster.folder)


def play(seed: int, folder: Path) -> None:
    """One such tree; raises `AssertionError` if a subscriber lacks an event in the end."""
    rng = random.Random(f"{seed}/mended tree")
    brokers = rng.randint(3, 7)
    overlay = {"kind": rng.choice(("chain", "star")), "brokers": brokers}
    homes = rng.sample([f"b{number}" for number in range(brokers)], rng.randint(2, min(4, brokers)))
    clients = {"p" if not number else f"s{number}": home for number, home in enumerate(homes)}
    with pushing(overlay, clients, folder) as cluster:
        for name in clients:
            if name != "p":
                cluster.clients[name].subscribe("x >= 0")
        cluster.settle()
        farther = rng.randrange(1, brokers)
        link = f"b{farther - 1 if overlay['kind'] == 'chain' else 0}", f"b{farther}"
        cluster.faults.cut(*link)
        cluster.advance(f"{rng.choice((300, 2_000, 7_000))} ms")
        publish(cluster, EVENTS)
        cluster.advance(f"{rng.choice((1, 1_000, 4_000, 8_000))} ms")
        cluster.faults.heal(*link)
        cluster.advance("5 s")
        verdict = judged(cluster)
    words = f"{overlay['kind']} of {brokers}, {clients}, {link} was down"
    assert verdict.pairs.required == EVENTS * (len(clients) - 1), words
    assert not verdict.pairs.missing, f"{words}: {len(verdict.pairs.missing)} missing"
