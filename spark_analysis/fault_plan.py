"""The faults of a run as its manifest describes them, with the times at which the journal saw them."""

from collections.abc import Iterable, Mapping, Sequence

from murmur_pubsub.dead_nodes import with_the_living
from murmur_pubsub.faults import DEATHS, RETURNS, FaultKind
from murmur_pubsub.journal import FaultStage
from murmur_pubsub.run_manifest import RunManifest
from spark_analysis.fault_windows import NEVER_US, FaultStep, Window, fault_windows


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


def kills_of(manifest: RunManifest, steps: Iterable[FaultStep]) -> tuple[int, int]:
    """How many deaths of a live run were ends of processes, and how many threw a node away in one that went on. `steps`
    are those of the run, in the order in which they happened.

    A step about nodes that are dead already is none, nor is one about nodes whose start waited for their host when it
    was in effect. What dies by itself as it starts had been there."""
    counts = {True: 0, False: 0}
    up_us: dict[str, int] = {}
    for step, alive in with_the_living(steps):
        seen_us = NEVER_US if step.in_effect_us is None else step.in_effect_us
        if step.kind in RETURNS:
            up_us |= dict.fromkeys(frozenset(step.nodes) - alive, seen_us)
        elif step.kind in DEATHS and seen_us < NEVER_US:
            own = step.by_itself and step.kind is FaultKind.KILL
            counts[manifest.faults[step.number].in_process] += any(
                own or up_us.get(name, 0) <= seen_us for name in alive
            )
    return (counts[False], counts[True]) if manifest.runtime == "ray" else (0, 0)


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
