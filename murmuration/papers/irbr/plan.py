"""Which runs the IRBR paper's charts are made of."""

from collections.abc import Sequence
from dataclasses import dataclass

from murmuration.papers.irbr.live import IrbrLiveSpec
from murmuration.papers.irbr.run import (
    PROTOCOLS,
    RESETS,
    ROUTED,
    TEXT_RPF,
    CostSpec,
    FaultSpec,
    OperationCost,
    Resilience,
    measure_operations,
    measure_resilience,
)
from murmuration.papers.irbr.workload import Rates
from murmuration.papers.lab.real_data import Trace, find_real

_AT = {64: (16, 32, 64, 128), 256: (32, 64, 128, 256, 512), 1_024: (64, 128, 256, 512), 4_096: (64, 128, 256, 512)}
"""Nodes to the numbers of subscriptions at which costs are reported."""
_SPREAD_NODES, _SPREAD_SEEDS = (64, 256, 1_024), range(1, 13)
"""How large the networks are whose spread over seeds is measured, and with which seeds."""


@dataclass(frozen=True, slots=True)
class IrbrPlan:
    """The runs, by what they are for; `nodes` is the size that the criteria are about. `live`: on actors."""

    nodes: int
    subscribing: Sequence[CostSpec]
    publishing: Sequence[CostSpec]
    faults: Sequence[FaultSpec]
    live: Sequence[IrbrLiveSpec]
    spread: Sequence[CostSpec]
    """Runs of other seeds and sizes, for the spread of what the criteria compare."""
    large: Sequence[CostSpec]
    """Publishing in the largest network."""

    @classmethod
    def full(cls, seed: int) -> "IrbrPlan":
        """The sheet's sizes and rates."""
        traces: tuple[Trace, ...] = ("generated", "skype") if find_real("skype.avt") else ("generated",)
        sizes = {nodes: _AT[nodes] for nodes in (256, 1_024)}
        return cls(
            1_024,
            [
                CostSpec(routing, nodes, Rates(covering=rate), at, 0, seed)
                for nodes, at in sizes.items()
                for rate in (0.01, 0.05, 0.2)
                for routing in (*PROTOCOLS, TEXT_RPF)
            ],
            [
                CostSpec(routing, nodes, Rates(matching=rate), at[:-1], 40, seed)
                for nodes, at in sizes.items()
                for rate in (0.01, 0.1, 0.5)
                for routing in (*PROTOCOLS, *ROUTED)
            ],
            [
                *(
                    FaultSpec(routing, 256, share, seed=seed)
                    for share in (0.05, 0.1, 0.2, 0.3)
                    for routing in PROTOCOLS
                ),
                *(FaultSpec(routing, 1_024, 0.2, seed=seed) for routing in (*PROTOCOLS, *RESETS)),
                *(FaultSpec(routing, 1_024, 0.0, churn_per_s=10, seed=seed) for routing in PROTOCOLS),
            ],
            [IrbrLiveSpec(routing, seed, trace) for trace in traces for routing in PROTOCOLS],
            [
                spec
                for nodes in _SPREAD_NODES
                for other in _SPREAD_SEEDS
                for spec in spread(nodes, (0.05, 0.2), 40, other)
            ],
            [CostSpec("irbr", 4_096, Rates(matching=0.1), _AT[4_096][:-1], 40, seed)],
        )

    @classmethod
    def quick(cls, seed: int) -> "IrbrPlan":
        """Under 50 s: 64 nodes."""
        at = _AT[64]
        return cls(
            64,
            [CostSpec(each, 64, Rates(covering=0.2), at, 0, seed) for each in (*PROTOCOLS, TEXT_RPF)],
            [
                CostSpec(each, 64, Rates(matching=rate), at[:3], 20, seed)
                for rate in (0.1, 0.5)
                for each in (*PROTOCOLS, *ROUTED)
            ],
            [FaultSpec(each, 64, 0.2, rate_per_s=40, matching=0.2, seed=seed) for each in (*PROTOCOLS, *RESETS)],
            [],
            [CostSpec(each, 64, Rates(covering=0.2), at, 0, seed + 1) for each in ("irbr", "rpf")],
            [],
        )

    def specs(self) -> list[CostSpec | FaultSpec]:
        """Those in virtual time, each once, the largest networks first."""
        costs = dict.fromkeys((*self.large, *self.publishing, *self.subscribing, *self.spread))
        return sorted((*self.faults, *costs), key=lambda spec: -spec.nodes)


def spread(nodes: int, covering: Sequence[float], events: int, seed: int) -> list[CostSpec]:
    """One seed of what the criteria compare. Of the text's RPF only in small networks: it is far from the others."""
    return [
        *(
            CostSpec(routing, nodes, Rates(covering=rate), _AT[nodes], 0, seed)
            for rate in covering
            for routing in ("irbr", "rpf", *((TEXT_RPF,) if nodes < 256 else ()))
        ),
        *(
            CostSpec(routing, nodes, Rates(matching=0.1), _AT[nodes][:-1], events, seed)
            for routing in (*PROTOCOLS, *ROUTED)
        ),
    ]


def measure_pastry(spec: CostSpec | FaultSpec) -> OperationCost | Resilience:
    """One run in virtual time."""
    return measure_operations(spec) if isinstance(spec, CostSpec) else measure_resilience(spec)
