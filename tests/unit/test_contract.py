"""What is said of effects, one by one: nothing of those that are right, and what is wrong with the others."""

from collections.abc import Sequence
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
