"""One log for a broker's two parts: each is told of its own records, and nothing is cut that either still needs."""

from collections.abc import Sequence

import msgpack
import pytest

from murmur_pubsub.errors import InputError
from murmur_pubsub.machine import CancelTimer, Effect, Persist, Truncate
from reliability.shared_log import SharedLog


@pytest.fixture
def log() -> SharedLog:
    return SharedLog("b0")


def record(token: int, is_routers: bool, own: int, data: bytes) -> Persist:
    """What stands in the log."""
    return Persist(token, msgpack.packb([token, is_routers, own, data]))


def routers(log: SharedLog, *effects: Effect) -> list[Effect]:
    return log.put(effects, is_routers=True)


def others(log: SharedLog, *effects: Effect) -> list[Effect]:
    """Of the reliability part."""
    return log.put(effects, is_routers=False)


def three_events_after_the_routers_record(log: SharedLog) -> None:
    """Tokens 0, of the router, and 1 to 3, of the reliability part's 10 to 12, all safe."""
    routers(log, Persist(0, b"state"))
    others(log, *(Persist(10 + number, b"event") for number in range(3)))
    for token in range(4):
        log.stored(token)


def test_records_are_numbered_anew_and_each_part_hears_of_its_own(log: SharedLog) -> None:
    timer = CancelTimer(("routing",))
    assert routers(log, Persist(5, b"r"), timer) == [record(0, True, 5, b"r"), timer]
    assert others(log, Persist(9, b"a"), Persist(12, b"b")) == [record(1, False, 9, b"a"), record(2, False, 12, b"b")]
    assert [log.stored(token) for token in range(3)] == [((True, 5), []), ((False, 9), []), ((False, 12), [])]


def test_without_a_record_of_the_router_the_log_is_cut_where_the_other_part_says(log: SharedLog) -> None:
    assert others(log, Truncate(0)) == [], "there is nothing to cut"
    others(log, *(Persist(10 + number, b"event") for number in range(3)))
    assert others(log, Truncate(11)) == [Truncate(1)], "the record of its token 11 is still needed"
    assert others(log, Truncate(12)) == [Truncate(2)]


def test_nothing_is_cut_before_the_first_record_of_the_router_is_safe(log: SharedLog) -> None:
    others(log, Persist(10, b"event"))
    routers(log, Persist(0, b"state"))
    assert others(log, Truncate(11)) == []
    assert log.stored(0) == ((False, 10), [])
    assert others(log, Truncate(11)) == [], "it was the other part's that is safe"
    assert log.stored(1) == ((True, 0), [])
    assert others(log, Truncate(11)) == [Truncate(1)]


def test_a_record_of_the_router_that_is_in_the_way_is_written_once_more_before_the_cut(log: SharedLog) -> None:
    three_events_after_the_routers_record(log)
    assert others(log, Truncate(11)) == [record(4, True, 0, b"state")]
    assert others(log, Truncate(12)) == [], "it is on its way"
    assert log.stored(4) == (None, [Truncate(3)]), "of no news to the router"
    assert others(log, Persist(13, b"event"), Truncate(13)) == [
        record(5, False, 13, b"event"),
        record(6, True, 0, b"state"),
    ]


def test_the_router_cuts_nothing_that_the_other_part_needs(log: SharedLog) -> None:
    three_events_after_the_routers_record(log)
    assert routers(log, Persist(1, b"later")) == [record(4, True, 1, b"later")]
    log.stored(4)
    assert routers(log, Truncate(1)) == [Truncate(1)]
    assert others(log, Truncate(13)) == [Truncate(4)], "all but the router's last"


@pytest.mark.parametrize("cut", [False, True])
def test_both_parts_go_on_after_a_restart(log: SharedLog, cut: bool) -> None:
    stored = [record(7, True, 0, b"old"), record(8, False, 10, b"a"), record(9, True, 1, b"new")]
    assert log.recover([each.record for each in stored]) == ([b"old", b"new"], [b"a"])
    if cut:
        assert others(log, Truncate(10)) == [Truncate(8)]
        assert others(log, Truncate(11)) == [Truncate(9)]
    assert others(log, Persist(11, b"b")) == [record(10, False, 11, b"b")]


@pytest.mark.parametrize("wrong", [b"", b"\xc1", msgpack.packb([1, True, 2]), msgpack.packb(["x", True, 2, b""])])
def test_a_record_of_another_making_is_refused_by_its_place(log: SharedLog, wrong: bytes) -> None:
    right: Sequence[bytes] = [record(0, True, 0, b"").record]
    with pytest.raises(InputError) as error:
        log.recover([*right, wrong])
    assert error.value.place == "the stable log of b0, record 2"
