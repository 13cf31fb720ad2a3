"""The faults of a run as its manifest describes them, with the times at which the journal saw them."""

from collections.abc import Iterable, Mapping, Sequence

from murmur_pubsub.faults import FaultKind
from murmur_pubsub.journal import FaultStage
from murmur_pubsub.run_manifest import RunManifest
from spark_analysis.fault_windows import FaultStep, Window, fault_windows


def steps_of(
    manifest: RunManifest, times: Mapping[tuple[int, int], int], answers: Mapping[int, tuple[int, int]]
) -> list[FaultStep]:
    """The steps of a run's plan, and what was done by hand or happened by itself, all in the order in which they
    happened, which is not that of their numbers. `times`: of the FAULT rows, by step and stage. `answers`: time_us and
    value of the ANSWER rows, by step: an order is in effect when it was carried out."""
    done = {step: time_us for step, (time_us, refused) in answers.items() if not refused}
    steps = (
        FaultStep(
            number,
            entry.kind,
            f"{entry.text} (step {number + 1})",
            entry.nodes,
            entry.groups,
            entry.link,
            entry.work_us,
            times.get((number, FaultStage.ORDERED)),
            done.get(number) if entry.kind is FaultKind.ORDER else times.get((number, FaultStage.IN_EFFECT)),
            entry.given_up,
            entry.issuer,
            entry.disk_lost,
            entry.for_good,
            entry.by_itself,
        )
        for number, entry in enumerate(manifest.faults)
    )
    return sorted(steps, key=lambda step: step.turn)


def windows_of(manifest: RunManifest, steps: Sequence[FaultStep], settled: Iterable[tuple[int, int]]) -> list[Window]:
    """The windows of these faults of the run; `settled`: (time_us, covers_us) of the SETTLED rows."""
    recovers = None if manifest.has_links else manifest.promise.recovers
    return fault_windows(
        steps,
        settled,
        manifest.links,
        manifest.recovery_limit_us,
        manifest.has_links,
        recovers,
        frozenset(manifest.brokers),
    )
