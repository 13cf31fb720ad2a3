"""Random schedules for the routings over Pastry, each drawn from one seed.

A schedule has its own leaf set, base, kind of identifiers and delays. Nodes crash (one, or a third of them at once,
some of them neighbours on the ring), come back, join, subscribe, withdraw and publish, and nobody waits. After some
rounds of probes every table must be complete, and every event must reach exactly the interested nodes, once.
"""

import random
from collections.abc import Sequence

from murmur_pubsub.links import Delay
from tests.protocols.structured import CONSTANT, StructuredNetwork

SETTLED_ROUNDS = 8
OPERATIONS = ("subscribe", "unsubscribe", "publish", "crash", "restart", "join", "mass failure", "pass time")
FILTERS = [*(f"x > {bound}" for bound in range(8)), "x BETWEEN 1 AND 2", "x = 3"]
SHAPES = ((4, 4), (2, 8), (16, 2))
"""Base and digits: 256 identifiers each."""
SIZE = 256
_OVERTAKING = Delay("uniform", 500, 15_000)
_NODES_MAX = 48
_BOOTSTRAP = 4


def drawn_identifiers(kind: str, rng: random.Random) -> list[int]:
    """All identifiers that the schedule's nodes may take, in the order in which they do."""
    if kind == "clustered":  # three crowded arcs, next to nobody in between
        starts = rng.sample(range(SIZE), 3)
        crowded = {(start + step) % SIZE: None for step in range(24) for start in starts}
        return rng.sample(list(crowded), len(crowded))
    if kind == "edge":  # around the ends of the space and the middles of its largest ranges
        near = {(edge + step) % SIZE: None for edge in (0, 64, 128, 192) for step in range(-7, 8)}
        return rng.sample(list(near), len(near))
    return rng.sample(range(SIZE), SIZE)


