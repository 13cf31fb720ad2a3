"""The faults of a run as its manifest describes them, with the times at which the journal saw them."""

from collections.abc import Iterable, Mapping

from murmur_pubsub.errors import InputError
from murmur_pubsub.faults import FaultKind
from murmur_pubsub.journal import FaultStage
from spark_analysis.fault_windows import FaultStep, Window, fault_windows
from spark_analysis.run_folder import Manifest


def windows_of(
    manifest: Manifest, times: Mapping[tuple[int, int], int], settled: Iterable[tuple[int, int]]
) -> list[Window]:
    """The windows of a run's faults. `times`: of the FAULT rows, by step and stage; `settled`: (time_us, covers_us).
    Raises `InputError` for a manifest that does not describe its faults."""
    steps = []
    for number, listed in enumerate(manifest.faults):
        try:
            step = FaultStep(
                number,
                FaultKind[listed["kind"]],
                f"{listed['text']} (step {number + 1})",
                tuple(listed["nodes"]),
                tuple(tuple(group) for group in listed["groups"]),
                listed["link"],
                listed["work_us"],
                times.get((number, FaultStage.ORDERED)),
                times.get((number, FaultStage.IN_EFFECT)),
            )
        except (KeyError, TypeError) as error:
            place = f"manifest.json, key faults[{number}]"
            raise InputError(place, f"{listed!r:.80} ({error!r})", "a step of a fault plan") from None
        steps.append(step)
    return fault_windows(steps, settled, manifest.links, manifest.recovery_limit_us, manifest.has_links)
