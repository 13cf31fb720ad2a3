"""The paced workload: subscribers that stay, and visitors."""

import pytest

from murmur_pubsub.errors import InputError
from workloads.overlay import Sized, chain
from workloads.paced import PacedOptions, build_paced

OVERLAY = chain(Sized(3), 1)


def test_visitors_come_and_go_and_are_numbered_after_those_who_stay() -> None:
    options = PacedOptions({"b0": 2}, {"b1": 1}, share=0.5, visits={"b2": ((0.5, 2.0), (1.0, 1.5))})
    clients = build_paced(OVERLAY, options, 1).clients
    assert [(plan.name, plan.broker) for plan in clients] == [
        ("c0", "b0"), ("c1", "b0"), ("c2", "b1"), ("c3", "b2"), ("c4", "b2"),
    ]  # fmt: skip
    wanted = "publisher = 1 AND x < 0.5"
    assert clients[2].subscriptions == ((0, "publisher = 0 AND x < 0.5"),)
    assert clients[3].subscriptions == ()
    assert clients[3].changes == ((500_000, "subscribe", 1, wanted), (2_000_000, "unsubscribe", 1, wanted))


def test_publishers_pause_and_take_turns() -> None:
    """Ten events a second for 2 s, but for those from 0.5 s on up to 1 s; two publishers are half a gap apart."""
    paused = build_paced(OVERLAY, PacedOptions({"b0": 1}, {}, rate_per_s=10, seconds=2, pauses=((0.5, 1.0),)), 1)
    times_us = [time_us for time_us, _, _ in paused.clients[0].publications]
    assert times_us == [100_000 * tenth for tenth in range(20) if not 5 <= tenth < 10]
    assert [event["n"] for _, _, event in paused.clients[0].publications][4:6] == [4, 10]
    two = build_paced(OVERLAY, PacedOptions({"b0": 1, "b2": 1}, {}, rate_per_s=10, seconds=0.2), 1)
    assert [[each[:2] for each in plan.publications] for plan in two.clients] == [
        [(0, 0), (100_000, 0)],
        [(50_000, 1), (150_000, 1)],
    ]


@pytest.mark.parametrize("stay", [(2.0, 1.0), (-1.0, 1.0), (1.0, 1.0)])
def test_a_visit_that_ends_before_it_begins_is_refused(stay: tuple[float, float]) -> None:
    with pytest.raises(InputError, match="visits"):
        PacedOptions({"b0": 1}, {}, visits={"b1": (stay,)})


def test_a_visit_to_no_broker_is_refused() -> None:
    with pytest.raises(InputError, match="visits"):
        build_paced(OVERLAY, PacedOptions({"b0": 1}, {}, visits={"b9": ((1.0, 2.0),)}), 1)


def test_padding_is_no_negative_number() -> None:
    with pytest.raises(InputError, match=r"workload\.padding: found -1; allowed: 0 to"):
        PacedOptions({"b0": 1}, {"b1": 1}, padding=-1)
