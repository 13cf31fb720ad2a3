"""The inputs that a run has kept of a node, and what its machine was at any moment: played again up to it."""

from collections import deque
from dataclasses import dataclass
from pathlib import Path

from murmur_pubsub.deployment import NodeSpec, make_machine
from murmur_pubsub.errors import InputError
from murmur_pubsub.journal import inputs_file
from murmur_pubsub.journal_store import JournalStore, store_at
from murmur_pubsub.recorded_inputs import RecordedInput, read_inputs
from murmur_pubsub.run_manifest import read_manifest
from murmuration.deployment.build_deployment import build
from murmuration.runs.described_state import StateTable, described
from murmuration.runs.own_modules import find_own_modules
from murmuration.runs.run_folder import RunFolder
from murmuration.scenario.load import load_scenario

_RECENT = 12
"""So many inputs before the moment are told."""
_WIDTH = 150


@dataclass(frozen=True, slots=True)
class RecentInput:
    """An input before the moment, and the effects that it had, in words."""

    time_us: int
    input: str
    effects: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NodeAt:
    """A node after all inputs up to a moment. `last_us`: when the last of them was (None: there was none)."""

    node: str
    incarnation: int
    inputs: int
    last_us: int | None
    tables: list[StateTable]
    recent: list[RecentInput]


def node_of(run: Path, name: str) -> tuple[NodeSpec, int]:
    """The node as the run's scenario has it, and the run's seed."""
    if not (run / "scenario.yaml").exists():
        raise InputError(str(run), "no scenario.yaml", "the folder of a run")
    scenario_file = read_manifest(run).scenario_file
    find_own_modules(*(() if scenario_file is None else (Path(scenario_file),)))
    loaded = load_scenario(run / "scenario.yaml")
    deployment = build(loaded).deployment
    specs = {spec.name: spec for spec in deployment.nodes}
    if name not in specs:
        names = list(specs)
        raise InputError("--node", repr(name), f"a node of the run: {names[0]} to {names[-1]}")
    return specs[name], deployment.settings.seed


def inputs_of(run: Path, node: str, incarnation: int) -> tuple[JournalStore, str]:
    """Where the inputs of that incarnation are, and the name of their file; raises `InputError` if there are none."""
    store = store_at(RunFolder.of(run).journal_place)
    file = inputs_file(node, incarnation)
    if file not in store.sizes("inputs"):
        allowed = "a run with keep_inputs (murmur run --keep-inputs), and an incarnation that it had"
        raise InputError(store.name_of(file), "no recorded inputs", allowed)
    return store, file


def node_at(run: Path, node: str, time_us: int) -> NodeAt:
    """The node at that emulated time: that of its incarnations which had begun last. Raises `InputError`."""
    spec, seed = node_of(run, node)
    incarnation = 0
    inputs = _inputs(run, spec, seed, 0)
    while later := _begun(run, spec, seed, incarnation + 1, time_us):
        incarnation, inputs = incarnation + 1, later
    machine = make_machine(spec, seed, incarnation)
    recent: deque[RecentInput] = deque(maxlen=_RECENT)
    count, last_us = 0, None
    for recorded in inputs:
        if recorded.time_us > time_us:
            break
        try:
            effects = machine.handle(recorded.input, recorded.time_us)
        except Exception as error:
            found = f"{error!r} on its input of {recorded.time_us / 1e6:.6f} s"
            raise InputError(f"node {node}", found, f"what murmur replay {run} --node {node} shows") from error
        count, last_us = count + 1, recorded.time_us
        recent.append(RecentInput(last_us, cut(repr(recorded.input)), tuple(cut(repr(effect)) for effect in effects)))
    return NodeAt(node, incarnation, count, last_us, described(machine), list(recent))


def cut(text: str) -> str:
    """The text, or its beginning if it is long."""
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"


def _inputs(run: Path, spec: NodeSpec, seed: int, incarnation: int) -> list[RecordedInput]:
    store, file = inputs_of(run, spec.name, incarnation)
    types = make_machine(spec, seed, incarnation).message_types
    return list(read_inputs(store.name_of(file), store.read(file), types))


def _begun(run: Path, spec: NodeSpec, seed: int, incarnation: int, time_us: int) -> list[RecordedInput] | None:
    """The inputs of that incarnation, if there was one and it had begun."""
    try:
        inputs = _inputs(run, spec, seed, incarnation)
    except InputError:
        return None
    return inputs if inputs and inputs[0].time_us <= time_us else None
