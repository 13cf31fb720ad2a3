"""What `murmur replay` does: one node of a run, run again in this process from its recorded inputs, step by step."""

import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from murmur_pubsub.codec import Codec
from murmur_pubsub.deployment import make_machine
from murmur_pubsub.errors import InputError
from murmur_pubsub.machine import Effect, Machine
from murmur_pubsub.recorded_inputs import RecordedInput, digest_of, read_inputs
from murmur_virtual.input_watch import InputWatch
from murmuration.runs.kept_inputs import cut, inputs_of, node_at, node_of
from murmuration.scenario.durations import parse_duration


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
    store, file = inputs_of(run, node, incarnation)
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


def show_node_at(run: Path, node: str, at: str) -> None:
    """Print what the node was at that emulated time: its tables, and the inputs just before."""
    try:
        time_us = int(parse_duration(at))
    except ValueError as error:
        raise InputError("--at", repr(at), str(error)) from None
    found = node_at(run, node, time_us)
    last = "it has taken no input yet" if found.last_us is None else f"the last of them at {found.last_us / 1e6:,.6f} s"
    print(f"{node}, incarnation {found.incarnation}, after {found.inputs:,} inputs: {last}")
    for table in found.tables:
        print(f"\n{table.title}")
        for line in table.lines:
            print("\n    ".join((f"  {line.name}: {line.value}", *line.entries)))
    print("\nits last inputs, and what came of them")
    for each in found.recent:
        print("\n".join(_lines(each.time_us, each.input, each.effects)))


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
    yield from _lines(step.recorded.time_us, cut(repr(step.recorded.input)), [cut(repr(each)) for each in step.effects])


def _lines(time_us: int, taken: str, effects: Sequence[str]) -> Iterator[str]:
    yield f"{time_us / 1e6:>14,.6f} s  {taken}"
    for effect in effects:
        yield f"{'':>14}    -> {effect}"
