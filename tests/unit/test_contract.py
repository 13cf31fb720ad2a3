"""What is said of effects, one by one: nothing of those that are right, and what is wrong with the others."""

from typing import Any

import pytest

from murmur_pubsub.contract import what_is_wrong
from murmur_pubsub.event import Event
from murmur_pubsub.machine import CancelTimer, Deliver, Persist, Record, SetTimer, Truncate

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
    ],
)
def test_an_effect_that_breaks_the_contract_is_told_from_one_that_does_not(right: Any, wrong: Any) -> None:
    assert what_is_wrong([right]) is None
    assert what_is_wrong([right, wrong]) is not None
