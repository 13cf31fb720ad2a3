"""What is written when a hunt has ended: numbers, the curve of coverage over time, and what was never reached."""

import itertools
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from enum import Enum
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from murmur_pubsub.deployment import make_machine
from murmur_pubsub.whole_files import whole
from murmuration.hunt.chunk import Quarry
from murmuration.hunt.coverage import COARSE
from murmuration.hunt.folder import HuntFolder
from murmuration.hunt.hunt import Hunt
from murmuration.hunt.properties import property_at
from murmuration.hunt.schedule import draw_one_that_can_be
from murmuration.hunt.trial import deployment_of
from murmuration.sweeps.folder import write_whole
from spark_analysis.look import STYLE


def write_summary(hunt: Hunt, folder: HuntFolder) -> dict[str, Any]:
    """Write `summary.json`, `coverage.txt` and `curve.svg`; the numbers."""
    state = hunt.state
    numbers = {
        "schedules": state.schedules,
        "refused": state.refused,
        "per_cpu_hour": round(state.per_cpu_hour),
        "seconds": round(state.seconds, 1),
        "verdicts": dict(state.verdicts),
        "places": {pair: len(corpus.places) for pair, corpus in hunt.corpora.items()},
        "findings": [{"folder": str(each.folder), **each.record} for each in hunt.found.all],
        "lost": state.lost,
    }
    write_whole(folder.folder / "summary.json", json.dumps(numbers, indent=1) + "\n")
    lines = [line for quarry in hunt.quarries for line in _coverage(quarry, hunt.corpora[quarry.name].places)]
    write_whole(folder.folder / "coverage.txt", "\n".join(lines) + "\n")
    _draw_curve(folder)
    return numbers


def _coverage(quarry: Quarry, places: set[str]) -> Iterator[str]:
    yield f"{quarry.name}: {len(places):,} places reached"
    for what, missing in (
        ("faults never in force", never_in_force(quarry, places)),
        ("faults that never began while another was in force or being mended", never_met(quarry, places)),
        ("messages never lost", never_lost(quarry, places)),
        ("states never seen", never_seen(quarry, places)),
        ("properties that never held", never_held(quarry, places)),
    ):
        yield f"  {what}: {', '.join(missing) or 'none'}"


def never_in_force(quarry: Quarry, places: set[str]) -> list[str]:
    """Kinds of faults that were drawn for no overlay: it does not take them, or chance left them out."""
    seen = {fault for place in places if place.count(" | ") >= 2 for fault in place.rsplit(" | ", 2)[1].split(" + ")}
    return [kind for kind in _kinds(quarry) if kind not in seen]


def never_met(quarry: Quarry, places: set[str]) -> list[str]:
    """Two kinds of faults, the first of which never began during the second or what followed it."""
    absent = never_in_force(quarry, places)
    kinds = [kind for kind in _kinds(quarry) if kind not in absent]
    return [
        f"{second} during {first}"
        for first, second in itertools.product(kinds, kinds)
        if not {f"{second} during {first}", f"{second} during after {first}"} & places
    ]


def _kinds(quarry: Quarry) -> list[str]:
    return sorted({COARSE[kind] for kind in quarry.space().kinds if kind in COARSE})


def never_lost(quarry: Quarry, places: set[str]) -> list[str]:
    """The classes of messages between brokers none of which was ever lost."""
    lost = {place.split()[1] for place in places if place.startswith("lost ")}
    machine = make_machine(deployment_of(draw_one_that_can_be(quarry.space())).nodes[0], 0)
    return sorted({each.__name__ for each in machine.message_types} - lost)


def never_seen(quarry: Quarry, places: set[str]) -> list[str]:
    """The members of enumerations that no broker was ever seen to hold, where it held other ones."""
    seen: defaultdict[str, set[str]] = defaultdict(set)
    for place in places:
        what, is_state, held = place.partition(" | ")[0].partition(" is ")
        if is_state:
            seen[what].add(held)
    known = [each for each in _enumerations() if issubclass(each, Enum)]
    missing = []
    for what, members in sorted(seen.items()):
        fitting = [each for each in known if members <= set(each.__members__)]
        if len(fitting) == 1:
            missing += [f"{what} is {name}" for name in fitting[0].__members__ if name not in members]
    return missing


def never_held(quarry: Quarry, places: set[str]) -> list[str]:
    """The properties that are to hold sometimes, and never did."""
    names = [each.name for each in map(property_at, quarry.properties) if each.mode == "sometimes"]
    return [name for name in names if f"sometimes {name}" not in places]


def _enumerations() -> list[type[Enum]]:
    """Those of the protocols that are loaded."""
    modules = [module for name, module in sys.modules.items() if name.partition(".")[0] in ("routing", "reliability")]
    values = [value for module in modules for value in vars(module).values()]
    found = {each for each in values if isinstance(each, type) and issubclass(each, Enum)}
    return sorted(found, key=lambda each: each.__qualname__)


def _draw_curve(folder: HuntFolder) -> None:
    """Places reached over schedules, a line for each pair."""
    schedules: defaultdict[str, list[int]] = defaultdict(lambda: [0])
    places: defaultdict[str, list[int]] = defaultdict(lambda: [0])
    for record in folder.chunks():
        if "lost" not in record:
            schedules[record["pair"]].append(schedules[record["pair"]][-1] + record["schedules"])
            places[record["pair"]].append(record["places"])
    with rc_context({**STYLE, "svg.hashsalt": "murmur"}):
        figure = Figure(figsize=(7.0, 4.0), layout="constrained")
        axes = figure.subplots()
        for pair in schedules:
            axes.plot(schedules[pair], places[pair], label=pair)
        axes.set_xlabel("schedules")
        axes.set_ylabel("places reached")
        axes.set_ylim(bottom=0)
        if schedules:
            axes.legend(fontsize="small")
        with whole(folder.folder / "curve.svg") as draft:
            figure.savefig(draft, format="svg", metadata={"Date": None})
