"""What can be hunted: every pair of protocols that promises something and can be, or the protocols of a scenario."""

import itertools
from collections.abc import Sequence
from pathlib import Path

from murmur_pubsub.errors import InputError
from murmuration.deployment.build_deployment import build
from murmuration.hunt.chunk import Quarry
from murmuration.hunt.schedule import draw_one_that_can_be
from murmuration.hunt.space import VARIANTS
from murmuration.registry import RELIABILITIES, ROUTINGS, reliability_named, routing_named
from murmuration.scenario.load import LoadedScenario, load_scenario


def all_pairs(routings: Sequence[str], reliabilities: Sequence[str], variants: Sequence[str] = ()) -> list[Quarry]:
    """Each of these routings with each of these reliability protocols, where the two suit each other; all that are
    registered where none is named. Of each two these variants, where they have them; those without one where none is
    named. Raises `InputError` for a name that is none, or if no two suit each other."""
    for name in routings:
        routing_named(name)
    for name in reliabilities:
        reliability_named(name)
    for name in variants:
        if name not in VARIANTS:
            raise InputError("--variant", repr(name), ", ".join(VARIANTS))
    reasons: list[InputError] = []
    found = []
    for routing, reliability, variant in itertools.product(
        routings or tuple(ROUTINGS), reliabilities or tuple(RELIABILITIES), variants or (None,)
    ):
        quarry = Quarry(routing, reliability, variant=variant)
        wrong = _wrong(quarry)
        if wrong is None:
            found.append(quarry)
        else:
            reasons.append(wrong)
    if not found:
        found_none = f"no two that can be played ({reasons[0]})"
        raise InputError("--routing, --reliability, --variant", found_none, "what suits each other")
    return found


def _wrong(quarry: Quarry) -> InputError | None:
    """Why none of many schedules of the pair can be."""
    try:
        draw_one_that_can_be(quarry.space())
    except InputError as error:
        return error
    return None


def quarry_of_scenario(path: Path) -> Quarry:
    """The protocols of a scenario, on its overlay with its workload; only faults are drawn. Raises `InputError`."""
    loaded = load_scenario(path)
    parts = loaded.scenario.broker
    keys = {key: value for key, value in loaded.data.items() if key not in ("faults", "runtime", "expect")}
    quarry = Quarry(
        parts.routing,
        parts.reliability,
        parts.parameters,
        {**keys, "runtime": "virtual"},
        _publishing_ms(loaded),
    )
    draw_one_that_can_be(quarry.space())
    return quarry


def _publishing_ms(loaded: LoadedScenario) -> int:
    """When the last event is published."""
    scripts = build(loaded).deployment.scripts.values()
    latest_us = max((at_us for script in scripts for at_us, *_ in script.publications), default=0)
    return max(1_000, latest_us // 1_000)
