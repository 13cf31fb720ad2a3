"""What `murmur replay` does: one node of a run, run again in this process from its recorded inputs, step by step."""

import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from murmur_pubsub.codec import Codec
from murmur_pubsub.deployment import NodeSpec, make_machine
from murmur_pubsub.errors import InputError
from murmur_pubsub.journal import inputs_file
from murmur_pubsub.journal_store import store_at
from murmur_pubsub.machine import Effect, Machine
from murmur_pubsub.recorded_inputs import RecordedInput, digest_of, read_inputs
from murmur_pubsub.run_manifest import read_manifest
from murmur_virtual.input_watch import InputWatch
from murmuration.deployment.build_deployment import build
from murmuration.runs.own_modules import find_own_modules
from murmuration.runs.run_folder import RunFolder
from murmuration.scenario.load import load_scenario

_WIDTH = 150


@dataclass(frozen=True, slots=True)
class ReplayedStep:
    """One input taken again. `same`: are the effects those of the run (None: the run has none)? `failure`: what the
    machine raised, or the invariants that it broke."""

    recorded: RecordedInput
    effects: Sequence[Effect]
    same: bool | None
    failure: str | None = None


def replay_node(run: Path, node: str, incarnation: int, show: bool) -> None:
    """Run the node again and say whether it does what it did; exits with 1 if it does not, or breaks."""
    spec, seed = node_of(run, node)
    store = store_at(RunFolder.of(run).journal_place)
    file = inputs_file(node, incarnation)
    if file not in store.sizes("inputs"):
        allowed = "a run with keep_inputs (murmur run --keep-inputs), and an incarnation that it had"
        raise InputError(store.name_of(file), "no recorded inputs", allowed)
    machine = make_machine(spec, seed, incarnation)
    inputs = effects = 0
    last_us = 0
    for step in steps(machine, read_inputs(store.name_of(file), store.read(file), machine.message_types)):
        inputs, effects, last_us = inputs + 1, effects + len(step.effects), step.recorded.time_us
        wrong = step.failure is not None or step.same is False
        if show or wrong:
            print("\n".join(words(step)))
        if wrong:
            print(f"input {inputs}: " + (step.failure or "the effects are not those of the run"))
            raise typer.Exit(1)
    counts = f"{inputs:,} inputs up to {last_us / 1e6:,.3f} s, {effects:,} effects"
    print(f"{node}, incarnation {incarnation}: {counts}, as in the run")


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


def steps(machine: Machine, inputs: Iterator[RecordedInput]) -> Iterator[ReplayedStep]:
    """Each input taken by the machine, and its invariants checked after each."""
    codec = Codec(machine.message_types)
    replay = _Replay()
    watch = InputWatch(replay, frozenset({_take.__code__}))
    watch.start()
    try:
        for recorded in inputs:
            try:
                effects = _take(machine, recorded)
            except (Exception, SystemExit):
                yield ReplayedStep(recorded, (), None, f"the machine raised\n{traceback.format_exc()}")
                return
            except KeyboardInterrupt:
                if replay.overdue is None:
                    raise
                told = f"the machine has not come back after {replay.overdue}\n{traceback.format_exc()}"
                yield ReplayedStep(recorded, (), None, told)
                return
            same = None if recorded.digest is None else digest_of(effects, codec) == recorded.digest
            yield ReplayedStep(recorded, effects, same)
    finally:
        watch.cancel()


@dataclass(slots=True)
class _Replay:
    overdue: str | None = None
    """See `murmur_virtual.input_watch.Interruptible`."""


def _take(machine: Machine, recorded: RecordedInput) -> Sequence[Effect]:
    effects = machine.handle(recorded.input, recorded.time_us)
    machine.check_invariants()
    return effects


def words(step: ReplayedStep) -> Iterator[str]:
    """The input, and what came of it."""
    yield f"{step.recorded.time_us / 1e6:>14,.6f} s  {_cut(repr(step.recorded.input))}"
    for effect in step.effects:
        yield f"{'':>14}    -> {_cut(repr(effect))}"


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"