class Chaos:
    """One schedule, played while it is drawn. Messages overtake each other where the routing allows it."""

    def __init__(self, routing: str, seed: int, crowded: bool = False, overtaking: bool = False) -> None:
        """`crowded`: with the kind of identifiers and the leaf set with which tables fill up most slowly. `overtaking`:
        messages overtake each other in any case."""
        self.rng = random.Random(f"{seed}/chaos")
        self.kind = self.rng.choice(("uniform", "clustered", "edge"))
        self.leaf_set = self.rng.choice((4, 4, 8, 16))
        if crowded:
            self.kind, self.leaf_set = "clustered", 4
        base, digits = self.rng.choice(SHAPES)
        delay = self.rng.choice((CONSTANT, _OVERTAKING))
        delay = _OVERTAKING if overtaking else delay
        self.network = StructuredNetwork(
            routing, digits, self.leaf_set, delay, seed, _NODES_MAX, base=base,
            ordered=routing in ("scribe", "rpf", "rpf_receiver"),
            parameters={routing: {"resets": self.rng.random() < 0.5}},
        )  # fmt: skip
        self.text = f"{routing}, seed {seed}: {self.kind}, leaf set {self.leaf_set}, base {base}, {delay.kind}"
        self.identifiers = drawn_identifiers(self.kind, self.rng)
        self.wanted: dict[str, list[str]] = {}
        self.filters = FILTERS
        names = [f"n{number}" for number in range(self.rng.randrange(6, 25))]
        for number, name in enumerate(names):
            others = names[:number] or names[1:]
            through = self.rng.sample(others, min(_BOOTSTRAP, len(others)))
            self.network.start(name, self.identifiers[number], through, founds=not number)
        self.network.quiet()
        self.wanted = {name: [] for name in names}

    def play(self, operations: int = 100) -> None:
        """So many operations, drawn; then settle, and look."""
        weights = [self.rng.choice((0, 1, 1, 3)) for _ in OPERATIONS]  # each schedule leaves some kinds out
        for kind in self.rng.choices(OPERATIONS, [weight or 0.05 for weight in weights], k=operations):
            getattr(self, kind.replace(" ", "_"))()
        self.network.rounds(SETTLED_ROUNDS)
        self.network.check_overlay()
        self.check_deliveries()
        assert set(self.network.delivered.values()) <= {1}, "an event came twice"
        self.network.close()

    # -------------------------------------------------------------------------------------- operations
    def subscribe(self) -> None:
        name, text = self.rng.choice(self.network.up), self.rng.choice(self.filters)
        if text not in self.wanted[name]:
            self.wanted[name].append(text)
            self.network.subscribe(name, text)

    def unsubscribe(self) -> None:
        holders = [name for name in self.network.up if self.wanted[name]]
        if holders:
            name = self.rng.choice(holders)
            self.network.unsubscribe(name, self.wanted[name].pop(self.rng.randrange(len(self.wanted[name]))))

    def publish(self) -> None:
        """While everything moves an event may get lost. It must not come twice."""
        self.network.publish(self.rng.choice(self.network.up), {"x": self.rng.choice((1, 3, 9))})

    def crash(self) -> None:
        self._kill([self.rng.choice(self.network.up)])

    def mass_failure(self) -> None:
        """A third of the nodes at once, neighbours on the ring or not; now and then some join at the same time."""
        up = self.network.up
        if self.rng.random() < 0.5:
            self._kill(self.rng.sample(up, len(up) // 3))
        else:
            ring = sorted(up, key=lambda name: self.network.pastry(name).own)
            first = self.rng.randrange(len(ring))
            self._kill([ring[(first + step) % len(ring)] for step in range(len(ring) // 3)])
        for _ in range(self.rng.choice((0, 0, 2, 5))):
            self.join()

    def restart(self) -> None:
        down = [name for name, node in self.network.runtime.nodes.items() if node.down]
        if down:
            name = self.rng.choice(down)
            self._start(name, self.network.pastry(name).own)

    def join(self) -> None:
        number = len(self.network.runtime.nodes)
        if number < min(_NODES_MAX, len(self.identifiers)):
            self._start(f"n{number}", self.identifiers[number])

    def pass_time(self) -> None:
        self.network.runtime.run(until_us=self.network.runtime.now_us + self.rng.choice((500, 20_000, 700_000)))

    def _start(self, name: str, identifier: int) -> None:
        others = self._joined()
        self.network.start(name, identifier, self.rng.sample(others, min(_BOOTSTRAP, len(others))))
        self.wanted[name] = []

    def _kill(self, names: Sequence[str]) -> None:
        """Those of them that are not the last bootstrap peer of another: what knows nobody finds nobody."""
        for name in names:
            joined = set(self._joined()) - {name}
            if all(joined & set(self.network.pastry(each).place.bootstrap) for each in self.network.up if each != name):
                self.network.crash(name)
                self.wanted[name] = []

    def _joined(self) -> list[str]:
        return [name for name in self.network.up if self.network.pastry(name).joined]

    # ------------------------------------------------------------------------------------------- the look
    def check_deliveries(self) -> None:
        """Events of some values, from every node."""
        for publisher in self.network.up:
            for value in (1, 3, 9):
                event = self.network.publish(publisher, {"x": value})
                self.network.quiet()
                interested = {
                    name: 1 for name in self.network.up if any(matches(text, value) for text in self.wanted[name])
                }
                got = self.network.got(event)
                assert got == interested, (
                    f"x = {value} from {publisher}: missing {interested.keys() - got.keys()}, "
                    f"too much {dict(got.items() - interested.items())}"
                )


def changing_filters(seed: int) -> None:
    """IRBR's nodes ask for a few filters and withdraw them, over links that reorder, and none fails: once all is quiet,
    events reach whom they should, before any probe compares what two nodes have."""
    chaos = Chaos("irbr", seed, overtaking=True)
    chaos.filters = ["x > 3", "x BETWEEN 1 AND 2", "x = 3"]
    for kind in chaos.rng.choices(("subscribe", "unsubscribe", "publish", "pass time"), (2, 2, 1, 1), k=200):
        getattr(chaos, kind.replace(" ", "_"))()
    chaos.network.quiet()
    chaos.check_deliveries()
    chaos.network.close()


def matches(text: str, value: int) -> bool:
    """Does an event with this x match the filter?"""
    if text.startswith("x >"):
        return value > int(text[4:])
    return value == 3 if text == "x = 3" else 1 <= value <= 2


def concurrent_joins(seed: int) -> None:
    """Nodes join through random earlier ones, most of them at once, over links that reorder: once all is quiet, no
    table lacks a node. In half of the draws two rounds of probes follow, after which no leaf set does."""
    rng = random.Random(f"{seed}/joins")
    base, digits = rng.choice(SHAPES)
    delay = Delay("uniform", 300, rng.choice((5_000, 40_000)))
    network = StructuredNetwork("irbr", digits, rng.choice((4, 4, 8)), delay, seed, _NODES_MAX, base=base)
    identifiers = drawn_identifiers(rng.choice(("uniform", "clustered", "edge")), rng)[: rng.randint(8, 40)]
    for number, identifier in enumerate(identifiers):
        network.start(f"n{number}", identifier, [f"n{rng.randrange(number)}"] if number else [])
        if rng.random() < 0.3:
            network.runtime.run(until_us=network.runtime.now_us + rng.choice((500, 5_000, 20_000)))
    network.quiet()
    network.check_tables()
    if seed & 2:
        network.rounds(2)
        network.check_overlay()
    network.close()
