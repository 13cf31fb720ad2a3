"""Section 6 of the multipath paper: Δ-moves while brokers publish, against the oracle.

Any broker is told to leave any neighbour for any broker within Δ behind it, and is refused if there is no room. Moves
whose neighbourhoods overlap wait for each other at the coordinator. What is published meanwhile must arrive once,
whichever tree it took.
"""

import random
import tempfile
from dataclasses import dataclass
from pathlib import Path

from murmur_pubsub.machine import Answer, NodeName, Order
from murmuration.papers.lab.process_meter import ProcessMeter
from murmuration.papers.multipath.run import MultipathNetwork, MultipathSpec
from routing.multipath.overlay_maps import MasterOverlayMap
from routing.multipath.parameters import Strategy

_RATE_PER_S = 30.0
_GAP_S = 0.5
"""How often it is looked whether another move should be ordered."""
_AT_ONCE = 4
"""So many moves may be unanswered."""
_LOOKS = 50
"""So often for each move that is to be made, at most."""


@dataclass(frozen=True, slots=True)
class MovesSpec:
    """How many moves are to be made, under what traffic. `warm_s`: of publishing first, in which links are learned."""

    strategy: Strategy
    moves: int = 200
    warm_s: float = 120.0
    dataset: str = "DT1"
    brokers: int = 120
    seed: int = 1


@dataclass(slots=True)
class MovesMeasures:
    """What came out. `agreed`: do all brokers know their neighbours alike in the end, and are these a tree?"""

    spec: MovesSpec
    made: int = 0
    refused: int = 0
    published: int = 0
    required: int = 0
    missing: int = 0
    duplicate: int = 0
    spurious: int = 0
    agreed: bool = False
    cpu_s: float = 0.0


class _MovingNetwork(MultipathNetwork):
    """Brokers that are told to move."""

    def __init__(self, spec: MultipathSpec, folder: Path) -> None:
        super().__init__(spec, folder, coordinator="b0")
        self.answers: list[Answer] = []
        self.ordered = 0
        self._rng = random.Random(f"{spec.seed}/moves")

    def answered(self, answer: Answer) -> None:
        """See `MeasuredNetwork`."""
        self.answers.append(answer)

    @property
    def made(self) -> int:
        """The moves that were made."""
        return sum(not answer.refusal for answer in self.answers)

    def adjacency(self) -> dict[NodeName, tuple[NodeName, ...]]:
        """Each broker's neighbours, as it has them now."""
        return {name: tuple(router.knowledge.network.peers) for name, router in self.routers.items()}

    def order_a_move(self) -> None:
        """Tell some broker to move to a place that is possible in the tree as it is."""
        rng, adjacency = self._rng, self.adjacency()
        behind: list[NodeName] = []
        while not behind:
            mover = rng.choice(self.names)
            neighbour = rng.choice(adjacency[mover])
            mom = MasterOverlayMap(mover, self.routers[mover].knowledge.parameters.delta, adjacency)
            behind = [peer for peer in mom.brokers if peer != neighbour and mom.first_hop(peer) == neighbour]
        order = Order(self.ordered, "move", [neighbour, rng.choice(behind)])
        self.runtime.nodes[mover].take_input(order, self.runtime.now_us)
        self.ordered += 1

    def agree(self) -> bool:
        """Do both ends of each link know of it, and are there as many as a tree has?"""
        adjacency = self.adjacency()
        links = [(name, peer) for name, peers in adjacency.items() for peer in peers]
        return all(name in adjacency[peer] for name, peer in links) and len(links) == 2 * (len(self.names) - 1)


def measure_moves(spec: MovesSpec) -> MovesMeasures:
    """Have the moves made, and count; time is this process's (give it one of its own)."""
    spent = ProcessMeter()
    run = MultipathSpec(
        spec.dataset, spec.brokers, spec.strategy, rate_per_s=_RATE_PER_S, warm_s=spec.warm_s, seed=spec.seed
    )
    measures = MovesMeasures(spec)
    with tempfile.TemporaryDirectory() as folder:
        network = _MovingNetwork(run, Path(folder))
        network.publish_steadily(int(spec.warm_s * _RATE_PER_S), _RATE_PER_S, 1)
        network.begin_measuring(0)
        for look in range(_LOOKS * spec.moves):
            waiting = network.ordered - len(network.answers)
            if network.made + waiting < spec.moves and waiting < _AT_ONCE:
                network.order_a_move()
            elif not waiting and network.made >= spec.moves:
                break
            network.publish_steadily(int(_GAP_S * _RATE_PER_S), _RATE_PER_S, 2 + look)
        found = network.finish()
        measures.made, measures.agreed = network.made, network.agree()
    measures.refused = network.ordered - measures.made
    measures.published, measures.required = found.published, found.required
    measures.missing, measures.duplicate, measures.spurious = found.missing, found.duplicate, found.spurious
    measures.cpu_s = spent.cpu_s
    return measures
