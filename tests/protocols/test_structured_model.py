"""Subscribe, unsubscribe, join, leave and crash, against a plain set of (node, filter), for all three routings.

Operations are not waited for; after settling every event reaches exactly the interested nodes, once. Without a crash
settling is quiet, after one it is a few rounds of probes.
"""

import functools
import random
from collections.abc import Callable, Mapping
from typing import cast

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from tests.protocols.structured import StructuredNetwork

DIGITS = 4
SIZE = 4**DIGITS
FILTERS = [*(f"x > {bound}" for bound in range(6)), "x BETWEEN 1 AND 2", "x = 3", "y > 0", "x > 2 AND y > 0"]
EVENTS = ({"x": 1, "y": 0}, {"x": 3, "y": 1}, {"x": 9, "y": 0}, {"y": 1})


class Model(RuleBasedStateMachine):
    """The network and, beside it, which node wants what."""

    def __init__(self, routing: str, resets: bool) -> None:
        super().__init__()
        self.network = StructuredNetwork(
            routing=routing, digits=DIGITS, nodes_max=400, parameters={routing: {"resets": resets}}
        )
        self.wanted: set[tuple[str, str]] = set()
        self.started = 0
        self.used: set[int] = set()
        self.crashed = False
        self.rng = random.Random(1)
        for identifier in (0, 77, 130, 131, 200):
            self._join(identifier)
        self.network.quiet()

    def teardown(self) -> None:
        self.settle_and_publish()
        self.network.close()

    def _join(self, identifier: int) -> None:
        peers = self.network.up
        self.network.start(f"n{self.started}", identifier, self.rng.sample(peers, len(peers)))
        self.started += 1
        self.used.add(identifier)

    @rule(identifier=st.integers(0, SIZE - 1))
    def join(self, identifier: int) -> None:
        if identifier not in self.used and self.started < 60:
            self._join(identifier)

    @rule(number=st.integers(0, 999), wanted=st.sampled_from(FILTERS))
    def subscribe(self, number: int, wanted: str) -> None:
        name = self.network.up[number % len(self.network.up)]
        if (name, wanted) not in self.wanted:
            self.wanted.add((name, wanted))
            self.network.subscribe(name, wanted)

    @precondition(lambda self: self.wanted)
    @rule(number=st.integers(0, 999))
    def unsubscribe(self, number: int) -> None:
        name, wanted = sorted(self.wanted)[number % len(self.wanted)]
        self.wanted.remove((name, wanted))
        self.network.unsubscribe(name, wanted)

    @precondition(lambda self: len(self.network.up) > 4)
    @rule(number=st.integers(0, 999))
    def crash(self, number: int) -> None:
        self._gone(self.network.up[number % len(self.network.up)])

    @precondition(lambda self: len(self.network.up) > 4)
    @rule(number=st.integers(0, 999))
    def leave(self, number: int) -> None:
        """Withdraw everything, and go when that has been told."""
        name = self.network.up[number % len(self.network.up)]
        for _, wanted in sorted(each for each in self.wanted if each[0] == name):
            self.wanted.remove((name, wanted))
            self.network.unsubscribe(name, wanted)
        self.network.quiet()
        self._gone(name)

    @rule(number=st.integers(0, 999))
    def restart(self, number: int) -> None:
        """A node that was down is back with its identifier, as a new one."""
        down = [name for name, node in self.network.runtime.nodes.items() if node.down]
        if down:
            name = down[number % len(down)]
            self.network.start(
                name, self.network.pastry(name).own, self.rng.sample(self.network.up, len(self.network.up))
            )

    @rule(us=st.sampled_from((500, 1_000, 5_000, 700_000)))
    def let_time_pass(self, us: int) -> None:
        self.network.runtime.run(until_us=self.network.runtime.now_us + us)

    @rule()
    def settle_and_publish(self) -> None:
        self.network.rounds(6) if self.crashed else self.network.quiet()
        self.crashed = False
        for attributes in EVENTS:
            publisher = self.rng.choice(self.network.up)
            event = self.network.publish(publisher, attributes)
            self.network.quiet()
            interested = {name for name, wanted in self.wanted if FILTER_MATCHES[wanted](attributes)}
            assert self.network.got(event) == dict.fromkeys(interested, 1), f"{attributes} from {publisher}"

    @invariant()
    def nobody_contradicts_itself(self) -> None:
        self.network.runtime.check_invariants()

    def _gone(self, name: str) -> None:
        """Crash the node; not before the others have joined, if they could not join without it."""
        joined = {each for each in self.network.up if self.network.pastry(each).joined} - {name}
        joining = set(self.network.up) - joined - {name}
        if any(not joined & set(self.network.pastry(each).place.bootstrap) for each in joining) or not joined:
            self.network.rounds(3)
        self.network.crash(name)
        self.wanted = {each for each in self.wanted if each[0] != name}
        self.crashed = True


def _above(bound: int, event: Mapping[str, int]) -> bool:
    return event.get("x", -1) > bound


FILTER_MATCHES: dict[str, Callable[[dict[str, int]], bool]] = {
    **{f"x > {bound}": functools.partial(_above, bound) for bound in range(6)},
    "x BETWEEN 1 AND 2": lambda event: 1 <= event.get("x", -1) <= 2,
    "x = 3": lambda event: event.get("x") == 3,
    "y > 0": lambda event: event.get("y", 0) > 0,
    "x > 2 AND y > 0": lambda event: event.get("x", -1) > 2 and event.get("y", 0) > 0,
}


@pytest.mark.parametrize("resets", [True, False])
@pytest.mark.parametrize("routing", ["irbr", "irbr_members", "scribe", "rpf", "rpf_receiver"])
def test_after_settling_every_event_reaches_exactly_the_interested_nodes_once(routing: str, resets: bool) -> None:
    # A quarter of the profile's examples: 25, or 500 with --hypothesis-profile=long.
    given = settings(max_examples=settings().max_examples // 4, stateful_step_count=25, deadline=None)
    machine = cast(type[Model], functools.partial(Model, routing, resets))  # hypothesis only calls it
    run_state_machine_as_test(machine, settings=given)
