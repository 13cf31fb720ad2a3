"""Pastry as the IRBR paper's section 2.2 has it: identifiers, tables, joining, routing, failures and repair."""

import random
from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from murmur_pubsub.errors import InputError, WireError
from murmur_pubsub.faults import Fault, FaultKind
from murmur_pubsub.links import Delay
from murmur_pubsub.machine import Input, LinkDown, NodeContext, Received, Send, SetTimer, Start, TimerFired
from murmur_pubsub.places import RingPlace
from murmuration.deployment.bootstrap import join_plan
from routing.pastry.changes import CellFilled
from routing.pastry.identifiers import IdentifierRange, IdentifierSpace
from routing.pastry.known_peers import KnownPeers
from routing.pastry.leaf_set import LeafSet
from routing.pastry.messages import (
    Arrived,
    Hello,
    JoinReply,
    JoinRequest,
    PastryPeer,
    Ping,
    Pong,
    RepairRequest,
    Welcome,
)
from routing.pastry.node import Pastry
from routing.pastry.sense import sense_of
from tests.protocols.structured import StructuredNetwork
from workloads.overlay import Structured, structured

SPACE = IdentifierSpace(4, 4)


def identifier(text: str) -> int:
    """Of digits in base 4."""
    return int(text, 4)


@pytest.mark.parametrize(("said", "is_one"), [(-1, False), (0, True), (255, True), (256, False)])
def test_a_peer_whose_identifier_is_none_of_the_space_is_a_wire_error(said: int, is_one: bool) -> None:
    check = sense_of(Hello, SPACE)
    hello = Hello(PastryPeer("p", said), True)
    if is_one:
        check(hello)
        return
    with pytest.raises(WireError, match="has no identifier of 4 digits in base 4"):
        check(hello)


@pytest.fixture
def network() -> Iterator[StructuredNetwork]:
    made = StructuredNetwork()
    yield made
    made.close()


def test_pastry_s2_identifiers_share_leading_digits() -> None:
    assert SPACE.text(identifier("0213")) == "0213"
    assert SPACE.shared(identifier("1203"), identifier("1210")) == 2
    assert SPACE.shared(identifier("1203"), identifier("1203")) == 4
    assert SPACE.shared(identifier("1203"), identifier("3203")) == 0
    wide = SPACE.range_of(identifier("1203"), 2)
    assert wide == IdentifierRange(identifier("12"), 2)
    assert SPACE.contains(wide, identifier("1233"))
    assert not SPACE.contains(wide, identifier("1300"))
    assert SPACE.within(SPACE.range_of(identifier("1231"), 3), wide)
    assert not SPACE.within(wide, SPACE.range_of(identifier("1231"), 3))


def test_irbr_s5_the_middle_identifier_of_a_range_is_the_papers() -> None:
    """5.5: "if the identifier digit number is 4 and the base 4, the middle_id of prefix 12 is 1220"."""
    assert SPACE.middle(IdentifierRange(identifier("12"), 2)) == identifier("1220")
    assert SPACE.middle(SPACE.range_of(identifier("0213"), 4)) == identifier("0213")


@given(st.sampled_from((2, 4, 16)), st.data())
def test_pastry_s2_shared_digits_by_the_text(base: int, data: st.DataObject) -> None:
    space = IdentifierSpace(base, 5)
    first, second = (data.draw(st.integers(0, space.size - 1)) for _ in range(2))
    texts = [space.text(each) for each in (first, second)]
    same = next((at for at in range(5) if texts[0][at] != texts[1][at]), 5)
    assert space.shared(first, second) == same
    assert all(space.contains(space.range_of(first, length), second) == (length <= same) for length in range(6))


@given(st.sets(st.integers(0, 255), min_size=2, max_size=40), st.integers(0, 255), st.sets(st.integers(0, 39)))
def test_pastry_s2_the_leaf_set_holds_the_nearest_on_each_side(identifiers: set[int], key: int, gone: set[int]) -> None:
    own, *others = sorted(identifiers)
    leaves = LeafSet(SPACE, own, 8)
    for other in others:
        leaves.add(PastryPeer(f"n{other}", other))
    for number in gone:
        if number < len(others):
            leaves.remove(f"n{others[number]}")
    up = sorted(leaves, key=lambda peer: (peer.identifier - own) % 256)
    left = {peer.identifier for peer in leaves}
    if not gone:
        assert left == {*others[:4], *others[-4:]}
    closest = leaves.closest(key)
    best = min([own, *(peer.identifier for peer in up)], key=lambda each: (SPACE.distance(each, key), each))
    assert (own if closest is None else closest.identifier) == best


