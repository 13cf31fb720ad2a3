"""Identifier range based routing, section by section of the paper; concurrent operations; a model of all of it."""

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from murmur_pubsub.errors import InputError
from murmur_pubsub.event import Event
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.links import Delay
from murmur_pubsub.machine import LinkDown, NodeContext, Send, Start
from murmur_pubsub.places import RingPlace
from murmuration.deployment.build_deployment import build as build_scenario
from murmuration.scenario.load import load_scenario
from routing.irbr.filter_table import FilterTable
from routing.irbr.lately import CONCURRENT_US
from routing.irbr.messages import RangeSubscription
from routing.irbr.router import Irbr, IrbrParameters
from routing.pastry.identifiers import IdentifierRange
from routing.pastry.messages import PastryPeer
from tests.protocols.structured import StructuredNetwork

OPERATIONS = ("RangeSubscription", "Cancellation")
EVERY_PREFIX = ["0000", "0001", "0002", "0010", "0013", "0020", "0100", "0123", "0122", "1000", "1203", "2222", "3100"]


@pytest.fixture
def network() -> Iterator[StructuredNetwork]:
    made = StructuredNetwork()
    yield made
    made.close()


def build(network: StructuredNetwork, texts: Sequence[str]) -> dict[str, str]:
    """Nodes with these identifiers; identifier to name."""
    network.build([int(text, 4) for text in texts])
    return {text: f"n{number}" for number, text in enumerate(texts)}


def reached(network: StructuredNetwork, publisher: str, attributes: Mapping[str, Any]) -> dict[str, int]:
    """Which nodes an event reaches, and how often."""
    event = network.publish(publisher, attributes)
    network.quiet()
    return network.got(event)


def test_irbr_s5_3_a_subscription_makes_an_entry_for_the_subscribers_range_everywhere(
    network: StructuredNetwork,
) -> None:
    at = build(network, EVERY_PREFIX)
    network.subscribe(at["0123"], "x > 0.5")
    network.quiet()
    network.check_filter_tables({at["0123"]: ["x > 0.5"]})
    assert network.sent("RangeSubscription") == len(EVERY_PREFIX) - 1, "one message for each other node"


def test_irbr_s5_3_a_covered_subscription_stays_within_the_range_that_holds_the_covering_one(
    network: StructuredNetwork,
) -> None:
    at = build(network, EVERY_PREFIX)
    network.subscribe(at["0122"], "x > 0.2")
    network.quiet()
    before = network.sent("RangeSubscription")
    network.subscribe(at["0123"], "x > 0.5")
    network.quiet()
    assert network.sent("RangeSubscription") - before == 1, "only the sibling with the same three digits has to know"
    network.check_filter_tables({at["0122"]: ["x > 0.2"], at["0123"]: ["x > 0.5"]})
    assert reached(network, at["3100"], {"x": 0.6}) == {at["0122"]: 1, at["0123"]: 1}
    assert reached(network, at["0122"], {"x": 0.6}) == {at["0122"]: 1, at["0123"]: 1}
    assert reached(network, at["3100"], {"x": 0.4}) == {at["0122"]: 1}


def test_irbr_s5_3_a_filter_covered_at_home_is_told_to_no_node(network: StructuredNetwork) -> None:
    at = build(network, EVERY_PREFIX)
    network.subscribe(at["0123"], "x > 0.2")
    network.quiet()
    before = network.sent(*OPERATIONS)
    network.subscribe(at["0123"], "x > 0.5")
    network.unsubscribe(at["0123"], "x > 0.5")
    network.quiet()
    assert network.sent(*OPERATIONS) == before


def test_irbr_s5_3_a_covering_subscription_takes_the_place_of_those_it_covers(network: StructuredNetwork) -> None:
    at = build(network, EVERY_PREFIX)
    wanted = {at["0001"]: ["x > 0.5"], at["0002"]: ["x > 0.6"], at["0123"]: ["x > 0.1"]}
    for name, (text,) in wanted.items():
        network.subscribe(name, text)
        network.quiet()
    network.check_filter_tables(wanted)
    far = network.router(at["3100"])
    assert len(far.table) == 1, "all three are in one range as seen from there"


def test_irbr_s5_3_a_cancellation_brings_back_what_it_had_covered(network: StructuredNetwork) -> None:
    at = build(network, EVERY_PREFIX)
    wanted = {
        at["0122"]: ["x > 0.1"],
        at["0123"]: ["x > 0.5"],
        at["0000"]: ["x > 0.3", "y < 1"],
        at["0001"]: ["x > 0.4"],
    }
    for name, texts in wanted.items():
        for text in texts:
            network.subscribe(name, text)
            network.quiet()
    before = network.sent("RangeSubscription")
    network.unsubscribe(at["0122"], "x > 0.1")
    network.quiet()
    wanted[at["0122"]] = []
    network.check_filter_tables(wanted)
    assert network.sent("RangeSubscription") == before, "the cancellations themselves carry the added filters"
    assert reached(network, at["3100"], {"x": 0.45}) == {at["0000"]: 1, at["0001"]: 1}


