"""Which cells of the table are to be played: what was asked for, and why the others cannot be."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from murmur_pubsub.errors import InputError
from murmuration.bench.matrix import FAULTS, WORKLOADS, Cell, System, registered_systems, scenario_of
from murmuration.deployment.build import build_overlay
from murmuration.deployment.build_deployment import build
from murmuration.deployment.protocols import choose_protocols
from murmuration.papers.lab.real_data import data_folder, find_real
from murmuration.scenario.load import check_scenario

BROKERS, SEEDS = 120, 5
BROKERS_MIN = 10
"""So that a fifth of them is several."""


@dataclass(frozen=True, slots=True)
class BenchChoice:
    """What was asked for; nothing: all there is."""

    systems: Sequence[str] = ()
    workloads: Sequence[str] = ()
    faults: Sequence[str] = ()
    seeds: int = SEEDS
    brokers: int = BROKERS


@dataclass(frozen=True, slots=True)
class BenchPlan:
    """The cells, all of the first seed before any of the second. `left_out`: what is not in the table, and why."""

    cells: tuple[Cell, ...]
    left_out: Mapping[str, str]

    @property
    def reasons(self) -> Mapping[str, list[str]]:
        """What is left out by each of the reasons."""
        found: dict[str, list[str]] = {}
        for name, why in self.left_out.items():
            found.setdefault(why, []).append(name)
        return found


def plan_bench(choice: BenchChoice) -> BenchPlan:
    """The plan of what was asked for; raises `InputError` for what there is not, or what cannot be though asked for."""
    if choice.seeds < 1:
        raise InputError("--seeds", str(choice.seeds), "1 or more")
    if choice.brokers < BROKERS_MIN:
        raise InputError("--brokers", str(choice.brokers), f"{BROKERS_MIN} or more")
    left_out: dict[str, str] = {}
    workloads = _with_data("--workload", choice.workloads, WORKLOADS, list(WORKLOADS), left_out)
    usual = [name for name in FAULTS if name != "generated"]
    faults = _with_data("--fault", choice.faults, FAULTS, usual, left_out)
    if "skype" in left_out:
        faults.append("generated")
    systems: list[System] = []
    for system in map(system_named, choice.systems) if choice.systems else registered_systems():
        try:
            check_system(system, choice.brokers)
            systems.append(system)
        except InputError as error:
            if choice.systems:
                raise InputError(f"--only {system}", error.found, error.allowed) from None
            left_out[str(system)] = f"{system.reliability} needs {error.allowed}"
    cells = (
        Cell(workload, fault, system, seed, choice.brokers)
        for seed in range(1, choice.seeds + 1)
        for workload in workloads
        for fault in faults
        for system in systems
    )
    return BenchPlan(tuple(dict.fromkeys(cells)), left_out)


def system_named(text: str) -> System:
    """The pair written as ROUTING/RELIABILITY, names or dotted paths; raises `InputError`."""
    routing, between, reliability = text.rpartition("/")
    if not between:
        raise InputError("--only", repr(text), "ROUTING/RELIABILITY, such as forwarding/best_effort")
    return System(routing, reliability)


def cell_named(text: str, brokers: int) -> Cell:
    """The cell written as WORKLOAD/FAULT/ROUTING/RELIABILITY/SEED; raises `InputError`."""
    parts = text.split("/")
    if len(parts) != 5 or not parts[4].isdecimal():
        raise InputError(
            "--cell", repr(text), "WORKLOAD/FAULT/ROUTING/RELIABILITY/SEED, such as zipf/loss/irbr/epidemic/1"
        )
    workload, fault, routing, reliability, seed = parts
    for name, known in ((workload, WORKLOADS), (fault, FAULTS)):
        if name not in known:
            raise InputError(f"--cell {text}", repr(name), ", ".join(known))
    return Cell(workload, fault, System(routing, reliability), int(seed), brokers)


def check_system(system: System, brokers: int) -> None:
    """Raise `InputError`, with the reason, for a pair that cannot run."""
    scenario = scenario_of(Cell("uniform", "none", system, 1, brokers), None, None)
    loaded = check_scenario(scenario, str(system))
    choose_protocols(loaded, build_overlay(loaded))


def scenario_with_data(cell: Cell) -> dict[str, Any]:
    """The cell's scenario with the paths of its data; raises `InputError` if that is not here."""
    return scenario_of(
        cell,
        *(
            _path_of(name, each.data)
            for name, each in ((cell.workload, WORKLOADS[cell.workload]), (cell.fault, FAULTS[cell.fault]))
        ),
    )


def checked_scenario(cell: Cell) -> dict[str, Any]:
    """The same, built once to see that it can be; raises `InputError`."""
    scenario = scenario_with_data(cell)
    build(check_scenario(scenario, str(cell)))
    return scenario


def digest_of(cell: Cell) -> str:
    """By which a cell that was played is known again: of its scenario, with data by its name and not by its path."""
    scenario = scenario_of(cell, WORKLOADS[cell.workload].data, FAULTS[cell.fault].data)
    return hashlib.sha256(json.dumps(scenario, sort_keys=True).encode()).hexdigest()[:16]


def _path_of(name: str, data: str | None) -> str | None:
    if data is None:
        return None
    path = find_real(data)
    if path is None:
        raise InputError(name, _missing(data), "the folder that has it in MURMUR_DATA")
    return str(path)


def _missing(data: str) -> str:
    return f"no {data} in {data_folder()}"


def _with_data(
    option: str, asked: Iterable[str], known: Mapping[str, Any], usual: Sequence[str], left_out: dict[str, str]
) -> list[str]:
    """Those asked for, or the usual ones whose data is here; of the others it is said what is missing."""
    found = []
    for name in asked or usual:
        if name not in known:
            raise InputError(option, repr(name), ", ".join(known))
        data = known[name].data
        if data is None or find_real(data) is not None:
            found.append(name)
        elif asked:
            raise InputError(f"{option} {name}", _missing(data), "the folder that has it in MURMUR_DATA")
        else:
            left_out[name] = f"{_missing(data)}; MURMUR_DATA names the folder"
    return found