CIRCLED = [32769, 32756, 32781, 32758, 32780, 32759, 32768]
"""The third and the fourth sent each other what the first looked for, without an end (irbr/end_to_end 2000427)."""


@given(
    st.lists(st.integers(0, 4**8 - 1) | st.integers(32_750, 32_790), min_size=2, max_size=14, unique=True),
    st.sampled_from((4, 8)),
    st.integers(0, 99),
)
@example(CIRCLED, 4, 14)
def test_a_search_for_a_place_that_a_node_has_itself_ends_whoever_passes_it_on(
    identifiers: list[int], leaf_set: int, seed: int
) -> None:
    """A node looks for whoever else is nearest to its own identifier. It is a leaf of those on the way, and they pass
    it by: then a leaf set reaches less far on that side."""
    space, rng = IdentifierSpace(4, 8), random.Random(seed)
    peers = [PastryPeer(f"n{number}", identifier) for number, identifier in enumerate(identifiers)]
    known = {}
    for peer in peers:
        known[peer.name] = KnownPeers(space, peer.identifier, leaf_set)
        for other in rng.sample(peers, len(peers)):
            if other is not peer:
                known[peer.name].take_in(other)
    for seeking in peers:
        nearest = min(
            (peer for peer in peers if peer is not seeking),
            key=lambda peer: (space.distance(peer.identifier, seeking.identifier), peer.identifier),
        )
        for first in peers:
            at, passed = first, set[str]()
            while first is not seeking and (hop := known[at.name].next_hop(seeking.identifier, seeking.name)):
                passed.add(at.name)
                assert hop is not seeking
                assert hop.name not in passed, f"a search for {seeking} from {first} comes to {hop} again"
                at = hop
            if first is not seeking and len(peers) - 1 <= leaf_set // 2:
                assert at == nearest  # all know all


def test_pastry_s2_a_message_gets_to_the_closest_node_in_few_hops(network: StructuredNetwork) -> None:
    rng = random.Random(1)
    network.build(rng.sample(range(256), 60))
    network.check_overlay()
    nodes = {name: network.pastry(name) for name in network.up}
    hops = []
    for key in range(256):
        at = rng.choice(list(nodes))
        count = 0
        while (hop := nodes[at].next_hop(key)) is not None:
            at, count = hop.name, count + 1
        hops.append(count)
        closest = min(nodes.values(), key=lambda node: (SPACE.distance(node.own, key), node.own))
        assert nodes[at] is closest
    assert max(hops) <= 4 + 1
    assert sum(hops) / len(hops) < 3.2


@given(
    st.lists(st.integers(0, 255), min_size=1, max_size=24, unique=True),
    st.integers(0, 99),
    st.sampled_from((4, 8, 16)),
)
@settings(max_examples=60)
def test_pastry_s2_concurrent_joins_leave_complete_tables(identifiers: list[int], seed: int, leaf_set: int) -> None:
    """All join at once through random earlier nodes, on links that reorder: once quiet, no table lacks a node."""
    rng = random.Random(seed)
    network = StructuredNetwork(delay=Delay("uniform", 300, 5_000), seed=seed, leaf_set=leaf_set)
    for number, each in enumerate(identifiers):
        network.start(f"n{number}", each, [f"n{rng.randrange(number)}"] if number else [])
    network.quiet()
    network.check_overlay()
    network.close()


def test_pastry_s2_joins_wait_for_a_bootstrap_peer_that_is_joining(network: StructuredNetwork) -> None:
    network.start("n0", 0)
    network.start("n1", 77, ["n0"])
    network.start("n2", 200, ["n1"])
    network.quiet()
    network.check_overlay()


def test_pastry_s2_nodes_that_start_for_the_first_time_wait_for_a_founder_that_is_late(
    network: StructuredNetwork,
) -> None:
    for name, peer, own in (("n1", "n2", 77), ("n2", "n1", 200)):
        network.start(name, own, [peer, "n0"])
    network.rounds(30)
    assert not any(network.pastry(name).joined for name in network.up)
    network.start("n0", 0)
    network.rounds(2)
    network.check_overlay()


