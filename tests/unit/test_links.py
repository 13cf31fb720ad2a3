"""The link model, told the time and the randomness."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from murmur_pubsub.errors import InputError
from murmur_pubsub.journal import DropReason
from murmur_pubsub.links import HARD_LIMIT_FACTOR, Delay, Link, LinkSpec

delays = st.one_of(
    st.builds(Delay, st.just("constant"), st.integers(0, 5_000)),
    st.integers(0, 5_000).flatmap(
        lambda low: st.builds(Delay, st.just("uniform"), st.just(low), st.integers(low, 9_000))
    ),
    st.builds(Delay, st.just("exponential"), st.integers(0, 100), st.integers(0, 5_000)),
    st.builds(Delay, st.just("normal"), st.integers(0, 5_000), st.integers(0, 5_000)),
)
times = st.lists(st.integers(0, 3_000), min_size=1, max_size=60).map(
    lambda gaps: [sum(gaps[: number + 1]) for number in range(len(gaps))]
)


def link(seed: int = 1, **fields: object) -> Link:
    return Link(LinkSpec(**fields), random.Random(seed))  # type: ignore[arg-type]


@given(delays, times, st.booleans())
def test_a_link_without_reordering_is_first_in_first_out(delay: Delay, sent: list[int], capped: bool) -> None:
    made = link(delay=delay, bytes_per_s=50_000 if capped else None)
    arrivals = [made.transmit(100, now).arrivals_us[0] for now in sent]
    assert arrivals == sorted(arrivals)
    assert all(arrival >= now for arrival, now in zip(arrivals, sent, strict=True))


@given(times)
def test_control_messages_are_never_harmed(sent: list[int]) -> None:
    made = link(loss=1.0, duplication=1.0, reordering=1.0, reordering_us=9_999, delay=Delay("constant", 5))
    assert [made.transmit(10, now, control=True).arrivals_us for now in sent] == [(now + 5,) for now in sent]


def test_loss_duplication_and_reordering_happen_as_often_as_told() -> None:
    lossy, doubling = link(loss=0.2), link(duplication=0.3)
    lost = sum(lossy.transmit(10, now).drop is DropReason.LOSS for now in range(20_000))
    doubled = sum(len(doubling.transmit(10, now).arrivals_us) == 2 for now in range(20_000))
    assert 0.19 < lost / 20_000 < 0.21
    assert 0.29 < doubled / 20_000 < 0.31
    late = link(reordering=0.1, reordering_us=5_000)
    arrivals = [late.transmit(10, now * 100).arrivals_us[0] for now in range(20_000)]
    overtaken = sum(arrival > min(arrivals[number + 1 : number + 60]) for number, arrival in enumerate(arrivals[:-60]))
    assert 0.08 < overtaken / 20_000 < 0.11


def test_bandwidth_spaces_messages_out() -> None:
    made = link(bytes_per_s=1_000_000)
    assert [made.transmit(1_000, 0).arrivals_us[0] for _ in range(4)] == [1_000, 2_000, 3_000, 4_000]
    by_count = link(messages_per_s=100)
    assert [by_count.transmit(1, 0).arrivals_us[0] for _ in range(3)] == [10_000, 20_000, 30_000]
    assert link(bytes_per_s=1_000_000).transmit(5_000_000, 0).arrivals_us == (5_000_000,)
    assert link(messages_per_s=1).transmit(1, 0).arrivals_us == (1_000_000,)
    assert link(messages_per_s=2_000_000).transmit(1, 0).arrivals_us == (0,), "whole microseconds, rounded down"


def test_a_full_queue_drops_when_told_to_and_has_room_again_later() -> None:
    made = link(messages_per_s=100, queue_messages=3, on_overflow="drop")
    assert [made.transmit(1, 0).drop for _ in range(5)] == [None, None, None, DropReason.OVERFLOW, DropReason.OVERFLOW]
    assert made.transmit(1, 10_000).drop is None
    assert made.congested_until_us(10_000) is None, "a link that drops never asks for slowness"


def test_a_full_queue_reports_congestion_and_refuses_only_at_the_hard_limit() -> None:
    made = link(messages_per_s=100, queue_messages=4, on_overflow="slow")
    assert made.congested_until_us(0) is None
    for _ in range(4):
        made.transmit(1, 0)
    assert made.congested_until_us(0) == 30_000, "until the queue is half empty"
    for _ in range(4 * HARD_LIMIT_FACTOR - 4):
        assert made.transmit(1, 0).drop is None
    assert made.transmit(1, 0).drop is DropReason.OVERFLOW
    assert made.transmit(1, 0, control=True).drop is None


def test_the_same_seed_draws_the_same_fate() -> None:
    spec = {"loss": 0.3, "duplication": 0.3, "reordering": 0.3, "delay": Delay("exponential", 10, 500)}
    first, second = link(5, **spec), link(5, **spec)
    assert [first.transmit(9, now) for now in range(500)] == [second.transmit(9, now) for now in range(500)]


@pytest.mark.parametrize(
    "fields",
    [
        {"loss": 1.1},
        {"duplication": -0.1},
        {"reordering": 2},
        {"bytes_per_s": 0},
        {"queue_messages": 0},
        {"reordering_us": -1},
    ],
)
def test_an_impossible_link_is_refused_by_name(fields: dict[str, float]) -> None:
    with pytest.raises(InputError, match=f"link {next(iter(fields))}"):
        LinkSpec(**fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "fields",
    [
        {"loss": 0, "duplication": 0, "reordering": 0},
        {"loss": 1, "duplication": 1, "reordering": 1},
        {"bytes_per_s": 1, "messages_per_s": 1, "queue_messages": 1},
        {"bytes_per_s": None, "messages_per_s": None},
        {"reordering_us": 0},
    ],
)
def test_a_link_may_be_as_bad_as_can_be(fields: dict[str, Any]) -> None:
    assert LinkSpec(**fields)


def test_an_impossible_delay_is_refused() -> None:
    assert Delay("uniform", 10, 10).sampler(random.Random(1))() == 10
    with pytest.raises(InputError, match="low at most high"):
        Delay("uniform", 10, 9)
    for low_us, high_us in ((-1, 0), (0, -1)):
        with pytest.raises(InputError, match=f"{low_us} and {high_us}; allowed: delays that are not negative"):
            Delay("constant", low_us, high_us)


def test_each_distribution_draws_what_it_says() -> None:
    rng = random.Random(5)
    assert {Delay("constant", 7).sampler(rng)() for _ in range(50)} == {7}
    uniform = {Delay("uniform", 3, 5).sampler(rng)() for _ in range(300)}
    assert uniform == {3, 4, 5}
    exponential = [Delay("exponential", 100, 1_000).sampler(rng)() for _ in range(3_000)]
    assert min(exponential) in range(100, 110)
    assert 1_000 < sum(exponential) / 3_000 < 1_200
    normal = [Delay("normal", 1_000, 100).sampler(rng)() for _ in range(3_000)]
    assert 990 < sum(normal) / 3_000 < 1_010
    assert 90 < (sum((each - 1_000) ** 2 for each in normal) / 3_000) ** 0.5 < 110


def test_a_normal_delay_may_be_zero_and_is_never_less() -> None:
    assert Delay("normal", 0, 0).sampler(random.Random(5))() == 0
    drawn = [Delay("normal", 0, 100).sampler(random.Random(seed))() for seed in range(300)]
    assert min(drawn) == 0
    assert 100 < drawn.count(0) < 200


def test_what_was_sent_over_the_slower_link_stays_ahead_of_what_comes_after_the_change() -> None:
    made = link(delay=Delay("constant", 10_000))
    before = made.transmit(1, 0).arrivals_us
    made.change(LinkSpec(delay=Delay("constant", 1_000)), 2_000)
    assert before == (10_000,)
    assert made.transmit(1, 2_000).arrivals_us >= before
    assert made.transmit(1, 50_000).arrivals_us == (51_000,)


@pytest.mark.parametrize(
    ("fields", "is_perfect"),
    [({}, True), ({"delay": Delay("constant", 1_000)}, False), ({"loss": 0.1}, False)],
)
def test_only_a_link_that_neither_delays_nor_harms_is_perfect(fields: dict[str, Any], is_perfect: bool) -> None:
    assert LinkSpec(**fields).perfect == is_perfect
    made = link(**fields)
    assert made.perfect == is_perfect
    made.change(LinkSpec(), 0)
    assert not made.perfect, "of a link that has changed something may still be on its way"


HARMFUL: dict[str, Any] = {
    "loss": 0.0, "duplication": 1.0, "reordering": 1.0, "reordering_us": 1_000, "delay": Delay("constant", 5),
}  # fmt: skip


def test_a_second_copy_takes_its_own_delay_after_the_first() -> None:
    assert link(**{**HARMFUL, "reordering": 0.0}).transmit(1, 100).arrivals_us == (105, 110)


def test_a_reordered_message_falls_behind_by_any_time_up_to_the_one_told() -> None:
    made = link(**{**HARMFUL, "duplication": 0.0})
    behind = sorted(made.transmit(1, 0).arrivals_us[0] - 5 for _ in range(300))
    assert 0 <= behind[0] < 50
    assert 450 < behind[150] < 550
    assert 950 < behind[-1] <= 1_000


def test_a_control_message_on_a_harmful_link_comes_once_and_in_its_order() -> None:
    made = link(**{**HARMFUL, "loss": 1.0})
    assert [made.transmit(1, now, control=True).arrivals_us for now in range(9)] == [(now + 5,) for now in range(9)]
    assert made.transmit(1, 9).drop is DropReason.LOSS


def test_what_is_sent_at_the_beginning_over_a_link_that_keeps_order_need_not_wait() -> None:
    assert link(delay=Delay("uniform", 0, 0)).transmit(1, 0).arrivals_us == (0,)


def test_a_queue_of_one_message_is_free_again_when_the_last_that_waits_has_left() -> None:
    made = link(messages_per_s=100, queue_messages=1, on_overflow="slow")
    for leaves_us in (10_000, 20_000, 30_000):
        made.transmit(1, 0)
        assert made.congested_until_us(0) == leaves_us


@pytest.mark.parametrize(
    ("cap", "size", "due_us"),
    [
        ({"bytes_per_s": 125_000_000}, 100, 80_000),
        ({"bytes_per_s": 100_000_000}, 150, 150_000),
        ({"bytes_per_s": 10_000_000}, 109, 1_090_000),
        ({"messages_per_s": 600_000}, 100, 166_666),
        ({"messages_per_s": 2_000_000}, 100, 50_000),
    ],
)
def test_a_fast_link_carries_no_more_than_its_bandwidth(cap: dict[str, int], size: int, due_us: int) -> None:
    spec = LinkSpec(Delay("constant", 0), queue_messages=1_000_000, **cap)  # type: ignore[arg-type]
    link = Link(spec, random.Random(0))
    for _ in range(100_000):
        last = link.transmit(size, 0)
    assert last.arrivals_us[0] == pytest.approx(due_us, abs=100)
