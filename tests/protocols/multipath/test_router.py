"""Publiy sections 4 to 6 on whole networks: subscriptions, soft links, joins, departures, brokers away."""

import functools
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

from murmur_pubsub.deployment import LinkPlan, NodeSpec
from murmur_pubsub.errors import InputError
from murmur_pubsub.event import Event
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.journal import JournalWriter
from murmur_pubsub.machine import NodeContext, Subscribe, Unsubscribe
from murmur_virtual.virtual_runtime import VirtualRuntime
from murmuration.deployment.build_deployment import build
from murmuration.scenario.load import load_scenario
from reliability.best_effort import BestEffort
from reliability.broker import Broker
from routing.forwarding import SubscriptionForwarding
from routing.multipath.delegation import MULTIPATH_DELEGATION
from routing.multipath.knowledge import Knowledge
from routing.multipath.membership import JOIN_REFUSED
from routing.multipath.parameters import MultipathParameters
from routing.multipath.primary_network import Statement
from routing.multipath.router import MULTIPATH, MultipathRouter
from routing.protocol import NoParameters, OverlayTraits, RoutingProtocol
from tests.parameters import parameters_of
from tests.protocols.multipath.network import CONSTANT, MS, Network, parameters, topics_by_broker
from workloads.overlay import Overlay, Tree, balanced, random_tree


def test_publiy_s4_tables_are_those_computed_from_scratch(tmp_path: Path) -> None:
    network = Network(random_tree(Tree(30, 4), 3), tmp_path, parameters(delta=3))
    topics_by_broker(network, random.Random(1))
    network.check_from_scratch()
    tables = [router.knowledge.mst.by_origin() for router in network.routers.values()]
    for table in tables:
        assert {name: set(map(str, held)) for name, held in table.items()} == {
            name: set(map(str, held)) for name, held in tables[0].items()
        }


def test_publiy_s4_unsubscribing_takes_the_entry_out_everywhere(tmp_path: Path) -> None:
    network = Network(balanced(Tree(12, 3), 1), tmp_path, parameters())
    network.subscribe("b5", "x = 1")
    network.subscribe("b7", "x = 1")
    network.run_ms(30)
    assert all(len(router.knowledge.mst) == 2 for router in network.routers.values())
    network.runtime.nodes["b5"].take_input(Unsubscribe(0, parse_filter("x = 1")), network.runtime.now_us)
    network.run_ms(30)
    assert all(len(router.knowledge.mst) == 1 for router in network.routers.values())
    event = network.publish("b0", x=1)
    network.run_ms(30)
    network.check_deliveries({event: {"b7"}})


@pytest.mark.parametrize("covering", [False, True])
def test_publiy_s4_covering_sets_decide_as_the_whole_table_does(tmp_path: Path, covering: bool) -> None:
    network = Network(balanced(Tree(20, 3), 1), tmp_path, parameters(covering=covering))
    rng = random.Random(4)
    held = {}
    for name in network.routers:
        for low in rng.sample(range(50), 4):
            network.subscribe(name, f"x >= {low}")
        held[name] = low
    network.run_ms(60)
    for name, low in list(held.items())[::3]:
        withdrawn = Unsubscribe(0, parse_filter(f"x >= {low}"))
        network.runtime.nodes[name].take_input(withdrawn, network.runtime.now_us)
    network.run_ms(60)
    wanted = {}
    for value in range(0, 50, 5):
        event = network.publish("b3", x=value)
        local = {name: [str(each) for each in network.routers[name].knowledge.mst.filters_of(name)] for name in held}
        wanted[event] = {n for n, texts in local.items() if any(parse_filter(t).matches({"x": value}) for t in texts)}
    network.run_ms(60)
    network.check_deliveries(wanted)
    if covering:
        sets = network.routers["b0"].knowledge.working().wst.covering_sets()
        assert sets
        assert all(len(each) == 1 for each in sets.values()), "of x >= a and x >= b one covers the other"


def test_publiy_s5_s0_delivers_and_routes_as_the_other_s0_does(tmp_path: Path) -> None:
    rng = random.Random(9)
    overlay = random_tree(Tree(25, 4), 2)
    ways = []
    for kind in ("multipath", "forwarding"):
        folder = tmp_path / kind
        folder.mkdir()
        numbers = {name: number for number, name in enumerate(overlay.brokers)}
        runtime = VirtualRuntime(1, JournalWriter(folder, "run", 25), numbers, CONSTANT, journal_hops=False)
        routers = {}
        for name in overlay.brokers:
            context = NodeContext(name, 1)
            router = (
                MultipathRouter(context, parameters(strategy="S0", delta=1))
                if kind == "multipath"
                else SubscriptionForwarding(context, NoParameters())
            )
            routers[name] = router
            broker = Broker("bitset", router, functools.partial(BestEffort, context, NoParameters()))
            runtime.add_node(NodeSpec(name, "broker", ""), broker)
        for first, second in overlay.edges:
            runtime.connect(LinkPlan(first, second, CONSTANT))
        rng = random.Random(9)
        for name in overlay.brokers:
            for _ in range(3):
                wanted = parse_filter(f"x BETWEEN {(low := rng.randrange(80))} AND {low + 15}")
                runtime.nodes[name].take_input(Subscribe(0, wanted), runtime.now_us)
        runtime.run(until_us=runtime.now_us + 100 * MS)
        found = []
        for value in range(100):
            for name, neighbours in overlay.neighbours.items():
                for came_from in (None, *neighbours):
                    event = Event(0, 0, 0, {"x": value})
                    hops = routers[name].next_hops(event, came_from, ())
                    found.append((name, value, came_from, sorted(hop.peer for hop in hops)))
        ways.append(found)
    assert ways[0] == ways[1]


