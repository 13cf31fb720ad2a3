"""Publiy sections 4 to 6 on whole networks: subscriptions, soft links, joins, departures, Δ-moves, brokers away."""

import functools
import random
from pathlib import Path
from typing import Any

import pytest

from murmur_pubsub.deployment import LinkPlan, NodeSpec
from murmur_pubsub.errors import InputError
from murmur_pubsub.event import Event
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.journal import JournalWriter
from murmur_pubsub.links import Delay, LinkSpec
from murmur_pubsub.machine import Effect, NodeContext, NodeName, Publish, Received, Subscribe, Unsubscribe
from murmur_pubsub.message import Message
from murmur_pubsub.procedure import IllegalStep
from murmur_virtual.virtual_runtime import VirtualRuntime
from murmuration.deployment.build_deployment import build
from murmuration.scenario.load import load_scenario
from reliability.best_effort import BestEffort
from reliability.broker import Broker
from routing.forwarding import SubscriptionForwarding
from routing.multipath.delta_move import END, INIT
from routing.multipath.messages import Departed, MoveOrdered, MovePhase
from routing.multipath.overlay_maps import MasterOverlayMap
from routing.multipath.parameters import MultipathParameters
from routing.multipath.router import MULTIPATH, MultipathRouter
from routing.protocol import NoParameters
from tests.parameters import parameters_of
from workloads.overlay import Overlay, Tree, balanced, random_tree

MS = 1_000
CONSTANT = LinkSpec(delay=Delay("constant", 1 * MS))
UNEVEN = LinkSpec(delay=Delay("uniform", 200, 5 * MS), ordered=False)


class Counted(Broker):
    """A broker that counts in `got` how often its subscribers were handed each event."""

    def __init__(self, name: NodeName, got: dict[tuple[NodeName, int], int], *arguments: Any) -> None:
        super().__init__(*arguments)
        self.name, self.got = name, got

    def notify(self, event: Event, hops: int, until: int | None = None) -> list[Effect]:
        effects = super().notify(event, hops, until)
        if effects:
            self.got[self.name, event.sequence] = self.got.get((self.name, event.sequence), 0) + 1
        return effects


class Network:
    """Multipath brokers whose deliveries are counted. Each broker's subscriber 0 holds the filters it is given."""

    def __init__(
        self,
        overlay: Overlay,
        folder: Path,
        parameters: MultipathParameters,
        links: LinkSpec = CONSTANT,
        datagrams: LinkSpec = CONSTANT,
        seed: int = 1,
        more: int = 0,
    ) -> None:
        self.links = links
        self.names = [*overlay.brokers, *(f"new{number}" for number in range(more))]
        self.numbers = {name: number for number, name in enumerate(self.names)}
        self.writer = JournalWriter(folder, "run", len(self.numbers))
        self.runtime = VirtualRuntime(seed, self.writer, self.numbers, datagrams, journal_hops=False)
        self.parameters = parameters
        self.routers: dict[NodeName, MultipathRouter] = {}
        self.got: dict[tuple[NodeName, int], int] = {}
        self.published = 0
        self.edges = {frozenset(edge) for edge in overlay.edges}
        for name in overlay.brokers:
            self.add(name)
        for first, second in overlay.edges:
            self.connect(first, second)
        self.run_ms(50)

    def add(self, name: NodeName, incarnation: int = 0) -> None:
        machine = self.machine(name, incarnation)
        self.runtime.add_node(NodeSpec(name, "broker", ""), machine)

    def machine(self, name: NodeName, incarnation: int = 0) -> Broker:
        context = NodeContext(name, 1, {}, incarnation)
        router = self.routers[name] = MultipathRouter(context, self.parameters)
        return Counted(name, self.got, "bitset", router, functools.partial(BestEffort, context, NoParameters()))

    def connect(self, first: NodeName, second: NodeName) -> None:
        self.runtime.connect(LinkPlan(first, second, self.links))

    def run_ms(self, time_ms: int) -> None:
        self.runtime.run(until_us=self.runtime.now_us + time_ms * MS)

    def subscribe(self, name: NodeName, text: str) -> None:
        self.runtime.nodes[name].take_input(Subscribe(0, parse_filter(text)), self.runtime.now_us)

    def publish(self, name: NodeName, **attributes: int) -> int:
        event = Event(self.numbers[name], self.published, self.runtime.now_us, attributes)
        self.published += 1
        self.runtime.nodes[name].take_input(Publish(event), self.runtime.now_us)
        return event.sequence

    def order(self, name: NodeName, message: Message) -> None:
        self.runtime.nodes[name].take_input(Received("operator", message), self.runtime.now_us)

    def adjacency(self) -> dict[NodeName, list[NodeName]]:
        found: dict[NodeName, list[NodeName]] = {name: [] for name in self.routers}
        for edge in self.edges:
            first, second = sorted(edge)
            found[first].append(second)
            found[second].append(first)
        return found

    def check_from_scratch(self) -> None:
        """MOM, and anchors and ppaths of the MST, of every broker against those computed for the tree."""
        adjacency = self.adjacency()
        delta = self.parameters.delta
        for name, router in self.routers.items():
            scratch = MasterOverlayMap(name, delta, adjacency)
            assert router.knowledge.network.mom == scratch, name
            whole_map = MasterOverlayMap(name, len(adjacency), adjacency)
            assert router.knowledge.mst.ppaths == {origin: whole_map.path(origin)[:delta] for origin in adjacency}, name
            router.check_invariants()
            assert router.moves.zone is None

    def check_deliveries(self, wanted: dict[int, set[NodeName]]) -> None:
        missing = [(name, event) for event, names in wanted.items() for name in names if (name, event) not in self.got]
        assert not missing, missing[:5]
        duplicate = [key for key, count in self.got.items() if count > 1]
        assert not duplicate, duplicate[:5]
        assert {(name, event) for event, names in wanted.items() for name in names} == set(self.got)


