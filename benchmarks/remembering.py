"""What it costs that brokers of a structured overlay remember peers: the same churn with and without, by turns.

`python -m benchmarks.remembering [--nodes 100] [--days 0.25] [--rounds 10]` (docs/decisions/0031). Times are the least
of all rounds; what is stored and sent is the same in each.
"""

import argparse
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from unittest import mock

from murmur_pubsub.machine import Effect, NodeName, Persist
from murmur_virtual.virtual_node import VirtualNode
from murmuration.papers.vinifera.run import ChurnSpec, measure_churn
from routing.remembered_peers import RememberedPeers


class Counted:
    """What brokers stored and sent."""

    def __init__(self) -> None:
        self.records: list[int] = []
        """The bytes of each."""
        self.messages = 0

    @contextmanager
    def counting(self, remembers: bool) -> Iterator[None]:
        """Count for as long as the block lasts, in which brokers remember peers or do not."""
        kept, sent = RememberedPeers.keep, VirtualNode._send

        def keep(peers: RememberedPeers, known: Collection[NodeName]) -> list[Effect]:
            effects = kept(peers, known) if remembers else []
            self.records += [len(effect.record) for effect in effects if type(effect) is Persist]
            return effects

        def send(node: VirtualNode, to: NodeName, message: object, now_us: int) -> None:
            self.messages += 1
            sent(node, to, message, now_us)

        with mock.patch.object(RememberedPeers, "keep", keep), mock.patch.object(VirtualNode, "_send", send):
            yield


def main() -> None:
    """Print what is stored and sent, and the ratio of times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--days", type=float, default=0.25)
    parser.add_argument("--rounds", type=int, default=10)
    given = parser.parse_args()
    spec = ChurnSpec("vinifera", "generated", "skewed", given.nodes, given.days, 2_700, True, events=1)
    least_s = {True: float("inf"), False: float("inf")}
    counted = {}
    for number in range(given.rounds):
        for remembers in (True, False) if number % 2 else (False, True):
            counted[remembers] = Counted()
            with counted[remembers].counting(remembers):
                began = time.process_time()
                measure_churn(spec)
                least_s[remembers] = min(least_s[remembers], time.process_time() - began)
    records = counted[True].records
    each = len(records) / given.nodes / given.days
    print(f"{len(records):,} records, {sum(records):,} bytes: {each:.1f} a node and day")
    print(f"messages: {counted[True].messages:,}, without remembering {counted[False].messages:,}")
    print(f"CPU: {least_s[True]:.3f} s, without remembering {least_s[False]:.3f} s")


if __name__ == "__main__":
    main()