def test_irbr_s5_3_a_cancellation_stops_where_another_filter_covers(network: StructuredNetwork) -> None:
    at = build(network, EVERY_PREFIX)
    for name, text in ((at["0123"], "x > 0.5"), (at["0122"], "x > 0.2")):
        network.subscribe(name, text)
        network.quiet()
    network.unsubscribe(at["0123"], "x > 0.5")
    network.quiet()
    assert network.sent("Cancellation") == 1
    network.check_filter_tables({at["0122"]: ["x > 0.2"]})


def test_irbr_s5_4_an_event_goes_only_where_it_is_wanted(network: StructuredNetwork) -> None:
    at = build(network, EVERY_PREFIX)
    for text in ("0000", "0123", "3100"):
        network.subscribe(at[text], f"x = {text[-1]}")
        network.quiet()
    before = network.sent("Forwarded")
    assert reached(network, at["2222"], {"x": 3}) == {at["0123"]: 1}
    assert network.sent("Forwarded") - before <= 3
    before = network.sent("Forwarded")
    assert reached(network, at["2222"], {"x": 7}) == {}
    assert network.sent("Forwarded") == before


def test_irbr_s5_5_an_event_goes_by_way_of_the_middle_identifier_when_a_neighbour_has_failed(
    network: StructuredNetwork,
) -> None:
    """The node in 12xx is none that its sender knows: one closer to the range's middle does."""
    at = build(network, ["0000", "1000", "1133", "1200", "1230", "1300", "2000"])
    network.subscribe(at["1230"], "x > 0")
    network.quiet()
    sender = network.pastry(at["1000"])
    cell = sender.table.cell_of(int("1230", 4))
    stands = sender.table.get(cell)
    assert stands is not None
    # The sender finds its neighbour gone and knows no other: the network knows the way.
    sender.peers.remove(stands)
    (other,) = {"1200", "1230"} - {network.pastry(stands.name).space.text(stands.identifier)}
    known = sender.peers.get(at[other])
    if known is not None:
        sender.peers.remove(known)
    assert sender.towards(cell) is not None
    assert reached(network, at["1000"], {"x": 1}) == {at["1230"]: 1}


def test_irbr_s5_5_a_node_that_only_passes_a_redirected_event_does_not_deliver_it(network: StructuredNetwork) -> None:
    at = build(network, ["0000", "1000", "1133", "1200", "1300"])
    router = network.router(at["1133"])
    cell = network.pastry(at["1000"]).table.cell_of(int("1200", 4))
    event = Event(0, 1, 0, {"x": 1})
    assert router.is_relay(event, cell)
    assert not network.router(at["1200"]).is_relay(event, cell)
    assert not router.is_relay(event, ())


@pytest.mark.parametrize("resets", [True, False])
def test_irbr_s5_5_a_node_that_cannot_send_to_a_neighbour_redirects_at_once(resets: bool) -> None:
    network = StructuredNetwork(parameters={"irbr": {"resets": resets}})
    at = build(network, EVERY_PREFIX)
    for text in EVERY_PREFIX:
        network.subscribe(at[text], "x > 0")
    network.rounds(1)
    stood = network.pastry(at["3100"]).table.get(IdentifierRange(0, 1))
    assert stood is not None
    network.crash(stood.name)
    network.runtime.run(until_us=network.runtime.now_us + 1_000)
    survivors = dict.fromkeys(network.up, 1)
    assert (reached(network, at["3100"], {"x": 1}) == survivors) is resets
    network.rounds(2)
    assert reached(network, at["3100"], {"x": 1}) == survivors
    network.close()


def test_irbr_s5_5_a_subscription_to_a_range_whose_peer_has_failed_goes_towards_its_middle() -> None:
    """Once, and with the rest of its row."""
    context = NodeContext("n", 1, place=RingPlace(int("1000", 4), digits=4, leaf_set=4))
    router = Irbr(context, IrbrParameters())
    router.handle(Start([]), 0)
    known = [("a", "1200"), ("b", "1133"), ("c", "0000"), ("d", "1010")]
    router.know([PastryPeer(name, int(text, 4)) for name, text in known])
    router.handle(LinkDown("a", "reset"), 1)
    sent = [effect for effect in router.subscribe(parse_filter("x > 1")) if isinstance(effect, Send)]
    told = [(each.to, tuple(each.message.destination)) for each in sent if isinstance(each.message, RangeSubscription)]
    ranges = [("d", "101"), ("b", "11"), ("b", "12"), ("c", "0")]
    assert told == [(name, (int(text, 4), len(text))) for name, text in ranges]


