"""IRBR that enters a range at a member: every message is a delivery, and members that are gone are passed by."""

import random
from collections.abc import Iterator

import pytest

from murmur_pubsub.errors import WireError
from murmur_pubsub.event import Event
from murmur_pubsub.filter_parser import parse_filter
from routing.irbr.messages import MemberSummary, MemberTransfer
from tests.protocols.structured import PROBE_TIMEOUT_US, ROUND_US, StructuredNetwork

NODES = 60


@pytest.fixture
def network() -> Iterator[StructuredNetwork]:
    made = StructuredNetwork("irbr_members")
    yield made
    made.close()


def filled(network: StructuredNetwork, seed: int) -> dict[str, list[str]]:
    """Nodes with random identifiers, of which each wants one of eight values; what each wants."""
    rng = random.Random(seed)
    network.build(rng.sample(range(4**4), NODES))
    wanted = {}
    for number in range(NODES):
        value = rng.randrange(8)
        wanted[f"n{number}"] = [f"x = {value}"]
        network.subscribe(f"n{number}", f"x = {value}")
        network.quiet()
    return wanted


def messages_of(network: StructuredNetwork, publisher: str, value: int) -> tuple[int, dict[str, int]]:
    """How many messages an event took, and whom it reached."""
    before = network.sent("Forwarded")
    event = network.publish(publisher, {"x": value})
    network.quiet()
    return network.sent("Forwarded") - before, network.got(event)


def interested(wanted: dict[str, list[str]], value: int) -> dict[str, int]:
    return {name: 1 for name, texts in wanted.items() if f"x = {value}" in texts}


def warmed_up(network: StructuredNetwork, value: int) -> None:
    """The members that events of this value need on their way have been probed: each on the way finds the next."""
    for _ in range(5):
        messages_of(network, "n0", value)
        network.rounds(1)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_once_members_answer_every_message_is_a_delivery(network: StructuredNetwork, seed: int) -> None:
    wanted = filled(network, seed)
    network.check_filter_tables(wanted)
    for value in range(8):
        first, reached = messages_of(network, "n0", value)
        assert reached == interested(wanted, value)
        warmed_up(network, value)
        messages, reached = messages_of(network, "n0", value)
        assert reached == interested(wanted, value)
        assert messages == len(reached) - ("n0" in reached) <= first


def test_a_member_is_not_relied_on_before_it_has_answered(network: StructuredNetwork) -> None:
    wanted = filled(network, 4)
    value = next(value for value in range(8) if "n0" not in interested(wanted, value))
    router = network.router("n0")
    members = {router._members[entry].name for entry in router.table.matching_entries({"x": value})}
    assert members <= interested(wanted, value).keys()
    event = Event(0, 1, 0, {"x": value})
    standing = {wide: peer.name for wide, peer in network.pastry("n0").table.cells()}
    hops = router.next_hops(event, None, ())
    assert [hop.peer for hop in hops] == [standing[hop.header] for hop in hops]
    assert {hop.peer for hop in hops} != members
    network.rounds(1)
    assert {hop.peer for hop in router.next_hops(event, None, ())} == members


@pytest.mark.parametrize("silently", [False, True])
def test_a_member_that_is_gone_is_passed_by_at_once_or_after_a_round(
    network: StructuredNetwork, silently: bool
) -> None:
    wanted = filled(network, 5)
    value = max(range(8), key=lambda each: len(interested(wanted, each)))
    warmed_up(network, value)
    answering = [name for name in network.router("n0")._answering if name in interested(wanted, value)]
    assert answering
    network.runtime.crash(answering[0], silently=silently)
    alive = {name: 1 for name in interested(wanted, value) if name != answering[0]}
    network.runtime.run(until_us=network.runtime.now_us + 10_000)
    at_once = messages_of(network, "n0", value)[1]
    assert at_once == alive or silently
    network.runtime.run(until_us=network.runtime.now_us + ROUND_US + PROBE_TIMEOUT_US)
    assert messages_of(network, "n0", value)[1] == alive


def test_a_member_that_wants_the_filter_no_more_only_passes_the_event_on(network: StructuredNetwork) -> None:
    wanted = filled(network, 6)
    value = max(range(8), key=lambda each: len(interested(wanted, each)))
    warmed_up(network, value)
    for name in list(network.router("n0")._answering):
        if name in interested(wanted, value) and len(interested(wanted, value)) > 2:
            network.unsubscribe(name, f"x = {value}")
            wanted[name] = []
            network.quiet()
            assert messages_of(network, "n0", value)[1] == interested(wanted, value)
    network.check_filter_tables(wanted)


def test_members_that_are_not_needed_are_probed_no_more_and_those_of_no_entry_forgotten(
    network: StructuredNetwork,
) -> None:
    wanted = filled(network, 7)
    for value in range(8):
        messages_of(network, "n0", value)
    router = network.router("n0")
    assert router._idle
    network.rounds(6)
    assert not router._idle
    assert not router._answering
    for name, texts in wanted.items():
        network.unsubscribe(name, texts[0])
        network.quiet()
    network.rounds(1)
    assert all(not network.router(name)._members for name in network.up)


def test_a_node_that_joins_later_learns_members(network: StructuredNetwork) -> None:
    wanted = filled(network, 8)
    free = next(number for number in range(4**4) if all(network.pastry(name).own != number for name in network.up))
    network.start("n99", free, ["n3"])
    network.rounds(3)
    router = network.router("n99")
    held = [entry for entry in router.table.matching_entries({"x": 1}) if entry in router._members]
    assert len(held) == len(router.table.matching_entries({"x": 1})) > 0
    for _ in range(5):
        messages_of(network, "n99", 1)
        network.rounds(1)
    assert messages_of(network, "n99", 1) == (len(interested(wanted, 1)), interested(wanted, 1))


def test_as_many_members_as_filters(network: StructuredNetwork) -> None:
    network.build([0, 1, 77])
    router, peer = network.router("n0"), ["n2", 77, 0]
    wanted = parse_filter("x = 1")
    for message in (MemberTransfer([[1, 1]], [wanted], [0, 0], []), MemberSummary(1, [wanted], [peer, peer])):
        with pytest.raises(WireError, match=r"members of|filters of"):
            router.receivers[type(message)]("n2", message)