def test_pastry_s2_a_node_tries_its_next_bootstrap_peer(network: StructuredNetwork) -> None:
    network.build([0, 17])
    network.crash("n1")
    network.start("n2", 99, ["n1", "n0"])
    network.rounds(2)
    network.check_overlay()


def test_pastry_s2_a_node_whose_second_request_is_lost_too_asks_a_third_time() -> None:
    """The only peer of the first reply was dead; the second request has no reply."""
    node = Pastry(NodeContext("n", 1, place=RingPlace(5, bootstrap=("a", "b", "c"))))
    sent: list[Send] = []
    reply = Received("a", JoinReply([("dead", 9, 0)]))
    settle, join = (TimerFired(("routing", "pastry", name)) for name in ("settle", "join"))
    inputs: list[Input] = [Start([]), reply, settle, join]
    for now_us, taken in enumerate(inputs):
        sent += [each for each in node.handle(taken, now_us) if isinstance(each, Send)]
    assert [each.to for each in sent if isinstance(each.message, JoinRequest)] == ["a", "b", "c"]
    assert not node.joined


def test_pastry_s2_who_answers_only_when_the_asking_node_has_joined_is_told_that_it_has() -> None:
    """It was asked before, and takes in nobody who has not joined: neither would know of the other."""
    node = Pastry(NodeContext("n", 1, place=RingPlace(identifier("1111"), digits=4, leaf_set=4, bootstrap=("a",))))
    first, late = PastryPeer("a", identifier("2000")), PastryPeer("late", identifier("3000"))
    node.handle(Start([]), 0)
    node.handle(Received("a", JoinReply([first, late])), 1)
    node.handle(Received("a", Welcome(first, True, False, [])), 2)
    assert not node.joined
    node.handle(TimerFired(("routing", "pastry", "settle")), 3)
    assert node.joined
    effects = node.handle(Received("late", Welcome(late, True, False, [])), 4)
    assert Send("late", Hello(node.me, True)) in effects


def test_pastry_s2_failures_are_found_and_tables_repaired(network: StructuredNetwork) -> None:
    rng = random.Random(5)
    network.build(rng.sample(range(256), 80))
    for name in rng.sample(network.up, 16):
        network.crash(name)
    network.rounds(4)
    network.check_overlay()


def test_pastry_s2_a_failed_peer_is_replaced_as_soon_as_it_is_found(network: StructuredNetwork) -> None:
    """2.2: "try to find a node of the corresponding identifier range to repair the routing table"."""
    network.build([identifier(text) for text in ("0000", "1000", "1111", "2000", "3000", "0123")])
    first = network.pastry("n0")
    cell = first.table.cell_of(identifier("1000"))
    before = first.table.get(cell)
    assert before is not None
    network.crash(before.name)
    network.rounds(1)
    after = first.table.get(cell)
    assert after is not None
    assert after.name == {"n1": "n2", "n2": "n1"}[before.name]


def test_pastry_s2_a_restarted_node_is_a_new_one(network: StructuredNetwork) -> None:
    network.build([3, 60, 120, 180, 240])
    network.crash("n2")
    network.start("n2", 120, ["n0"])  # before anybody missed it
    network.rounds(1)
    network.check_overlay()
    for name in ("n0", "n1", "n3", "n4"):
        assert any(peer == PastryPeer("n2", 120, 1) for peer in network.pastry(name).leaves)


def test_pastry_s2_probes_leave_the_network_still_in_between(network: StructuredNetwork) -> None:
    network.build([1, 2, 3, 100])
    network.rounds(3)
    start_us = network.runtime.now_us
    busy = 0
    while network.runtime.now_us < start_us + 4_000_000:
        network.runtime.run(until_us=network.runtime.now_us + 10_000)
        busy += any(network.runtime.in_flight)
    assert busy <= 4, "of 400 glances most must find nothing on its way, or no run would ever end"


def alone(text: str, *known: PastryPeer) -> Pastry:
    """A node that has founded the overlay and knows these."""
    node = Pastry(NodeContext("n", 1, place=RingPlace(identifier(text), digits=4, leaf_set=4)))
    node.handle(Start([]), 0)
    node.know(known)
    node.take_changes()
    return node


