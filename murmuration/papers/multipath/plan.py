"""Which runs the multipath paper's tables and figures are made of.

C1 has 120 brokers, C2 250, C3 500, CPL 21, each a balanced tree of degree 3.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from murmuration.papers.multipath.cost import (
    CoveringSize,
    ForwardingCost,
    measure_covering,
    measure_forwarding,
)
from murmuration.papers.multipath.moves import MovesMeasures, MovesSpec, measure_moves
from murmuration.papers.multipath.run import MultipathMeasures, MultipathSpec, measure_multipath
from routing.multipath.parameters import STRATEGIES, Strategy

OVERLOAD_CAP = 400
"""Publications a second that a broker's uplink carries in the overload runs: at 1,200 published a second S0 is then
far beyond it (the paper's limit was that of its hosts)."""

_CPL_PAYLOAD = 300
"""Bytes of a publication on PlanetLab: the text names none; with these S0 is short of its uplinks and S1 is not."""

ForwardingPoint = tuple[str, int, int]
"""A dataset, how many brokers, and the most links."""
CoveringPoint = tuple[int, int]
"""How many brokers, and the fanout."""
Job = tuple[str, MultipathSpec | MovesSpec | ForwardingPoint | CoveringPoint]
"""What kind of job (`RESULT_TYPES`), and its point."""
Measured = MultipathMeasures | MovesMeasures | CoveringSize | list[ForwardingCost]
RESULT_TYPES: dict[str, Any] = {
    "run": MultipathMeasures, "moves": MovesMeasures, "covering": CoveringSize, "cost": list[ForwardingCost],
}  # fmt: skip
_COST_POINTS: tuple[ForwardingPoint, ...] = (("DT1", 120, 35), ("DT2", 120, 35), ("DT3", 250, 35))


def do_job(job: Job) -> Measured:
    """One job; its time and memory are this process's."""
    _, point = job
    if isinstance(point, MultipathSpec):
        return measure_multipath(point)
    if isinstance(point, MovesSpec):
        return measure_moves(point)
    return measure_covering(point) if len(point) == 2 else measure_forwarding(point)


@dataclass(frozen=True, slots=True)
class MultipathPlan:
    """The runs, by what they are for."""

    low_rate: Sequence[MultipathSpec]
    overload: Sequence[MultipathSpec]
    capped: Sequence[MultipathSpec]
    planetlab: Sequence[MultipathSpec]
    facebook: Sequence[MultipathSpec]
    moves: Sequence[MovesSpec]
    covering: Sequence[CoveringPoint]
    cost: Sequence[ForwardingPoint]

    @classmethod
    def full(cls, seed: int) -> "MultipathPlan":
        """Every figure at the paper's size."""
        c1 = MultipathSpec("DT1", 120, "S0", seed=seed)
        saturated = replace(
            c1, rate_per_s=1_200, seconds=10, warm_s=160, uplink_messages_per_s=OVERLOAD_CAP, check=False
        )
        cpl = replace(
            c1, brokers=21, fanout=15, rate_per_s=55, seconds=300, warm_s=120, warm_rate_per_s=10,
            uplink_bytes_per_s=10_000, payload_bytes=_CPL_PAYLOAD, check=False,
        )  # fmt: skip
        capped = replace(c1, rate_per_s=120, seconds=300, uplink_messages_per_s=150, check=False)
        facebook = replace(
            c1, dataset="DT-FB", fanout=20, seconds=300, warm_s=160, warm_rate_per_s=20,
            uplink_messages_per_s=OVERLOAD_CAP * 60 // 1_200, check=False,
        )  # fmt: skip
        without, with_links = STRATEGIES[:1], STRATEGIES[1:]
        return cls(
            [replace(c1, dataset=each, strategy=strategy) for each in ("DT1", "DT2") for strategy in STRATEGIES],
            [
                replace(saturated, dataset=dataset, brokers=brokers, strategy=strategy, fanout=fanout)
                for dataset, brokers, fanouts in (("DT1", 120, (5, 20, 35)), ("DT2", 120, (35,)), ("DT3", 250, (35,)))
                for strategies, chosen in ((without, (35,)), (with_links, fanouts))
                for strategy in strategies
                for fanout in chosen
            ],
            [replace(capped, strategy=strategy) for strategy in with_links],
            [replace(cpl, dataset=each, strategy=strategy) for each in ("DT4", "DT5") for strategy in STRATEGIES],
            [replace(facebook, strategy=strategy) for strategy in STRATEGIES[:3]],
            [MovesSpec(strategy, seed=seed) for strategy in ("S0", "S2")],
            [(500, fanout) for fanout in (5, 10, 15, 20, 25)],
            _COST_POINTS,
        )

    @classmethod
    def quick(cls, seed: int) -> "MultipathPlan":
        """Under 50 s: C1 with less traffic, and no runs of the large networks."""
        c1 = MultipathSpec("DT1", 120, "S0", seconds=15, warm_s=90, warm_rate_per_s=25, round_s=10, seed=seed)
        saturated = replace(
            c1, rate_per_s=1_200, seconds=2, uplink_messages_per_s=OVERLOAD_CAP, queue_messages=200, check=False
        )
        cpl = replace(
            c1, dataset="DT4", brokers=21, fanout=15, rate_per_s=55, seconds=60, warm_s=60, warm_rate_per_s=10,
            uplink_bytes_per_s=10_000, payload_bytes=_CPL_PAYLOAD, check=False,
        )  # fmt: skip
        extremes: tuple[Strategy, ...] = ("S0", "S2")
        return cls(
            low_rate=[replace(c1, strategy=strategy) for strategy in STRATEGIES],
            overload=[replace(saturated, strategy=strategy) for strategy in extremes],
            capped=[],
            planetlab=[replace(cpl, strategy=strategy) for strategy in extremes],
            facebook=[],
            moves=[MovesSpec("S2", 10, warm_s=30.0, seed=seed)],
            covering=[],
            cost=_COST_POINTS[:1],
        )

    def jobs(self) -> list[Job]:
        """Everything."""
        runs = [*self.overload, *self.low_rate, *self.facebook, *self.capped, *self.planetlab]
        return [
            *(("run", spec) for spec in sorted(runs, key=lambda spec: -spec.brokers)),
            *(("moves", spec) for spec in self.moves),
            *(("covering", point) for point in self.covering),
            *(("cost", point) for point in self.cost),
        ]
