"""What a peer may send that has the token: messages of the right form whose numbers and names make no sense. No machine
raises anything but a `WireError`, which a runtime counts, journals and drops."""

import random
from collections.abc import Iterator
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgpack
import pytest

from murmur_pubsub.codec import Codec, MessageReader
from murmur_pubsub.contract import what_is_wrong
from murmur_pubsub.deployment import Deployment, make_machine
from murmur_pubsub.errors import WireError
from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.machine import Input, LinkUp, Machine, Received, Send, SetTimer, Start, Subscribe, TimerFired
from murmur_pubsub.message import Like, Way, kind_of, way_of
from murmur_pubsub.unpacking import unpack
from murmuration.registry import RELIABILITIES, ROUTINGS
from routing.protocol import RunsOn
from tests.deployments import Shape, random_deployment, structured_deployment

PAIRS = [
    (routing.name, reliability.name)
    for routing in ROUTINGS.values()
    for reliability in RELIABILITIES.values()
    if not reliability.needs - routing.offers
]
_MESSAGES, _OVERLAYS = 30, 8


def drawn(hint: Any, rng: random.Random) -> Any:
    """Something of that annotation: often what is about to make sense, often not."""
    origin, arguments = get_origin(hint) or hint, get_args(hint)
    if origin is Annotated:
        (note,) = arguments[1:]
        if isinstance(note, Like):
            return [drawn(each, rng) for each in note.elements]
        return rng.choice((note[0], note[1], min(note[1], max(note[0], rng.randrange(9)))))
    if origin is dict:
        return {drawn(arguments[0], rng): drawn(arguments[1], rng) for _ in range(rng.randrange(3))}
    if origin is Event:
        return [rng.randrange(3), rng.randrange(4), rng.randrange(10**6), msgpack.packb({"x": rng.randrange(9)})]
    if origin is Filter:
        return parse_filter(rng.choice(("x > 3", "x = 2", "TRUE"))).to_wire()
    if origin in _SOME:
        return rng.choice(_SOME[origin])
    return [drawn(arguments[0], rng) for _ in range(rng.randrange(4))]


_SOME: dict[Any, tuple[Any, ...]] = {
    int: (0, 1, 2, 5, -1, 2**40, 2**63 - 1, -(2**63)),
    str: ("b0", "b1", "b2", "zz", "", "p", "c0"),
    bool: (True, False),
    bytes: (b"", b"\x00", b"abcdefgh" * 2),
    Any: (None, 1, "b1", [1, 2]),
}


def overlay_of(routing: str, reliability: str, seed: int) -> Deployment:
    parts = {"matching": "bitset", "routing": routing, "reliability": reliability}
    shape = Shape(brokers=4, clients=2, publications=0, changes=0, parts=parts)
    has_links = ROUTINGS[routing].runs_on is not RunsOn.STRUCTURED
    return (random_deployment if has_links else structured_deployment)(seed, shape)


def begun(deployment: Deployment) -> Machine:
    """The machine of b1, with its links up and a subscription."""
    machine = make_machine(next(spec for spec in deployment.nodes if spec.name == "b1"), 1)
    inputs: list[Input] = [Start()]
    for plan in deployment.links:
        if "b1" in (plan.first, plan.second):
            peer = plan.second if plan.first == "b1" else plan.first
            inputs.append(LinkUp(peer, peer.startswith("b")))
    for each in (*inputs, Subscribe(1, parse_filter("x > 1"))):
        machine.handle(each, 1_000)
    return machine


def senseless(machine: Machine, codec: Codec, rng: random.Random) -> Iterator[Received]:
    """Messages that a broker's codec takes."""
    by_broker, by_client = codec.heard_by("broker")
    heard = [each for each in machine.message_types if way_of(each) is not Way.TO_CLIENT]
    for _ in range(_MESSAGES):
        message_type = rng.choice(heard)
        of_client = way_of(message_type) is Way.TO_BROKER
        read: MessageReader = by_client if of_client else by_broker
        hints = get_type_hints(message_type, include_extras=True).values()
        body = [kind_of(message_type), *(drawn(hint, rng) for hint in hints)]
        yield Received(rng.choice(("c0", "c1") if of_client else ("b0", "b2", "b3")), read(unpack(msgpack.packb(body))))


@pytest.mark.parametrize(("routing", "reliability"), PAIRS)
def test_a_message_that_makes_no_sense_is_dropped_and_ends_no_node(routing: str, reliability: str) -> None:
    taken = refused = 0
    for seed in range(_OVERLAYS):
        rng = random.Random(f"{seed}/senseless")
        machine = begun(overlay_of(routing, reliability, seed))
        codec = Codec(machine.message_types)
        timers: list[Any] = []
        now_us = 1_000
        for received in senseless(machine, codec, rng):
            now_us += 20_000
            inputs: list[Input] = [received]
            if timers and rng.random() < 0.5:
                inputs.append(TimerFired(timers.pop(rng.randrange(len(timers)))))
            for each in inputs:
                try:
                    effects = machine.handle(each, now_us)
                except WireError:
                    refused += 1
                    continue
                except Exception as error:
                    raise AssertionError(f"seed {seed}: {each!r}") from error
                taken += 1
                assert what_is_wrong(effects) is None
                timers += [effect.key for effect in effects if type(effect) is SetTimer]
                for effect in effects:
                    if type(effect) is Send:
                        codec.encode(effect.message)
    print(f"{taken} taken, {refused} refused")
    assert taken
