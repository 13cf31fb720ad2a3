"""The faults of a run as its manifest describes them, with the times at which the journal saw them."""

from collections.abc import Iterable, Mapping, Sequence

from murmur_pubsub.journal import FaultStage
from murmur_pubsub.run_manifest import RunManifest
from spark_analysis.fault_windows import FaultStep, Window, fault_windows


def steps_of(manifest: RunManifest, times: Mapping[tuple[int, int], int]) -> list[FaultStep]:
    """The steps of a run's plan; `times`: of the FAULT rows, by step and stage."""
    return [
        FaultStep(
            number,
            entry.kind,
            f"{entry.text} (step {number + 1})",
            entry.nodes,
            entry.groups,
            entry.link,
            entry.work_us,
            times.get((number, FaultStage.ORDERED)),
            times.get((number, FaultStage.IN_EFFECT)),
        )
        for number, entry in enumerate(manifest.faults)
    ]


def windows_of(manifest: RunManifest, steps: Sequence[FaultStep], settled: Iterable[tuple[int, int]]) -> list[Window]:
    """The windows of these faults of the run; `settled`: (time_us, covers_us) of the SETTLED rows."""
    return fault_windows(steps, settled, manifest.links, manifest.recovery_limit_us, manifest.has_links)
