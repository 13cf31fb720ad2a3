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


@pytest.mark.parametrize("stay", [(2.0, 1.0), (-1.0, 1.0), (1.0, 1.0)])
def test_a_visit_that_ends_before_it_begins_is_refused(stay: tuple[float, float]) -> None:
    with pytest.raises(InputError, match="visits"):
        PacedOptions({"b0": 1}, {}, visits={"b1": (stay,)})


def test_a_visit_to_no_broker_is_refused() -> None:
    with pytest.raises(InputError, match="visits"):
        build_paced(OVERLAY, PacedOptions({"b0": 1}, {}, visits={"b9": ((1.0, 2.0),)}), 1)


def test_padding_is_no_negative_number() -> None:
    with pytest.raises(InputError, match=r"workload\.padding: found -1; allowed: 0 or more bytes"):
        PacedOptions({"b0": 1}, {"b1": 1}, padding=-1)
