"""Which runs the IRBR paper's charts are made of."""

from collections.abc import Sequence
from dataclasses import dataclass

from murmuration.papers.irbr.live import IrbrLiveSpec
from murmuration.papers.irbr.run import (
    PROTOCOLS,
    RESETS,
    ROUTED,
    CostSpec,
    FaultSpec,
    OperationCost,
    Resilience,
    measure_operations,
    measure_resilience,
)
from murmuration.papers.irbr.workload import Rates
from murmuration.papers.lab.real_data import Trace, find_real


@dataclass(frozen=True, slots=True)
class IrbrPlan:
    """The runs, by what they are for; `nodes` is the size that the criteria are about. `live`: on actors."""

    nodes: int
    subscribing: Sequence[CostSpec]
    publishing: Sequence[CostSpec]
    faults: Sequence[FaultSpec]
    live: Sequence[IrbrLiveSpec]

    @classmethod
    def full(cls, seed: int) -> "IrbrPlan":
        """The sheet's sizes and rates."""
        traces: tuple[Trace, ...] = ("generated", "skype") if find_real("skype.avt") else ("generated",)
        sizes = {256: (32, 64, 128, 256, 512), 1_024: (64, 128, 256, 512)}
        return cls(
            1_024,
            [
                CostSpec(routing, nodes, Rates(covering=rate), at, 0, seed)
                for nodes, at in sizes.items()
                for rate in (0.01, 0.05, 0.2)
                for routing in PROTOCOLS
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
        )

    @classmethod
    def quick(cls, seed: int) -> "IrbrPlan":
        """Under 50 s: 64 nodes."""
        at = (16, 32, 64, 128)
        return cls(
            64,
            [CostSpec(each, 64, Rates(covering=rate), at, 0, seed) for rate in (0.2,) for each in PROTOCOLS],
            [
                CostSpec(each, 64, Rates(matching=rate), at[:3], 20, seed)
                for rate in (0.1, 0.5)
                for each in (*PROTOCOLS, *ROUTED)
            ],
            [FaultSpec(each, 64, 0.2, rate_per_s=40, matching=0.2, seed=seed) for each in (*PROTOCOLS, *RESETS)],
            [],
        )

    def specs(self) -> list[CostSpec | FaultSpec]:
        """Those in virtual time, the largest networks first."""
        return sorted((*self.faults, *self.publishing, *self.subscribing), key=lambda spec: -spec.nodes)


def measure_pastry(spec: CostSpec | FaultSpec) -> OperationCost | Resilience:
    """One run in virtual time."""
    return measure_operations(spec) if isinstance(spec, CostSpec) else measure_resilience(spec)
