"""What the sections of a scenario stand for: its overlay, its workload, its faults."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from murmur_pubsub.errors import InputError
from murmur_pubsub.faults import FailureDetection, Fault, FaultTargets
from murmur_pubsub.links import LinkSpec
from murmur_pubsub.machine import NodeName
from murmuration.deployment.fault_entries import FaultReader
from murmuration.scenario.load import LoadedScenario
from murmuration.scenario.options import read_options
from workloads import OVERLAYS, WORKLOADS
from workloads.overlay import Overlay
from workloads.plan import Workload


def build_overlay(loaded: LoadedScenario) -> Overlay:
    """The overlay; raises `InputError`."""
    overlay: Overlay = _build(loaded, "overlay", OVERLAYS)
    return overlay


def build_workload(loaded: LoadedScenario, overlay: Overlay) -> Workload:
    """The workload over the overlay; raises `InputError`."""
    if loaded.scenario.workload.get("kind") == "by_hand":  # clients without a plan may wait for a broker that joins
        newcomers = loaded.scenario.newcomers
        cells = (*overlay.cells, *((name, (name,)) for name in newcomers)) if overlay.cells else ()
        overlay = dataclasses.replace(overlay, brokers=(*overlay.brokers, *newcomers), cells=cells)
    workload: Workload = _build(loaded, "workload", WORKLOADS, overlay)
    return workload


def build_faults(
    loaded: LoadedScenario,
    targets: FaultTargets,
    links: Mapping[tuple[NodeName, NodeName], LinkSpec],
    awaited: frozenset[NodeName],
) -> tuple[FailureDetection, tuple[Fault, ...], frozenset[NodeName]]:
    """Failure detection, the fault plan and the nodes that are down at first, checked against those that take part.
    `awaited`: those without which subscriptions are not in effect everywhere, so that the run begins with them. Raises
    `InputError`."""
    scenario = loaded.scenario
    try:
        detection = scenario.failure_detection.detection()
    except InputError as error:
        raise loaded.error_at(("failure_detection",), error.found, error.allowed) from None
    start_down = targets.start_down
    steps: tuple[Fault, ...] = ()
    if scenario.churn is not None:
        from murmuration.deployment.churn import plan_churn  # with numpy, which other scenarios do without

        try:
            churn = plan_churn(scenario.churn, targets, scenario.seed, awaited)
        except InputError as error:
            if not error.place.startswith("churn"):
                raise  # it names the trace's file and line
            raise loaded.error_at(("churn",), error.found, error.allowed) from None
        start_down, steps = start_down | churn.start_down, churn.steps
    targets = dataclasses.replace(targets, start_down=start_down)
    reader = FaultReader(targets, links, scenario.links.spec(), scenario.seed, loaded.error_at)
    return detection, reader.read(scenario.faults, steps), start_down


def _build(loaded: LoadedScenario, section: str, kinds: Mapping[str, Any], *upon: Any) -> Any:
    given = dict(getattr(loaded.scenario, section))
    kind = given.pop("kind", None)
    if kind not in kinds:
        raise loaded.error_at((section, "kind"), repr(kind), ", ".join(kinds))
    options_type, builder = kinds[kind]
    options = read_options(options_type, given, (section,), loaded.error_at)
    try:
        return builder(*upon, options, loaded.scenario.seed)
    except InputError as error:
        steps = tuple(error.place.split("."))
        if steps[0] != section:
            raise  # it names a file of its own
        raise loaded.error_at(steps, error.found, error.allowed) from None