def test_pastry_s2_rounds_begin_at_all_nodes_at_once_whenever_they_start() -> None:
    node = Pastry(NodeContext("n", 1, place=RingPlace(5, probe_us=2_000_000, probe_timeout_us=500_000)))
    (timer,) = (each for each in node.handle(Start([]), 5_300_000) if isinstance(each, SetTimer))
    assert timer.delay_us == 700_000
    (again, *_) = node.handle(TimerFired(timer.key), 6_000_000)
    assert again == SetTimer(timer.key, 2_000_000)


@pytest.mark.parametrize(
    ("cell", "told"),
    [("1", ["near", "n"]), ("11", ["n"]), ("2", ["far"]), ("3", None)],
    ids=["peers there and itself", "itself", "a peer there", "nobody"],
)
def test_pastry_s2_who_is_asked_who_may_stand_for_a_range_names_all_it_knows_there(
    cell: str, told: list[str] | None
) -> None:
    node = alone("1111", PastryPeer("near", identifier("1211")), PastryPeer("far", identifier("2000")))
    answer = list(node.handle(Received("far", RepairRequest((identifier(cell), len(cell)))), 1))
    sent = [(each.to, [PastryPeer(*peer).name for peer in each.message.known]) for each in answer]  # type: ignore[union-attr]
    assert sent == ([] if told is None else [("far", told)])


def test_pastry_s2_a_new_node_in_the_place_of_a_failed_one_has_to_learn_everything() -> None:
    """The layer above sends a mere substitute only what came after its predecessor was last heard."""
    new, cell = PastryPeer("new", identifier("2100")), IdentifierRange(2, 1)
    node = alone("1111", PastryPeer("old", identifier("2000")))
    node.handle(LinkDown("old", "reset"), 10)
    node.handle(Received("other", Arrived(new, (0, 0))), 20)
    assert [each for each in node.take_changes() if isinstance(each, CellFilled)] == [CellFilled(cell, new, None)]
    node.handle(Received("new", Arrived(new, (0, 0))), 30)
    assert node.take_changes() == [CellFilled(cell, new, None)], "known by hearsay, and now it arrives itself"


def test_pastry_s2_a_silent_peer_is_asked_three_times_in_a_round() -> None:
    """Messages may get lost."""
    node = alone("1111", PastryPeer("silent", identifier("2000")), PastryPeer("there", identifier("3000")))
    asked: list[str] = []
    keys = ["round", "deadline", "deadline", "deadline"]
    for now_us, key in enumerate(keys, 1):
        effects = node.handle(TimerFired(("routing", "pastry", key)), now_us)
        asked += [each.to for each in effects if isinstance(each, Send) and isinstance(each.message, Ping)]
        if key == "round":
            node.handle(Received("there", Pong(PastryPeer("there", identifier("3000")), 0, 0, [])), now_us)
        assert ("silent" in node.peers) == (now_us < len(keys))
    assert asked == ["silent", "there", "silent", "silent"]


def test_pastry_s2_an_empty_row_is_asked_for_in_its_turn() -> None:
    """Only peers that share more digits have the row, and no answer of theirs would have it unasked."""
    node = alone("1111", PastryPeer("near", identifier("1112")), PastryPeer("far", identifier("2000")))
    asked: set[int] = set()
    for number in range(1, 4):
        sent = node.handle(TimerFired(("routing", "pastry", "round")), number * node.place.probe_us)
        pings = [each.message for each in sent if isinstance(each, Send) and each.to == "near"]
        asked |= {ping.row for ping in pings if isinstance(ping, Ping)}
    assert asked == {1, 2, 3}
    told = [PastryPeer("third", identifier("1300")), PastryPeer("second", identifier("1200"))]
    effects = node.handle(Received("near", Pong(node.me, 0, 0, told)), 4)
    assert [each.to for each in effects if isinstance(each, Send) and isinstance(each.message, Hello)] == [
        "third",
        "second",
    ]