def parameters(**given: Any) -> MultipathParameters:
    base: dict[str, Any] = {"round_us": 200 * MS, "load_exchange_us": 100 * MS, "move_grace_us": 60 * MS}
    return MultipathParameters(**(base | given))


def topics_by_broker(network: Network, rng: random.Random, topics: int = 8, share: float = 0.4) -> dict[int, set[str]]:
    holders: dict[int, set[str]] = {topic: set() for topic in range(topics)}
    for name in network.routers:
        for topic in range(topics):
            if rng.random() < share:
                network.subscribe(name, f"topic = {topic}")
                holders[topic].add(name)
    network.run_ms(60)
    return holders


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


def test_publiy_s6_a_fanout_below_the_degree_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"fanout: found 2; allowed: at least 3, the broker's degree"):
        Network(balanced(Tree(8, 3), 1), tmp_path, parameters(fanout=2, maxlinks=4))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"delta": 0}, "multipath.delta: found 0; allowed: at least 1"),
        ({"fanout": 10, "maxlinks": 9}, "multipath.maxlinks: found 9; allowed: at least 10, the fanout"),
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


def test_publiy_parameters_as_a_scenario_writes_them() -> None:
    given = {"uplink_threshold": 1, "coordinator": "b0", "uplink_messages_per_s": None, "strategy": "SH"}
    assert parameters_of(MULTIPATH, given).coordinator == "b0"


# ------------------------------------------------------------------------------------------------ Δ-moves
def a_move(network: Network, rng: random.Random) -> tuple[NodeName, NodeName, NodeName] | None:
    """Some move that is possible in the tree as it is."""
    mover = rng.choice(network.names)
    mom = MasterOverlayMap(mover, network.parameters.delta, network.adjacency())
    neighbour = rng.choice(network.adjacency()[mover])
    behind = [peer for peer in mom.brokers if peer != neighbour and mom.first_hop(peer) == neighbour]
    behind = [peer for peer in behind if len(network.adjacency()[peer]) < 4]
    return (mover, neighbour, rng.choice(behind)) if behind else None


@pytest.mark.parametrize(
    ("strategy", "datagrams", "moves", "seed"),
    [
        ("S2", UNEVEN, 50, 1),
        pytest.param("S2", UNEVEN, 200, 1, marks=pytest.mark.slow),
        pytest.param("S1", UNEVEN, 200, 2, marks=pytest.mark.slow),
        pytest.param("S2", CONSTANT, 200, 3, marks=pytest.mark.slow),
        pytest.param("S0", UNEVEN, 200, 4, marks=pytest.mark.slow),
        pytest.param("SH", UNEVEN, 200, 5, marks=pytest.mark.slow),
    ],
)
def test_publiy_s6_random_moves_under_traffic_lose_and_repeat_nothing(
    strategy: str, datagrams: LinkSpec, moves: int, seed: int, tmp_path: Path
) -> None:
    # At this uplink SH takes S1 for two choices of nine.
    chosen = parameters(strategy=strategy, fanout=9, maxlinks=14, coordinator="b0", delta=4, uplink_messages_per_s=150)
    network = Network(random_tree(Tree(30, 3), seed), tmp_path, chosen, datagrams=datagrams, seed=seed)
    rng = random.Random(seed)
    holders = topics_by_broker(network, rng, share=0.25)
    wanted = {}
    made = 0
    while made < moves:
        move = a_move(network, rng)
        if move is None:
            continue
        mover, neighbour, destination = move
        network.order(mover, MoveOrdered(neighbour, destination))
        network.edges = network.edges - {frozenset((mover, neighbour))} | {frozenset((mover, destination))}
        made += 1
        for _ in range(60):
            topic = rng.randrange(8)
            wanted[network.publish(rng.choice(network.names), topic=topic)] = holders[topic]
            network.run_ms(3)
        network.run_ms(120)
        if made % 25 == 0:
            network.check_from_scratch()
    network.run_ms(300)
    network.check_deliveries(wanted)
    network.check_from_scratch()


