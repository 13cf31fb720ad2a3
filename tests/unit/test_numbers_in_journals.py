"""Numbers that stand in run folders: a folder that was written yesterday must say the same tomorrow."""

from enum import IntEnum

import pytest

from murmur_pubsub.errors import InputError
from murmur_pubsub.faults import REPAIRS, FaultKind
from murmur_pubsub.journal import DropReason, FaultStage, Phase, Refusal, RowKind, SideKind
from murmur_pubsub.journal_format import HEADER_BYTES, ROW, FileState
from murmur_pubsub.places import RingPlace


@pytest.mark.parametrize(
    ("kinds", "first", "last"),
    [
        (RowKind, ("START", 1), ("SETTLED", 12)),
        (FaultKind, ("KILL", 1), ("ORDER", 15)),
        (DropReason, ("LOSS", 1), ("NODE_DOWN", 5)),
        (Refusal, ("TOO_LARGE", 1), ("NO_LINK", 7)),
        (FaultStage, ("ORDERED", 0), ("IN_EFFECT", 1)),
        (Phase, ("STARTING", 1), ("STOPPED", 5)),
        (SideKind, ("EVENT", 1), ("SUBSCRIBE", 2)),
        (FileState, ("OPEN", 0), ("LAST_OF_DEAD", 3)),
    ],
)
def test_each_kind_has_its_number_and_none_has_two_names(
    kinds: type[IntEnum], first: tuple[str, int], last: tuple[str, int]
) -> None:
    numbers = {name: each.value for name, each in kinds.__members__.items()}
    assert list(numbers.values()) == list(range(first[1], first[1] + len(numbers)))
    for name, number in (first, last):
        assert numbers[name] == number


def test_rows_and_headers_keep_their_size() -> None:
    assert (HEADER_BYTES, ROW.size) == (128, 44)


@pytest.mark.parametrize("timeout_us", [0, 2_000_000])
def test_a_probe_is_given_some_time_and_less_than_up_to_the_next(timeout_us: int) -> None:
    with pytest.raises(InputError, match="above zero and below the time between probes"):
        RingPlace(0, probe_timeout_us=timeout_us)
    RingPlace(0, probe_timeout_us=1)


def test_what_ends_a_fault_and_breaks_nothing_is_a_repair() -> None:
    assert [each.name for each in REPAIRS] == ["RESTART", "RESUME", "HEAL", "UNITE", "RETURN_HOST", "RESTART_ACTOR"]