@pytest.mark.parametrize("strategy", ["S1", "S2", "SH"])
def test_publiy_s6_soft_links_come_and_go_under_traffic_and_nothing_is_lost(strategy: str, tmp_path: Path) -> None:
    chosen = parameters(strategy=strategy, fanout=7, maxlinks=10, cool_down_rounds=1, uplink_messages_per_s=60)
    network = Network(random_tree(Tree(40, 4), 5), tmp_path, chosen)
    rng = random.Random(2)
    holders = topics_by_broker(network, rng, share=0.2)
    wanted = {}
    seen: set[tuple[str, str]] = set()
    now: set[tuple[str, str]] = set()
    for number in range(1_500):
        topic = (rng.randrange(8) + number // 500) % 8
        source = f"b{(rng.randrange(5) * 7 + number // 300) % 40}"
        wanted[network.publish(source, topic=topic)] = holders[topic]
        network.run_ms(2)
        now = {(name, peer) for name, each in network.routers.items() for peer in each.knowledge.links.soft}
        seen |= now
    network.run_ms(60)
    network.check_deliveries(wanted)
    network.check_from_scratch()
    assert len(now) > 20
    assert len(seen) >= len(now) + 10, "links were to change"
    for router in network.routers.values():
        links = router.knowledge.links
        assert len(links.soft) + len(router.knowledge.network.peers) <= 7
        assert len(links.candidates) <= 3


def test_publiy_s6_a_broker_without_room_refuses_one_that_would_join(tmp_path: Path) -> None:
    overlay = Overlay(("b0", "b1", "b2", "b3"), (("b0", "b1"), ("b0", "b2"), ("b0", "b3")))
    network = Network(overlay, tmp_path, parameters(fanout=2, maxlinks=4))
    assert [(name, *record) for name, record in network.records] == [
        ("b0", JOIN_REFUSED, 2, "b3", None),
        ("b3", JOIN_REFUSED, 2, "b0", None),
    ]
    network.edges.remove(frozenset(("b0", "b3")))
    del network.routers["b3"]
    network.check_from_scratch()


def test_publiy_s6_who_gets_one_more_neighbour_gives_up_the_soft_link_with_the_least_traffic() -> None:
    """At once, before any round: together there are never more links than the fanout."""
    knowledge = Knowledge("b0", 0, parameters(fanout=4, maxlinks=8))
    for broker, peers in {"b1": ("b0", "b3", "b4", "b5"), "b2": ("b0",)}.items():
        knowledge.network.learn(broker, Statement(0, 1, peers))
    knowledge.new_peers(["b1"])
    links = knowledge.links
    links.soft, links.sent = dict.fromkeys(("b3", "b4", "b5")), {"b3": 9, "b4": 1, "b5": 5}
    knowledge.new_peers(["b1", "b2"])
    assert list(links.soft) == ["b3", "b5"]
    links.check_invariants(2, 0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"delta": 0}, "multipath.delta: found 0; allowed: at least 1"),
        ({"fanout": 10, "maxlinks": 9}, "multipath.maxlinks: found 9; allowed: at least 10, the fanout"),
        ({"cool_down_rounds": -1}, "multipath.cool_down_rounds: found -1; allowed: at least 0"),
        ({"strategy": "S3"}, "multipath.strategy: found 'S3'; allowed: 'S0', 'S1', 'S2' or 'SH'"),
        ({"uplink_threshold": 1.5}, "multipath.uplink_threshold: found 1.5; allowed: above 0, at most 1"),
        ({"fan": 3}, "multipath.fan: found an unknown key"),
        ({"fanout": "many"}, "multipath.fanout: found 'many'; allowed: a valid integer"),
        ({"covering": 1}, "multipath.covering: found 1; allowed: a valid boolean"),
    ],
)
def test_publiy_bad_parameters_are_named(given: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        parameters_of(MULTIPATH, given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("{strategy: S3}", "strategy: found 'S3'"),
        ("{fanout: 3, maxlinks: 9}", "fanout: found 3; allowed: at least 4, the broker's degree"),
        ("{fanout: 9, maxlinks: 8}", "maxlinks: found 8"),
    ],
)
def test_publiy_bad_parameters_are_refused_when_the_scenario_is_read(given: str, words: str) -> None:
    loaded = load_scenario(Path("multipath"), ["overlay.degree=4", f"broker.parameters={{multipath: {given}}}"])
    with pytest.raises(InputError, match=rf"broker\.parameters\.multipath\.{words}"):
        build(loaded)


