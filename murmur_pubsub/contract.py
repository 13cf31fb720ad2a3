"""What a machine may hand back and say of itself: the contract of `murmur_pubsub.machine`, as something to check.

What is wrong with effects is looked for only once carrying them out has failed, so that it costs a run nothing.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from murmur_pubsub.event import Event
from murmur_pubsub.machine import (
    Answer,
    CancelTimer,
    Deliver,
    Effect,
    Machine,
    Persist,
    Record,
    Send,
    SetTimer,
    Truncate,
)

DELAY_MAX_US = 1 << 53
"""Of a timer, in emulated microseconds: some 285 years, which either runtime can count."""
_INT64 = range(-(1 << 63), 1 << 63)
_HOPS = range(1 << 15)
_TOPICS = range(1 << 31)


class ContractError(Exception):
    """What a machine handed back or says of itself is not what the contract allows. Raised where it is seen; the
    runtime makes a `ProtocolError` of it."""

    def __init__(self, found: str, allowed: str) -> None:
        super().__init__(found, allowed)
        self.found = found
        self.allowed = allowed

    def __str__(self) -> str:
        return f"handed back {self.found}; allowed: {self.allowed}"


def check_machine(machine: object) -> None:
    """Raise `ContractError` for what a factory made that is no machine, or says of itself what it may not."""
    if not isinstance(machine, Machine):
        raise ContractError(f"{machine!r:.60} from its factory", "a murmur_pubsub.machine.Machine")
    for name in ("waiting", "settling", "settled_until_us", "hears_resets"):
        said(name, getattr(machine, name))


def said(question: str, answer: object) -> int:
    """What a machine says of itself, a truth or a time; raises `ContractError` if it is neither."""
    if question != "settled_until_us":
        return is_bool(question, answer)
    if type(answer) is int and answer >= -1:
        return answer
    raise ContractError(f"{answer!r:.60} as `{question}`", "whole microseconds, or -1")


def is_bool(name: str, said: object) -> bool:
    """What a machine says of itself; raises `ContractError` if it is neither true nor false."""
    if said is True or said is False:
        return said
    hint = " (is it a method without @property?)" if callable(said) else ""
    raise ContractError(f"{said!r:.60} as `{name}`{hint}", "True or False")


def next_token(last: int, persist: Persist) -> int:
    """The token of a record to be stored after the one under `last`; raises `ContractError` if it does not grow."""
    for found, allowed in _faults(persist):
        raise ContractError(found, allowed)
    if persist.token <= last:
        raise ContractError(f"the token {persist.token} after {last} in {persist!r:.120}", "tokens that grow")
    return persist.token


def what_is_wrong(effects: object) -> ContractError | None:
    """The first of the effects that is none; None if nothing can be said against them."""
    if type(effects) is not list and type(effects) is not tuple:
        return ContractError(_named(effects), "a list or tuple of effects")
    for effect in effects:
        for found, allowed in _faults(effect):
            return ContractError(found, allowed)
    return None


def _faults(effect: Any) -> Iterator[tuple[str, str]]:
    told = f" in {effect!r:.120}"
    match effect:
        case Send(to, message):
            if type(to) is not str:
                yield f"{_named(to)}{told}", "the name of a node"
            if not hasattr(type(message), "KIND"):
                yield f"{_named(message)}{told}", "a message of a class in its message_types"
        case Deliver(event, hops, subscribers):
            yield from _no_event(event, told)
            if not _is_in(hops, _HOPS):
                yield f"{hops!r:.40} hops{told}", f"0 to {_HOPS[-1]}"
            if not isinstance(subscribers, Sequence) or isinstance(subscribers, str):
                yield f"{_named(subscribers)}{told}", "a list of subscribers, which are numbers"
            for each in subscribers:
                if not _is_in(each, _INT64):
                    yield f"the subscriber {each!r:.40}{told}", "a number of 64 bits"
        case SetTimer(key, delay_us):
            yield from _no_key(key, told)
            if type(delay_us) is not int or not 0 <= delay_us <= DELAY_MAX_US:
                yield f"a delay of {delay_us!r:.40}{told}", f"whole microseconds from 0 to {DELAY_MAX_US}"
        case CancelTimer(key):
            yield from _no_key(key, told)
        case Persist(token, record):
            if not _is_in(token, _INT64) or type(record) is not bytes:
                yield f"{_named(record)} under {token!r:.40}{told}", "bytes under a number that grows"
        case Truncate(before):
            if not _is_in(before, _INT64):
                yield f"{before!r:.40}{told}", "a token"
        case Record(topic, value, peer, event):
            if not _is_in(topic, _TOPICS):
                yield f"the topic {topic!r:.40}{told}", "a number from 0, of 31 bits"
            if not _is_in(value, _INT64):
                yield f"the value {value!r:.40}{told}", "a number of 64 bits"
            if peer is not None and type(peer) is not str:
                yield f"{_named(peer)}{told}", "the name of a node"
            if event is not None:
                yield from _no_event(event, told)
        case Answer(number, refusal):
            if not _is_in(number, _INT64) or type(refusal) is not str:
                yield f"{refusal!r:.40} to the order {number!r:.40}{told}", "a text, and the number of an order"
        case _:
            names = ", ".join(each.__name__ for each in Effect.__args__)
            yield f"{_named(effect)} as an effect", names


def _is_in(number: object, allowed: range) -> bool:
    """Is it a whole number, a member of an enumeration perhaps, in that range?"""
    # Not `number in allowed`: that walks through the range for a class derived from int.
    return isinstance(number, int) and not isinstance(number, bool) and allowed[0] <= number <= allowed[-1]


def _no_event(event: object, told: str) -> Iterator[tuple[str, str]]:
    if not isinstance(event, Event):
        yield f"{_named(event)} as an event{told}", "an Event"


def _no_key(key: object, told: str) -> Iterator[tuple[str, str]]:
    if type(key) is not tuple or not key:
        yield f"the key {key!r:.40}{told}", "a tuple whose first element names the layer"


def _named(value: object) -> str:
    return f"{value!r:.80}, which is of type {type(value).__name__},"[: None if value is not None else 4]