@pytest.mark.parametrize(
    ("row", "leaf", "told"),
    [(0, False, set()), (1, False, {"far"}), (3, False, set()), (0, True, {"l-2", "l-1", "far", "l2"})],
)
def test_pastry_s2_a_probe_is_answered_with_the_row_that_it_asks_for_and_to_a_leaf_with_what_is_nearer(
    row: int, leaf: bool, told: set[str]
) -> None:
    """The asking node shares one digit: rows 1 and 2 are its own too. Its nearest are two on each side."""
    near = [PastryPeer(f"l{step}", identifier("1111") + step) for step in (-2, -1, 1, 2)]
    node = alone("1111", *near, PastryPeer("far", identifier("2000")))
    asking = PastryPeer("asking", identifier("1000"))
    (pong,) = (
        each.message
        for each in node.handle(Received("asking", Ping(asking, 0, row, leaf)), 1)
        if isinstance(each, Send) and isinstance(each.message, Pong)
    )
    assert {name for name, *_ in pong.known} == told


def test_pastry_s2_of_a_peer_that_has_failed_nothing_is_remembered(network: StructuredNetwork) -> None:
    """Under churn thousands come and go."""
    network.build([3, 60, 120, 180, 240])
    network.crash("n2")
    network.rounds(2)
    for name in ("n0", "n1", "n3", "n4"):
        assert set(network.pastry(name)._heard_us) >= set(network.pastry(name).peers.names)
        assert "n2" not in network.pastry(name)._heard_us


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"base": 6}, "power of two"),
        ({"brokers": 300, "digits": 4}, "at most 256"),
        ({"brokers": 2, "digits": 4, "identifiers": (3, 256)}, "0 to 255"),
        ({"brokers": 2, "identifiers": (3, 3)}, "a different one for each"),
        ({"brokers": 2, "identifiers": (3,)}, "one a broker"),
        ({"brokers": 2, "bootstrap": "b2"}, "a broker"),
        ({"brokers": 0}, "at least 1"),
    ],
)
def test_bad_structured_overlays_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Structured(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"identifier": 256, "digits": 4}, "0 to 255"),
        ({"identifier": 1, "base": 3}, "power of two"),
        ({"identifier": 1, "digits": 99}, "1 to 31 digits"),
        ({"identifier": 1, "leaf_set": 5}, "an even number"),
        ({"identifier": 1, "probe_us": 100, "probe_timeout_us": 100}, "below the time between"),
    ],
)
def test_bad_pastry_parameters_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Pastry(NodeContext("n", 1, place=RingPlace(**options)))  # type: ignore[arg-type]


def test_joining_through_a_dead_node_is_refused() -> None:
    overlay = structured(Structured(brokers=4, bootstrap="b1"), 1)
    plan = [Fault(1, FaultKind.KILL, ("b2",)), Fault(2, FaultKind.KILL, ("b1",)), Fault(3, FaultKind.RESTART, ("b2",))]
    assert join_plan(overlay, plan[:2], frozenset(), {}, 1)["b2"].bootstrap == ("b1",)
    with pytest.raises(InputError, match="'b1', which is down when it should let in: restart b2"):
        join_plan(overlay, plan, frozenset(), {}, 1)
    back = Fault(4, FaultKind.RESTART, ("b1",))
    clients = [Fault(1, FaultKind.KILL, ("b1",)), Fault(2, FaultKind.RESTART, ("c0",)), back]
    assert join_plan(overlay, clients, frozenset(), {}, 1)["b1"].bootstrap, "a client joins nothing, and b1 asks others"
    assert join_plan(overlay, [*plan[:2], back, plan[2]], frozenset(), {}, 1)
    hosts = {"b0": 0, "b1": 1, "b2": 1, "b3": 2, "c0": 3}
    lost = [Fault(number, FaultKind.LOSE_HOST, host=number) for number in (1, 2, 3)]
    returned = {number: Fault(5, FaultKind.RETURN_HOST, host=number) for number in (1, 2, 3)}
    assert join_plan(overlay, [*lost, returned[3], returned[1], returned[2]], frozenset(), hosts, 1)
    with pytest.raises(InputError, match="'b1', which is down when it should let in"):
        join_plan(overlay, [*lost, returned[2]], frozenset(), hosts, 1)
    with pytest.raises(InputError, match="not there at the start"):
        join_plan(overlay, [], frozenset({"b1"}), {}, 1)
    with pytest.raises(InputError, match="there from the start"):
        join_plan(structured(Structured(brokers=2), 1), [], frozenset({"b0", "b1"}), {}, 1)
    several = join_plan(structured(Structured(brokers=8), 1), plan, frozenset({"b0"}), {}, 1)
    assert several["b1"].founds
    assert all(len(place.bootstrap) > 1 and "b0" not in place.bootstrap for place in several.values())
