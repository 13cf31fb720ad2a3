"""IRBR's nodes change what they want while words about former changes are on their way and overtake each other: once
all is quiet, events reach whom they should, before any probe compares what two nodes have."""

from collections.abc import Sequence

import pytest

from murmur_pubsub.links import Delay
from tests.protocols.structured import StructuredNetwork
from tests.protocols.structured_chaos import changing_filters

_OVERTAKING = Delay("uniform", 300, 40_000)
_SMALL, _THREE = "x BETWEEN 1 AND 2", "x = 3"
_Change = tuple[int, str, str]
"""So long after the one before it, in microseconds, the node asks for the filter, or withdraws it."""


@pytest.mark.parametrize(
    ("identifiers", "seed", "changes", "value", "missed_without"),
    [
        (
            (15, 9, 10, 11), 5,
            [(20_000, "n1", _SMALL), (5_000, "n3", _THREE), (20_000, "n1", _THREE), (20_000, "n2", _THREE),
             (5_000, "n3", _THREE)],
            3, {"n1", "n2"},  # each stopped at the other's filter when it went on in the place of n3
        ),
        (
            (12, 15, 4, 2, 1), 1,
            [(5_000, "n3", _THREE), (500, "n3", _THREE), (20_000, "n4", _THREE)],
            3, {"n4"},  # it stopped at what n3 had withdrawn, whose cancellation had come before the subscription
        ),
        (
            (15, 8, 10), 0,
            [(20_000, "n2", _SMALL), (20_000, "n1", _SMALL), (5_000, "n2", _SMALL), (5_000, "n1", _SMALL),
             (500, "n2", _SMALL)],
            1, {"n2"},  # n1 said that it knew of its filter, and meant the one before
        ),
    ],
)  # fmt: skip
def test_a_few_changes_that_cross_lose_no_event(
    identifiers: Sequence[int], seed: int, changes: Sequence[_Change], value: int, missed_without: set[str]
) -> None:
    network = StructuredNetwork("irbr", 2, 4, _OVERTAKING, seed, 50)
    for number, identifier in enumerate(identifiers):
        network.start(f"n{number}", identifier, [f"n{(number - 1) // 2}"] if number else [], founds=not number)
        network.quiet()
    wanted: set[tuple[str, str]] = set()
    for after_us, name, text in changes:
        network.runtime.run(until_us=network.runtime.now_us + after_us)
        change = network.unsubscribe if (name, text) in wanted else network.subscribe
        change(name, text)
        wanted ^= {(name, text)}
    network.quiet()
    event = network.publish("n0", {"x": value})
    network.quiet()
    assert network.got(event) == dict.fromkeys(missed_without, 1)
    network.close()


@pytest.mark.parametrize("seed", [2, 14, 36, 330, *range(1_000, 1_016)])
def test_many_changes_that_cross_lose_no_event(seed: int) -> None:
    """Each of the first four was wrong without one of the mends (`benchmarks.mends`)."""
    changing_filters(seed)