@pytest.mark.parametrize("declared", [MULTIPATH, MULTIPATH_DELEGATION])
def test_publiy_soft_links_are_refused_where_there_are_no_datagrams(
    declared: RoutingProtocol[MultipathParameters],
) -> None:
    without = OverlayTraits("a tree", frozenset(), 3)
    with pytest.raises(InputError, match="datagrams: found nothing; allowed: a delay"):
        declared.check(MultipathParameters(), without)
    declared.check(MultipathParameters(), replace(without, has_datagrams=True))
    MULTIPATH.check(MultipathParameters(strategy="S0"), without)


def test_publiy_parameters_as_a_scenario_writes_them() -> None:
    given = {"uplink_threshold": 1, "coordinator": "b0", "uplink_messages_per_s": None, "strategy": "SH"}
    assert parameters_of(MULTIPATH, given).coordinator == "b0"


# ------------------------------------------------------------------------------------------------ join, leave, away
def test_publiy_s6_edge_brokers_join_and_leave_under_traffic(tmp_path: Path) -> None:
    network = Network(random_tree(Tree(15, 3), 7), tmp_path, parameters(coordinator="b0"), more=3)
    rng = random.Random(3)
    holders = topics_by_broker(network, rng)
    wanted = {}

    def traffic(count: int) -> None:
        for _ in range(count):
            topic = rng.randrange(8)
            source = rng.choice([f"b{number}" for number in range(15)])
            wanted[network.publish(source, topic=topic)] = set(holders[topic])
            network.run_ms(2)

    for number, home in enumerate(("b3", "b9", "new0")):
        name = f"new{number}"
        network.add(name)
        network.connect(name, home)
        network.edges.add(frozenset((name, home)))
        traffic(50)
        network.subscribe(name, "topic = 1")
        network.run_ms(60)
        holders[1].add(name)
        traffic(50)
    network.check_from_scratch()
    farewell = network.order("new2", "depart")
    network.run_ms(60)
    assert network.answers[farewell] == ""
    network.edges.remove(frozenset(("new2", "new0")))
    network.routers.pop("new2")
    holders[1].discard("new2")
    traffic(100)
    network.check_deliveries(wanted)
    network.check_from_scratch()
    refused = network.order("b0", "depart")
    assert re.fullmatch("b0 has . primary neighbours; Δ-moves make it an edge broker", network.answers[refused])


@pytest.mark.parametrize("strategy", ["S1", "S2"])
def test_publiy_s6_a_broker_away_is_bridged_and_comes_back(strategy: str, tmp_path: Path) -> None:
    network = Network(balanced(Tree(40, 3), 1), tmp_path, parameters(strategy=strategy, fanout=12, maxlinks=16))
    rng = random.Random(8)
    holders = topics_by_broker(network, rng, share=0.3)
    away = "b1"
    others = [name for name in network.names if name != away]

    def traffic(count: int) -> dict[int, set[str]]:
        sent = {}
        for _ in range(count):
            topic = rng.randrange(8)
            sent[network.publish(rng.choice(others), topic=topic)] = set(holders[topic])
            network.run_ms(2)
        return sent

    wanted = traffic(300)
    network.run_ms(50)
    network.runtime.crash(away)
    network.run_ms(1_000)
    assert network.routers["b0"].knowledge.network.down
    wanted |= {event: names - {away} for event, names in traffic(300).items()}
    network.subscribe("b39", "topic = 9")
    network.run_ms(50)
    wanted[network.publish("b20", topic=9)] = {"b39"}
    network.run_ms(50)
    network.runtime.restart(away, network.machine(away, 1))
    network.run_ms(1_000)
    for topic, names in holders.items():
        if away in names:
            network.subscribe(away, f"topic = {topic}")
    network.run_ms(60)
    wanted |= traffic(300)
    network.run_ms(60)
    network.check_deliveries(wanted)
    network.check_from_scratch()


def test_publiy_s0_has_no_bridge(tmp_path: Path) -> None:
    """What the bridge is for: without soft links, those behind a broker that is away get nothing."""
    overlay = Overlay(("b0", "b1", "b2"), (("b0", "b1"), ("b1", "b2")))
    for strategy, reached in (("S0", set()), ("S1", {("b2", 0)})):
        folder = tmp_path / strategy
        folder.mkdir()
        network = Network(overlay, folder, parameters(strategy=strategy))
        network.subscribe("b2", "x = 1")
        network.run_ms(30)
        network.runtime.crash("b1")
        network.run_ms(1_000)
        network.publish("b0", x=1)
        network.run_ms(30)
        assert set(network.got) == reached