@pytest.mark.parametrize("given", ["{reverse_paths: direct}", "{resets: 1}"])
def test_irbr_refuses_parameters_that_it_does_not_have(given: str) -> None:
    with pytest.raises(InputError, match=r"broker\.parameters\.irbr"):
        build_scenario(load_scenario(Path("irbr"), [f"broker.parameters={{irbr: {given}}}"]))


def test_irbr_s5_5_the_filters_of_an_empty_range_are_cancelled(network: StructuredNetwork) -> None:
    at = build(network, ["0000", "1000", "1133", "1200", "1230", "1300", "2000", "2111"])
    network.subscribe(at["1200"], "x > 0")
    network.subscribe(at["1230"], "x > 0.5")
    network.subscribe(at["1133"], "x > 0.7")
    network.quiet()
    network.crash(at["1200"])
    network.crash(at["1230"])
    network.rounds(2)
    for text in ("1000", "2000"):
        assert reached(network, at[text], {"x": 0.9}) == {at["1133"]: 1}
    network.rounds(2)
    network.check_filter_tables({at["1133"]: ["x > 0.7"]})
    before = network.sent("Forwarded")
    assert reached(network, at["2000"], {"x": 0.6}) == {}
    assert network.sent("Forwarded") == before, "no node sends there any more"


def test_irbr_s5_5_a_node_that_is_back_is_new_and_gets_its_filter_table(network: StructuredNetwork) -> None:
    at = build(network, EVERY_PREFIX)
    for text in ("0000", "0123", "3100"):
        network.subscribe(at[text], f"x > 0.{text[-1]}")
    network.quiet()
    network.crash(at["0123"])
    network.rounds(2)
    network.start(at["0123"], int("0123", 4), [at["0000"]])
    network.quiet()
    all_of_them = {at["0000"]: 1, at["3100"]: 1}
    assert reached(network, at["0123"], {"x": 0.9}) == all_of_them
    network.subscribe(at["0123"], "x > 0.8")
    network.quiet()
    for text in ("1000", "0122", "0123"):
        assert reached(network, at[text], {"x": 0.9}) == {**all_of_them, at["0123"]: 1}


# ------------------------------------------------------------------------------- concurrent operations
def test_irbr_rule_1_a_subscription_that_crosses_the_cancellation_of_what_covers_it(
    network: StructuredNetwork,
) -> None:
    at = build(network, EVERY_PREFIX)
    network.subscribe(at["0010"], "x > 0.1")
    network.quiet()
    network.subscribe(at["0123"], "x > 0.5")
    network.unsubscribe(at["0010"], "x > 0.1")  # neither has heard of the other
    network.quiet()
    assert reached(network, at["3100"], {"x": 0.6}) == {at["0123"]: 1}
    network.check_filter_tables({at["0123"]: ["x > 0.5"]})


def test_irbr_rule_2_operations_before_and_while_nodes_join_reach_them(network: StructuredNetwork) -> None:
    for number, text in enumerate(EVERY_PREFIX):
        network.start(f"n{number}", int(text, 4), [f"n{(number - 1) // 2}"] if number else [])
        network.subscribe(f"n{number}", f"x > 0.{number}")
        network.runtime.run(until_us=network.runtime.now_us + 700)
    network.quiet()
    for publisher in network.up:
        got = reached(network, publisher, {"x": 0.65})
        assert got == {f"n{number}": 1 for number in (*range(7), 10, 11, 12)}


@given(st.integers(0, 10**6), st.integers(4, 14), st.booleans())
@settings(max_examples=60)
def test_irbr_operations_at_different_nodes_at_the_same_time_lose_nothing(seed: int, nodes: int, reorder: bool) -> None:
    """No failures, and no waiting between operations: once quiet, every interested node is reached, once; some
    rounds of probes later every table is what it would be had the operations come one after the other."""
    rng = random.Random(seed)
    delay = Delay("uniform", 300, 5_000) if reorder else Delay("constant", 1_000)
    network = StructuredNetwork(delay=delay, seed=seed)
    network.build(rng.sample(range(256), nodes))
    wanted: dict[str, list[str]] = {name: [] for name in network.up}
    for _ in range(rng.randrange(5, 40)):
        name = rng.choice(network.up)
        if wanted[name] and rng.random() < 0.45:
            network.unsubscribe(name, wanted[name].pop(rng.randrange(len(wanted[name]))))
        else:
            text = f"x > {rng.randrange(10)}"
            if text not in wanted[name]:
                wanted[name].append(text)
                network.subscribe(name, text)
        network.runtime.run(until_us=network.runtime.now_us + rng.choice((0, 0, 500, 3_000)))
    network.quiet()
    for publisher in network.up:
        for value in (3, 6, 20):
            interested = {name: 1 for name in network.up if any(value > int(text[4:]) for text in wanted[name])}
            assert reached(network, publisher, {"x": value}) == interested
    network.rounds(14)
    network.check_filter_tables(wanted)
    network.close()


