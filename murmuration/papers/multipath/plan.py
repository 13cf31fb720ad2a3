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
from murmuration.papers.multipath.filled_links import FilledSpec, measure_filled
from murmuration.papers.multipath.moves import MovesMeasures, MovesSpec, measure_moves
from murmuration.papers.multipath.overload import OverloadMeasures, OverloadSpec, measure_overload
from murmuration.papers.multipath.run import MultipathMeasures, MultipathSpec, measure_multipath
from routing.multipath.parameters import STRATEGIES, Strategy

OVERLOAD_CAP = 400
"""Publications a second that a broker's uplink carries in the overload runs of ours: at 1,200 published a second S0 is
then far beyond it. The paper's limit was that of its hosts (`PROCESSING_US`)."""
PROCESSING_US = 2_500
"""What a publication costs the broker that it comes to, where brokers are short of time at 1,200 a second."""
FACEBOOK_PROCESSING_US = 50_000
"""The same at 60 a second, where 120,000 subscriptions are looked through."""
CAPS = (25, 45, 75, 150)
"""Publications a second that uplinks carry in Figure 14's sweep."""

_CPL_PAYLOAD = 300
"""Bytes of a publication on PlanetLab: the text names none; with these S0 is short of its uplinks and S1 is not."""

ForwardingPoint = tuple[str, int, int]
"""A dataset, how many brokers, and the most links."""
CoveringPoint = tuple[int, int]
"""How many brokers, and the fanout."""
Job = tuple[str, MultipathSpec | MovesSpec | FilledSpec | ForwardingPoint | CoveringPoint]
"""What kind of job (`RESULT_TYPES`), and its point."""
Measured = MultipathMeasures | OverloadMeasures | MovesMeasures | CoveringSize | list[ForwardingCost]
RESULT_TYPES: dict[str, Any] = {
    "run": MultipathMeasures, "overload": OverloadMeasures, "moves": MovesMeasures, "covering": CoveringSize,
    "filled": CoveringSize, "cost": list[ForwardingCost],
}  # fmt: skip
_OVERLOADED: tuple[tuple[str, int, tuple[int, ...]], ...] = (
    ("DT1", 120, (5, 20, 35)), ("DT2", 120, (35,)), ("DT3", 250, (35,)),
)  # fmt: skip
"""Datasets, brokers and fanouts of Figure 13 (a, b)."""
_COST_POINTS: tuple[ForwardingPoint, ...] = (("DT1", 120, 35), ("DT2", 120, 35), ("DT3", 250, 35))


def do_job(job: Job) -> Measured:
    """One job; its time and memory are this process's."""
    _, point = job
    if isinstance(point, OverloadSpec):
        return measure_overload(point)
    if isinstance(point, MultipathSpec):
        return measure_multipath(point)
    if isinstance(point, FilledSpec):
        return measure_filled(point)
    if isinstance(point, MovesSpec):
        return measure_moves(point)
    return measure_covering(point) if len(point) == 2 else measure_forwarding(point)


@dataclass(frozen=True, slots=True)
class MultipathPlan:
    """The runs, by what they are for. overload, capped, facebook: uplinks are short. processing, facebook_processing:
    brokers are short of time, as the paper's were. caps: uplinks again, with several caps. filled: links are chosen
    and not learned."""

    low_rate: Sequence[MultipathSpec]
    overload: Sequence[MultipathSpec]
    capped: Sequence[MultipathSpec]
    planetlab: Sequence[MultipathSpec]
    facebook: Sequence[MultipathSpec]
    processing: Sequence[OverloadSpec]
    facebook_processing: Sequence[OverloadSpec]
    caps: Sequence[OverloadSpec]
    moves: Sequence[MovesSpec]
    covering: Sequence[CoveringPoint]
    filled: Sequence[FilledSpec]
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
                for dataset, brokers, fanouts in _OVERLOADED
                for strategies, chosen in ((without, (35,)), (with_links, fanouts))
                for strategy in strategies
                for fanout in chosen
            ],
            [replace(capped, strategy=strategy) for strategy in with_links],
            [replace(cpl, dataset=each, strategy=strategy) for each in ("DT4", "DT5") for strategy in STRATEGIES],
            [replace(facebook, strategy=strategy) for strategy in STRATEGIES[:3]],
            _processing(seed),
            _facebook_processing(seed),
            _caps(seed),
            [MovesSpec(strategy, seed=seed) for strategy in ("S0", "S2")],
            [(500, fanout) for fanout in (5, 10, 15, 20, 25)],
            _filled(seed),
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
            processing=[],
            facebook_processing=[],
            caps=[],
            moves=[MovesSpec("S2", 10, warm_s=30.0, seed=seed)],
            covering=[],
            filled=[],
            cost=_COST_POINTS[:1],
        )

    def jobs(self) -> list[Job]:
        """Everything."""
        runs = [*self.overload, *self.low_rate, *self.facebook, *self.capped, *self.planetlab]
        return [
            *(("run", spec) for spec in sorted(runs, key=lambda spec: -spec.brokers)),
            *(("overload", spec) for spec in (*self.processing, *self.facebook_processing, *self.caps)),
            *(("moves", spec) for spec in self.moves),
            *(("covering", point) for point in self.covering),
            *(("filled", spec) for spec in self.filled),
            *(("cost", point) for point in self.cost),
        ]


_SHORT_OF_TIME = OverloadSpec(
    "DT1", 120, "S0", rate_per_s=1_200, seconds=10, warm_s=160, check=False, work_us=PROCESSING_US
)
_WITHOUT_LIMIT: tuple[Strategy, ...] = ("S0", "S1", "S2")
"""SH is S2 where uplinks have no cap."""


def _processing(seed: int) -> list[OverloadSpec]:
    return [
        replace(_SHORT_OF_TIME, dataset=dataset, brokers=brokers, strategy=strategy, fanout=fanout, seed=seed)
        for dataset, brokers, fanouts in _OVERLOADED
        for strategy in _WITHOUT_LIMIT
        for fanout in (fanouts if strategy != "S0" else (35,))
    ]


def _facebook_processing(seed: int) -> list[OverloadSpec]:
    base = replace(
        _SHORT_OF_TIME, dataset="DT-FB", fanout=20, rate_per_s=60, seconds=60, warm_rate_per_s=20,
        work_us=FACEBOOK_PROCESSING_US, seed=seed,
    )  # fmt: skip
    return [replace(base, strategy=strategy) for strategy in _WITHOUT_LIMIT]


def _caps(seed: int) -> list[OverloadSpec]:
    """Links are learned at a rate at which no cap binds; 2.5 s of what an uplink carries may wait for it."""
    base = OverloadSpec(
        "DT1", 120, "S1", rate_per_s=120, seconds=30, warm_s=480, warm_rate_per_s=10, check=False, seed=seed
    )
    return [
        replace(base, strategy=strategy, uplink_messages_per_s=cap, queue_messages=cap * 5 // 2)
        for cap in CAPS
        for strategy in STRATEGIES[1:]
    ]


_FAMILIES: tuple[tuple[int, ...], ...] = ((2, 3, 4, 5), (1, 4, 5, 5), (1, 4, *[5] * 6), (1, 4, 4, 4, *[5] * 12))
"""Shapes of DT-C: the one of all other runs, and such with a short first filter, in larger and larger families."""


def _filled(seed: int) -> list[FilledSpec]:
    return [FilledSpec(500, fanout, ranges, seed) for ranges in _FAMILIES for fanout in (5, 10, 25)]