def test_publiy_s6_the_coordinator_makes_an_overlapping_move_wait(tmp_path: Path) -> None:
    overlay = Overlay(tuple(f"b{n}" for n in range(30)), tuple((f"b{n}", f"b{n + 1}") for n in range(29)))
    network = Network(overlay, tmp_path, parameters(delta=2, coordinator="b0"))
    coordinator = network.routers["b0"].coordinator
    assert coordinator is not None
    network.order("b3", MoveOrdered("b4", "b5"))
    network.order("b8", MoveOrdered("b7", "b6"))
    network.order("b25", MoveOrdered("b26", "b27"))
    network.run_ms(2)
    assert sorted(heart[0] for heart in coordinator.active.values()) == ["b25", "b3"]
    assert [each.mover for each in coordinator.waiting] == ["b8"]
    network.run_ms(300)
    assert not coordinator.waiting
    network.run_ms(300)
    assert not coordinator.active
    network.edges -= {frozenset(("b3", "b4")), frozenset(("b8", "b7")), frozenset(("b25", "b26"))}
    network.edges |= {frozenset(("b3", "b5")), frozenset(("b8", "b6")), frozenset(("b25", "b27"))}
    network.check_from_scratch()


@pytest.mark.parametrize(
    ("neighbour", "destination", "message"),
    [
        ("b5", "b4", r"Δ-move of b9: found to leave b5; allowed: a primary neighbour \(b8, b10\)"),
        ("b8", "b2", r"found to go to b2; allowed: a broker within 4 hops behind b8 \(b7, b6, b5\)"),
        ("b8", "b11", "found to go to b11; allowed: a broker within 4 hops behind b8"),
        ("b8", "b8", "found to go to b8; allowed: a broker within 4 hops behind b8"),
    ],
)
def test_publiy_s6_a_move_outside_the_neighbourhood_is_refused(
    neighbour: str, destination: str, message: str, tmp_path: Path
) -> None:
    overlay = Overlay(tuple(f"b{n}" for n in range(15)), tuple((f"b{n}", f"b{n + 1}") for n in range(14)))
    network = Network(overlay, tmp_path, parameters(coordinator="b0"))
    with pytest.raises(InputError, match=message):
        network.order("b9", MoveOrdered(neighbour, destination))


def phase_at_b3(network: Network, move: int, phase: int) -> None:
    """b2 passes on a phase of b0's move from b1 to b2, to whatever broker hears it first."""
    announced = MovePhase(move, phase, 0, "b0", ("b1", "b2"), (), (), ())
    network.runtime.nodes["b3"].take_input(Received("b2", announced), network.runtime.now_us)


def test_a_broker_that_missed_the_end_of_a_move_takes_part_in_the_next_one(tmp_path: Path) -> None:
    overlay = Overlay(tuple(f"b{n}" for n in range(5)), tuple((f"b{n}", f"b{n + 1}") for n in range(4)))
    network = Network(overlay, tmp_path, parameters())
    moves = network.routers["b3"].moves
    for number in (1, 2):
        phase_at_b3(network, number, INIT)
        assert moves.zone is not None
        assert moves.zone.move == number
    phase_at_b3(network, 2, END)
    network.run_ms(200)
    assert moves.zone is None
    network.check_from_scratch()


def test_a_phase_out_of_turn_tells_the_story_of_the_move(tmp_path: Path) -> None:
    overlay = Overlay(tuple(f"b{n}" for n in range(5)), tuple((f"b{n}", f"b{n + 1}") for n in range(4)))
    network = Network(overlay, tmp_path, parameters())
    phase_at_b3(network, 1, INIT)
    phase_at_b3(network, 1, END)
    with pytest.raises(
        IllegalStep, match=r"Δ-move at b3: no M_INIT \(move 1\) in the state END, after OUTSIDE -> M_INIT"
    ):
        phase_at_b3(network, 1, INIT)


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
    network.order("new2", Departed("new2", 0))
    network.run_ms(60)
    network.edges.remove(frozenset(("new2", "new0")))
    network.routers.pop("new2")
    holders[1].discard("new2")
    traffic(100)
    network.check_deliveries(wanted)
    network.check_from_scratch()
    with pytest.raises(InputError, match="departure of b0: found"):
        network.order("b0", Departed("b0", 0))


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