def test_irbr_of_one_nodes_operations_the_latest_holds_in_whatever_order_they_come() -> None:
    table, wide, wanted = FilterTable(), IdentifierRange(1, 1), parse_filter("x = 1")
    table.subscribed(wide, wanted, 7, number=4, now_us=1)
    table.subscribed(wide, wanted, 7, number=2, now_us=2)
    table.cancelled(wide, wanted, 7, number=3, now_us=3)
    assert table.of(wide) == [wanted]
    table.cancelled(wide, wanted, 7, number=5, now_us=4)
    assert not table.of(wide)


@pytest.mark.parametrize("confirmed", [False, True])
def test_irbr_what_a_cancellation_leaves_is_relied_on_once_asked_for_again_or_confirmed(confirmed: bool) -> None:
    table, wide, wanted = FilterTable(), IdentifierRange(1, 1), parse_filter("x = 1")
    table.subscribed(wide, wanted, 7, number=1, now_us=1)
    table.subscribed(wide, wanted, 8, number=1, now_us=2)
    assert table.covering(wanted) == [(wide, wanted)]
    table.cancelled(wide, wanted, 7, number=2, now_us=3)
    assert table.of(wide) == [wanted], "8 asked for it lately"
    assert not table.covering(wanted), "8 may have withdrawn it, too, and told nobody"
    assert not table.covered_in(wide, [wanted])
    if confirmed:
        table.confirm(IdentifierRange(2, 1), before_us=4)
        table.confirm(wide, before_us=3)
        assert not table.covering(wanted)
        table.confirm(wide, before_us=4)
    else:
        table.subscribed(wide, wanted, 9, number=1, now_us=4)
    assert table.covering(wanted) == table.covered_by(wanted) == [(wide, wanted)]
    assert table.covered_in(wide, [wanted]) == [wanted]


def test_irbr_a_subscription_says_nothing_once_its_cancellation_has_come() -> None:
    table, wide, wanted = FilterTable(), IdentifierRange(1, 1), parse_filter("x = 1")
    table.cancelled(wide, wanted, 7, number=5, now_us=1)
    assert not table.subscribed(wide, wanted, 7, number=4, now_us=2)
    assert not table.of(wide)
    assert table.subscribed(wide, wanted, 7, number=6, now_us=3)
    assert table.remove(wide, wanted)
    table.cancelled(wide, wanted, 7, number=8, now_us=4)
    after_us = 4 + CONCURRENT_US + 1
    assert table.subscribed(wide, wanted, 7, number=1, now_us=after_us), "the node has begun to number anew"


@pytest.mark.parametrize(("after_us", "held"), [(CONCURRENT_US, True), (CONCURRENT_US + 1, False)])
def test_irbr_what_another_node_asked_for_lately_outlives_a_cancellation(after_us: int, held: bool) -> None:
    """Other operations of that time change nothing; what it had covered then is there again."""
    table, wide = FilterTable(), IdentifierRange(1, 1)
    asked, inner, other = (parse_filter(text) for text in ("x > 1", "x > 2", "y > 1"))
    table.subscribed(wide, asked, 7, number=1, now_us=0)
    table.subscribed(wide, other, 7, number=2, now_us=after_us - 2)
    table.subscribed(wide, inner, 9, number=1, now_us=after_us - 1)
    assert table.of(wide) == [asked, other]
    table.cancelled(wide, asked, 8, number=1, now_us=after_us)
    assert table.of(wide) == ([asked, other] if held else [other, inner])
    table.check_invariants()


@given(st.integers(0, 10**6), st.integers(2, 10))
@settings(max_examples=40)
def test_irbr_what_a_node_asks_for_again_is_not_undone_by_its_own_cancellation(seed: int, nodes: int) -> None:
    """Messages overtake each other, and no node's filters cover another's: what holds is what a node did last."""
    rng = random.Random(seed)
    network = StructuredNetwork(delay=Delay("uniform", 300, 5_000), seed=seed)
    network.build(rng.sample(range(256), nodes))
    wanted: set[int] = set()
    for _ in range(rng.randrange(5, 40)):
        number = rng.randrange(nodes)
        if number in wanted:
            network.unsubscribe(f"n{number}", f"x = {number}")
        else:
            network.subscribe(f"n{number}", f"x = {number}")
        wanted ^= {number}
        network.runtime.run(until_us=network.runtime.now_us + rng.choice((0, 0, 500, 3_000)))
    network.quiet()
    for number in wanted:
        assert reached(network, rng.choice(network.up), {"x": number}) == {f"n{number}": 1}
    network.close()
