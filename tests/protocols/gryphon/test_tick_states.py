"""A tick of a knowledge stream goes from state to state as the table has it, and no other way.

Streams are kept by run lengths, so no tick has a state of its own in the product: the table is held to them here.
"""

import random
from collections.abc import Mapping
from enum import Enum

from murmur_pubsub.event import Event
from reliability.gryphon.knowledge import DataTick, KnowledgeStream

TICKS = 40


class TickState(Enum):
    """What a broker knows of one tick."""

    Q = "nothing is known"
    S = "silence, no message is wanted here"
    D = "a message"
    F = "final, no broker below will need it again"


class TickStep(Enum):
    """What it learns, or forgets."""

    SILENCE = "silence"
    MESSAGE = "a message"
    NO_ROOM = "forgotten, the cache is full"
    FINAL = "acknowledged by all below"


TICK_TRANSITIONS: Mapping[tuple[TickState, TickStep], TickState] = {
    (TickState.Q, TickStep.SILENCE): TickState.S,
    (TickState.Q, TickStep.MESSAGE): TickState.D,
    (TickState.S, TickStep.NO_ROOM): TickState.Q,
    (TickState.D, TickStep.NO_ROOM): TickState.Q,
    (TickState.Q, TickStep.FINAL): TickState.F,
    (TickState.S, TickStep.FINAL): TickState.F,
    (TickState.D, TickStep.FINAL): TickState.F,
}


def state_of(stream: KnowledgeStream, tick: int) -> TickState:
    if tick <= stream.final:
        return TickState.F
    if tick in stream.messages:
        return TickState.D
    return TickState.S if tick in stream.known else TickState.Q


def step_at_random(stream: KnowledgeStream, rng: random.Random) -> set[TickStep]:
    """Have the stream learn something; the steps that this may be for a tick."""
    tick = rng.randrange(TICKS)
    message = DataTick(Event(1, tick, 0, {}), 0, 0)
    kind = rng.choice(["silence", "learn", "learn", "learn", "go on", "go on", "finalize"])
    if kind == "silence":
        stream.silence(tick, tick + rng.randrange(4))
        return {TickStep.SILENCE}
    if kind == "learn":
        stream.learn(tick, message)
        return {TickStep.MESSAGE, TickStep.NO_ROOM}
    if kind == "go on":
        tick = stream.newest + 1 + rng.randrange(3)
        stream.go_on(stream.newest + 1, tick, DataTick(Event(1, tick, 0, {}), 0, 0))
        return {TickStep.SILENCE, TickStep.MESSAGE}
    if rng.random() < 0.3:
        stream.finalize(min(tick, stream.final + 5))
    return {TickStep.FINAL}


def test_gryphon_s2_ticks_change_as_the_table_has_it_and_no_other_way() -> None:
    taken = set()
    for seed in range(200):
        rng = random.Random(seed)
        stream = KnowledgeStream(rng.choice([None, 1, 3, 6]), keeps_oldest=rng.random() < 0.5)
        for _ in range(40):
            before = [state_of(stream, tick) for tick in range(TICKS)]
            steps = step_at_random(stream, rng)
            stream.check_invariants()
            for tick, was in enumerate(before):
                now = state_of(stream, tick)
                if now is not was:
                    fitting = {(was, step) for step in steps if TICK_TRANSITIONS.get((was, step)) is now}
                    assert len(fitting) == 1, f"seed {seed}: tick {tick} from {was} to {now}"
                    taken |= fitting
    assert taken == set(TICK_TRANSITIONS)
