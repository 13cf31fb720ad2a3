"""IRBR section 5.3 of its baseline: covering looked for where a filter arrives (`rpf: {covering: receiver}`)."""

import random
from collections.abc import Mapping
from typing import Any

import pytest

from murmur_pubsub.filter import Filter
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.machine import LinkDown, NodeContext, Received, Start
from murmur_pubsub.places import RingPlace
from murmuration.hunt.schedule import draw_schedule
from murmuration.hunt.space import space_of
from murmuration.hunt.symptoms import tried
from routing.pastry.messages import PastryPeer
from routing.rpf.covering import PathParameters
from routing.rpf.router import PathFilter, PathWithdrawn, ReversePathForwarding
from tests.protocols.one_node import sent
from tests.protocols.structured import StructuredNetwork
from tests.schedules import examples

WIDE, MIDDLE, NARROW = (parse_filter(f"x > {bound}") for bound in (1, 3, 5))
FIRST, SECOND = PastryPeer("first", 128), PastryPeer("second", 192)
BELOW = PastryPeer("below", 1)
"""The node is 2: the first two share no digit with it, and what comes from them goes on to the third."""


def node(covering: str = "receiver") -> ReversePathForwarding:
    parameters = PathParameters(covering=covering)  # type: ignore[arg-type]
    router = ReversePathForwarding(NodeContext("n", 1, place=RingPlace(2, digits=4, leaf_set=4)), parameters)
    router.handle(Start([]), 0)
    router.know([FIRST, SECOND, BELOW])
    return router


def told(router: ReversePathForwarding, peer: PastryPeer, *filters: Filter) -> list[tuple[str, Any]]:
    """What the node sends when the peer has sent these."""
    effects = [each for wanted in filters for each in router.handle(Received(peer.name, PathFilter(peer, wanted)), 1)]
    router.check_invariants()
    return sent(effects)


def withdrawn(router: ReversePathForwarding, peer: PastryPeer, wanted: Filter) -> list[tuple[str, Any]]:
    effects = router.handle(Received(peer.name, PathWithdrawn(wanted)), 2)
    router.check_invariants()
    return sent(effects)


def test_a_filter_goes_on_unless_the_same_neighbour_has_sent_one_that_covers_it() -> None:
    for covering, from_another in (("receiver", [("below", MIDDLE)]), ("sender", [])):
        router = node(covering)
        assert [to for to, _ in told(router, FIRST, WIDE)] == ["below"]
        assert told(router, FIRST, NARROW) == []
        assert [(to, each.filter) for to, each in told(router, SECOND, MIDDLE)] == from_another


def test_what_own_subscribers_want_is_a_source_of_its_own() -> None:
    router = node()
    assert len(sent(router.subscribe(WIDE))) == 3
    assert sent(router.subscribe(NARROW)) == []
    assert [to for to, _ in told(router, FIRST, MIDDLE)] == ["below"]
    exposed = sent(router.unsubscribe(WIDE))
    narrow, gone = PathFilter(router.pastry.me, NARROW), PathWithdrawn(WIDE)
    assert exposed == [(to, each) for to in ("first", "second", "below") for each in (narrow, gone)]
    router.check_invariants()


def test_a_withdrawal_sends_first_what_it_alone_had_covered_of_the_same_neighbours() -> None:
    router = node()
    told(router, FIRST, WIDE, MIDDLE, NARROW)
    assert withdrawn(router, FIRST, MIDDLE) == [], "it was never sent on"
    again = ("below", PathFilter(router.pastry.me, NARROW))
    assert withdrawn(router, FIRST, WIDE) == [again, ("below", PathWithdrawn(WIDE))]
    assert withdrawn(router, FIRST, NARROW) == [("below", PathWithdrawn(NARROW))]


def test_a_filter_that_went_on_before_a_wider_one_is_withdrawn_by_itself() -> None:
    router = node()
    assert len(told(router, FIRST, NARROW, WIDE)) == 2
    assert withdrawn(router, FIRST, NARROW) == [("below", PathWithdrawn(NARROW))]
    told(router, FIRST, NARROW)
    again = ("below", PathFilter(router.pastry.me, NARROW))
    assert withdrawn(router, FIRST, WIDE) == [again, ("below", PathWithdrawn(WIDE))]


def test_what_another_neighbour_wants_exactly_stays_when_one_withdraws_it_or_fails() -> None:
    router = node()
    assert len(told(router, FIRST, NARROW)) == 1
    assert told(router, SECOND, NARROW) == [], "it has been sent"
    assert withdrawn(router, FIRST, NARROW) == []
    told(router, FIRST, WIDE, NARROW)
    gone = sent(router.handle(LinkDown("second", "reset"), 3), PathWithdrawn)
    assert gone == [], "the first neighbour wants it"
    assert withdrawn(router, FIRST, NARROW) == [("below", PathWithdrawn(NARROW))]
    router.check_invariants()


def test_a_new_child_is_told_the_widest_filters_of_each_source() -> None:
    router = node()
    router.subscribe(MIDDLE)
    told(router, FIRST, NARROW)
    told(router, SECOND, WIDE, MIDDLE)
    near = PastryPeer("near", 16)
    router.know([near])
    assert list(router._forwarded[near]) == [MIDDLE, NARROW, WIDE]
    router.check_invariants()


def messages(covering: str) -> tuple[int, int]:
    """Of 50 subscriptions of random nodes, and of an event from each node."""
    network = StructuredNetwork("rpf_receiver" if covering == "receiver" else "rpf")
    network.build(random.Random(7).sample(range(256), 30))
    rng = random.Random(3)
    for _ in range(50):
        network.subscribe(rng.choice(network.up), f"x > {rng.randrange(10_000)}")
        network.quiet()
    filters = network.sent("PathFilter")
    for publisher in network.up:
        network.publish(publisher, {"x": rng.randrange(10_000)})
        network.quiet()
    network.close()
    return filters, network.sent("Forwarded")


def test_it_takes_more_filters_than_covering_at_the_sender_and_as_many_events() -> None:
    receiver, sender = messages("receiver"), messages("sender")
    assert 1.3 * sender[0] < receiver[0] < 50 * 29
    assert receiver[1] == sender[1]


def schedule(seed: int) -> Mapping[str, Any]:
    return draw_schedule(random.Random(seed), space_of("rpf", "best_effort", {"rpf": {"covering": "receiver"}}))


@examples(3, 600)
def test_random_schedules_lose_only_what_a_fault_explains(examples: int) -> None:
    for seed in range(1_410_000, 1_410_000 + examples):
        data = schedule(seed)
        assert data["broker"]["parameters"]["rpf"]["covering"] == "receiver"
        played = tried(data)
        assert played.symptom is None, f"schedule({seed}): {played.symptom}"


@pytest.mark.parametrize("covering", ["sender", "receiver"])
def test_a_scenario_names_the_covering(covering: str) -> None:
    parameters = {"rpf": {"covering": covering}}
    assert space_of("rpf", "best_effort", parameters).broker["parameters"] == parameters
    assert "covering" not in space_of("rpf", "best_effort").parameters["rpf"]
