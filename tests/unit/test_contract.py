"""What is said of effects, one by one: nothing of those that are right, and what is wrong with the others."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from murmur_pubsub.contract import ContractError, check_machine, what_is_wrong
from murmur_pubsub.event import Event
from murmur_pubsub.machine import (
    Answer,
    CancelTimer,
    Deliver,
    Effect,
    Input,
    Machine,
    Persist,
    Record,
    SetTimer,
    Truncate,
)
from reliability.broker import Broker

EVENT = Event(1, 2, 3, {"x": 1})


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (Truncate(7), Truncate("seven")),  # type: ignore[arg-type]
        (Truncate(2**63 - 1), Truncate(2**63)),
        (Persist(1, b""), Persist(1, "")),  # type: ignore[arg-type]
        (Persist(1, b""), Persist(1.0, b"")),  # type: ignore[arg-type]
        (SetTimer(("a",), 0), SetTimer(("a",), -1)),
        (SetTimer(("a",), 2**53), SetTimer(("a",), 2**53 + 1)),
        (CancelTimer(("a",)), CancelTimer("a")),  # type: ignore[arg-type]
        (Deliver(EVENT, 0, [1]), Deliver(EVENT, -1, [1])),
        (Deliver(EVENT, 0, [1]), Deliver(EVENT, 0, [2**63])),
        (Record(0, 1), Record(-1, 1)),
        (Record(0, 1), Record(0, 2**63)),
        (Answer(1, ""), Answer("one", "")),  # type: ignore[arg-type]
        (Answer(1, "no"), Answer(1, None)),  # type: ignore[arg-type]
    ],
)
def test_an_effect_that_breaks_the_contract_is_told_from_one_that_does_not(right: Any, wrong: Any) -> None:
    assert what_is_wrong([right]) is None
    assert what_is_wrong([right, wrong]) is not None


class Silent(Machine):
    """Does nothing."""

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        return ()


@pytest.mark.parametrize("name", ["waiting", "settling", "hears_resets"])
def test_a_machine_that_says_something_else_than_true_or_false_of_itself_is_refused_when_it_is_made(name: str) -> None:
    check_machine(type("Sound", (Silent,), {name: True})())
    with pytest.raises(ContractError, match=f"'yes' as `{name}`; allowed: True or False"):
        check_machine(type("Wordy", (Silent,), {name: "yes"})())
    with pytest.raises(ContractError, match=r"is it a method without @property\?"):
        check_machine(type("Callable", (Silent,), {name: lambda _: True})())


@pytest.mark.parametrize("wrong", [None, True, -2, 1.5])
def test_a_machine_says_up_to_when_all_has_settled_in_whole_microseconds(wrong: object) -> None:
    for right in (-1, 0, 7):
        check_machine(type("Sound", (Silent,), {"settled_until_us": right})())
    with pytest.raises(ContractError, match=f"{wrong} as `settled_until_us`; allowed: whole microseconds, or -1"):
        check_machine(type("Vague", (Silent,), {"settled_until_us": wrong})())


@pytest.mark.parametrize(
    ("own", "below", "until_us"), [((True, 5), (True, 9), 5), ((False, 5), (True, 9), 9), ((True, 5), (False, -1), 5)]
)
def test_a_broker_has_settled_up_to_where_those_of_its_parts_have_that_are_settling(
    own: tuple[bool, int], below: tuple[bool, int], until_us: int
) -> None:
    parts = [type("Part", (Silent,), {"settling": says, "settled_until_us": us})() for says, us in (own, below)]
    broker = SimpleNamespace(reliability=parts[0], router=parts[1])
    assert vars(Broker)["settled_until_us"].fget(broker) == until_us
