"""Epidemic recovery, section 4.2 (tags, loss detection, pulls, Figure 3), at one dispatcher."""

import itertools
from typing import Any

import pytest

from murmur_pubsub.errors import WireError
from reliability.epidemic.messages import (
    EventRecovered,
    PublisherPull,
    RandomPull,
    SubscriberPull,
    TaggedEvent,
)
from tests.protocols.epidemic.station import MS, Station, an_event, sign, tagged


def pulling(*neighbours: str, algorithm: str = "subscriber-pull", **given: Any) -> Station:
    return Station(*neighbours, algorithm=algorithm, **given)


def losing(algorithm: str, *names: str, **given: Any) -> Station:
    """A dispatcher that subscribes a, has neighbours x, y and z that hold it too, and has lost number 2 of source s."""
    station = pulling("x", "y", "z", algorithm=algorithm, **given)
    for name in names or ("a",):
        station.subscribe(name)
        station.told("x", name)
        station.told("y", name)
    route = ("s", "m", "x")
    station.get("x", tagged(an_event(7, 0, "a"), "s", "a", 1, route=route))
    station.get("x", tagged(an_event(7, 2, "a"), "s", "a", 3, route=route))
    return station


# ------------------------------------------------------------------------------------------------ tags (S:Pa-5:Pb-4)
def test_epidemic_s4_2_a_source_numbers_its_events_for_each_pattern_they_match() -> None:
    station = pulling("x", hops=("x",))
    station.told("x", "a", "b")
    numbers = []
    for sequence, names in enumerate(("a", "a", "b", "ab", "c", "ba")):
        station.publish(an_event(7, sequence, *names))
        ((_, message),) = station.sent
        assert (message.source, message.incarnation) == ("me", 0)
        pairs = dict(zip(message.numbers[::2], message.numbers[1::2], strict=True))
        numbers.append((pairs.get(sign("a")), pairs.get(sign("b"))))
    assert numbers == [(1, None), (2, None), (None, 1), (3, 2), (None, None), (4, 3)]


def test_epidemic_s4_2_the_sources_own_subscribers_patterns_count_too() -> None:
    station = pulling("x", hops=("x",))
    station.subscribe("a")
    station.publish(an_event(7, 0, "a"))
    assert station.messages(TaggedEvent)[0].numbers == [sign("a"), 1]


def test_epidemic_s4_2_a_pattern_not_known_yet_is_not_tagged_and_counts_from_one_when_it_is() -> None:
    station = pulling("x", hops=("x",))
    station.publish(an_event(7, 0, "a"))
    assert station.messages(TaggedEvent)[0].numbers == []
    station.told("x", "a")
    station.publish(an_event(7, 1, "a"))
    assert station.messages(TaggedEvent)[0].numbers == [sign("a"), 1]


def test_epidemic_s4_2_counting_goes_on_over_a_broken_link_so_that_the_other_side_sees_what_it_missed() -> None:
    station = pulling("x", hops=("x",), linger_us=100 * MS)
    station.told("x", "a")
    station.publish(an_event(7, 0, "a"))
    station.lose_link("x")
    station.now_us += 50 * MS
    station.publish(an_event(7, 1, "a"))
    station.gain_link("x")
    station.told("x", "a")
    station.publish(an_event(7, 2, "a"))
    assert station.messages(TaggedEvent)[0].numbers == [sign("a"), 3]


def test_epidemic_s4_2_a_pattern_given_up_and_taken_up_again_does_not_repeat_its_numbers() -> None:
    station = pulling("x", hops=("x",), linger_us=100 * MS)
    station.told("x", "a")
    station.publish(an_event(7, 0, "a"))
    station.lose_link("x")
    station.now_us += 500 * MS
    station.publish(an_event(7, 1, "a"))
    assert station.messages(TaggedEvent)[0].numbers == []
    station.gain_link("x")
    station.told("x", "a")
    station.publish(an_event(7, 2, "a"))
    assert station.messages(TaggedEvent)[0].numbers == [sign("a"), 2]


def test_epidemic_s4_2_push_and_no_recovery_neither_tag_nor_record_routes() -> None:
    for algorithm in ("push", "none"):
        station = pulling("x", hops=("x",), algorithm=algorithm)
        station.told("x", "a")
        station.publish(an_event(7, 0, "a"))
        assert station.messages(TaggedEvent)[0][3:] == ("me", 0, [], ())


# ------------------------------------------------------------------------------------------------ loss detection
def test_epidemic_s4_2_a_gap_is_seen_only_when_a_later_event_of_the_source_and_pattern_arrives() -> None:
    station = pulling("x", "y")
    station.subscribe("a")
    station.subscribe("b")
    station.told("y", "a")
    station.get("x", tagged(an_event(7, 0, "a"), "s", "a", 1))
    station.get("x", tagged(an_event(8, 0, "a"), "t", "a", 9))
    station.get("x", tagged(an_event(7, 5, "b"), "s", "b", 4))
    assert station.wake_us is None, "another source or pattern says nothing about this one"
    station.get("x", tagged(an_event(7, 9, "a"), "s", "a", 4))
    station.round()
    assert station.sent == [("y", SubscriberPull("me", sign("a"), [["s", 0, 2, 3]]))]


def test_epidemic_s4_2_a_subscription_that_starts_late_does_not_count_earlier_numbers_as_lost() -> None:
    station = pulling("x")
    station.get("x", tagged(an_event(7, 0, "a"), "s", "a", 1))
    station.subscribe("a")
    station.get("x", tagged(an_event(7, 99, "a"), "s", "a", 100))
    assert station.wake_us is None


def test_epidemic_s4_2_a_subscription_still_on_its_way_learns_and_does_not_judge() -> None:
    station = pulling("x", settle_us=100 * MS)
    station.subscribe("a")
    station.get("x", tagged(an_event(7, 0, "a", time_us=10 * MS), "s", "a", 1))
    station.get("x", tagged(an_event(7, 2, "a", time_us=99 * MS), "s", "a", 3))
    assert station.wake_us is None, "number 2 was not sent here yet"
    station.get("x", tagged(an_event(7, 4, "a", time_us=101 * MS), "s", "a", 5))
    assert station.wake_us is not None


def test_epidemic_s4_2_a_withdrawn_subscription_has_lost_nothing_and_begins_anew() -> None:
    station = losing("subscriber-pull")
    station.unsubscribe("a")
    assert station.rounds(3) == []
    station.subscribe("a")
    station.get("x", tagged(an_event(7, 50, "a"), "s", "a", 51))
    assert station.wake_us is None


def test_epidemic_s4_2_a_restarted_source_is_neither_a_loss_nor_a_duplicate() -> None:
    station = pulling("x")
    station.subscribe("a")
    station.get("x", tagged(an_event(7, 0, "a"), "s", "a", 5))
    station.get("x", tagged(an_event(7, 1, "a"), "s", "a", 1, incarnation=1))
    assert station.delivered == [1]
    station.get("x", tagged(an_event(7, 2, "a"), "s", "a", 2, incarnation=1))
    assert station.wake_us is None
    station.get("x", tagged(an_event(7, 9, "a"), "s", "a", 9, incarnation=0))
    assert station.wake_us is None, "a straggler of the life before says nothing"
    station.get("x", tagged(an_event(7, 4, "a"), "s", "a", 4, incarnation=1))
    assert station.wake_us is not None


def test_epidemic_s4_2_a_restarted_dispatcher_tags_under_its_new_incarnation() -> None:
    station = pulling("x", hops=("x",), incarnation=3, now_us=MS)
    station.told("x", "a")
    station.publish(an_event(7, 0, "a", time_us=2 * MS))
    message = station.messages(TaggedEvent)[0]
    assert (message.incarnation, message.numbers) == (3, [sign("a"), 1])


def test_epidemic_s4_2_a_lost_event_has_an_entry_for_each_local_pattern_and_recovery_takes_all_away() -> None:
    station = pulling("x", "y", algorithm="random-pull", fanout=1)
    station.subscribe("a")
    station.subscribe("b")
    station.get("x", tagged(an_event(7, 0, "ab"), "s", "a", 1, "b", 1))
    station.get("x", tagged(an_event(7, 2, "ab"), "s", "a", 3, "b", 3))
    asked = {message.pattern for _, message in station.rounds(20)}
    assert asked == {sign("a"), sign("b")}
    lost = tagged(an_event(7, 1, "ab"), "s", "a", 2, "b", 2)
    station.get("far", EventRecovered(lost.event, 3, "s", 0, lost.numbers))
    assert station.rounds(20) == []
    assert station.wake_us is None


def test_epidemic_s4_2_an_event_that_was_only_late_is_lost_no_more() -> None:
    station = losing("subscriber-pull")
    station.get("x", tagged(an_event(7, 1, "a"), "s", "a", 2))
    assert station.delivered == [1]
    assert station.rounds(5) == []


def test_epidemic_s4_2_an_event_that_no_cache_has_is_given_up_after_a_time_and_the_rounds_end() -> None:
    station = losing("subscriber-pull", lost_age_us=300 * MS, interval_us=30 * MS, fanout=1)
    assert 9 <= len(station.rounds(1000)) <= 11
    assert station.wake_us is None


def test_epidemic_s4_2_of_a_long_gap_no_more_is_looked_for_than_a_cache_holds() -> None:
    station = pulling("y", buffer=10)
    station.subscribe("a")
    station.told("y", "a")
    station.get("y", tagged(an_event(7, 0, "a"), "s", "a", 1))
    station.get("y", tagged(an_event(7, 1, "a"), "s", "a", 10**12))
    station.round()
    assert station.messages(SubscriberPull)[0].missing == [["s", 0, *range(10**12 - 10, 10**12)]]


# ------------------------------------------------------------------------------------------------ subscriber-based pull
def test_epidemic_s4_2_subscriber_pull_draws_from_local_patterns_only_and_a_digest_holds_only_the_chosen_one() -> None:
    station = pulling("x", "y")
    for name in ("a", "b"):
        station.subscribe(name)
    for name in ("a", "b", "c"):
        station.told("x", name)
        station.get("y", tagged(an_event(ord(name), 0, name), "s", name, 1))
        station.get("y", tagged(an_event(ord(name), 3, name), "s", name, 4))
    digests = {(message.pattern, str(message.missing)) for _, message in station.rounds(30)}
    assert digests == {(sign("a"), str([["s", 0, 2, 3]])), (sign("b"), str([["s", 0, 2, 3]]))}


def test_epidemic_s4_2_no_round_without_a_loss() -> None:
    station = pulling("x", "y", algorithm="combined-pull")
    station.subscribe("a")
    station.told("x", "a")
    for number in range(50):
        station.get("y", tagged(an_event(7, number, "a"), "s", "a", number + 1, route=("s", "y")))
        station.publish(an_event(8, number, "a"))
        assert station.wake_us is None


@pytest.mark.parametrize("subscribes", [False, True])
def test_epidemic_s4_2_only_subscribers_toss_the_coin_and_others_always_pass_the_digest_on(subscribes: bool) -> None:
    station = pulling("x", "y", p_forward=0.3)
    station.told("y", "a")
    if subscribes:
        station.subscribe("a")
    digest, passed = SubscriberPull("far", sign("a"), [["s", 0, 2]]), 0
    for _ in range(1000):
        station.get("x", digest)
        passed += len(station.sent)
    assert 240 < passed < 360 if subscribes else passed == 1000


@pytest.mark.parametrize("algorithm", ["subscriber-pull", "combined-pull", "random-pull"])
def test_epidemic_s4_2_a_holder_answers_by_any_of_the_tags_though_it_does_not_subscribe_the_pattern(
    algorithm: str,
) -> None:
    station = pulling("x", "y", algorithm=algorithm)
    station.subscribe("b")
    station.get("y", tagged(an_event(7, 9, "ab"), "s", "a", 5, "b", 4))
    kind = RandomPull if algorithm == "random-pull" else SubscriberPull
    station.get("x", kind("far", sign("a"), [["s", 0, 5]]))
    ((to, message),) = station.sent
    assert to == "far"
    assert (message.event.id, message.hops, message.numbers) == ((7, 9), 2, [sign("a"), 5, sign("b"), 4])


def test_epidemic_s4_2_the_answered_part_is_trimmed_from_what_goes_on_and_nothing_goes_on_when_all_is_answered() -> (
    None
):
    station = pulling("x", "y")
    station.subscribe("b")
    station.told("y", "a")
    for number in (5, 7):
        station.get("y", tagged(an_event(7, number, "ab"), "s", "a", number, "b", number))
    station.get("x", SubscriberPull("far", sign("a"), [["s", 0, 5, 6, 7], ["t", 0, 1]]))
    answered = [message.event.sequence for _, message in station.sent if type(message) is EventRecovered]
    assert answered == [5, 7]
    assert station.messages(SubscriberPull) == [SubscriberPull("far", sign("a"), [["s", 0, 6], ["t", 0, 1]])]
    station.get("x", SubscriberPull("far", sign("a"), [["s", 0, 5], ["s", 0, 7]]))
    assert station.messages(SubscriberPull) == []


def test_epidemic_s4_2_another_incarnations_number_is_another_event() -> None:
    station = pulling("x", "y")
    station.subscribe("a")
    station.get("y", tagged(an_event(7, 0, "a"), "s", "a", 5, incarnation=1))
    station.get("x", SubscriberPull("far", sign("a"), [["s", 0, 5]]))
    assert station.messages(EventRecovered) == []


def test_epidemic_s4_2_the_digest_does_not_go_back_where_it_came_from() -> None:
    station = pulling("x", "y")
    station.told("x", "a")
    station.get("x", SubscriberPull("far", sign("a"), [["s", 0, 5]]))
    assert station.sent == []


# ------------------------------------------------------------------------------------------------ publisher-based pull
def test_epidemic_s4_2_the_route_is_recorded_in_the_event() -> None:
    source = pulling("x", algorithm="publisher-pull", hops=("x",))
    source.publish(an_event(7, 0, "a"))
    assert source.messages(TaggedEvent)[0].route == ("me",)
    middle = pulling("x", "y", algorithm="combined-pull", hops=("y",))
    middle.get("x", tagged(an_event(7, 0, "a"), "s", route=("s", "x")))
    assert middle.messages(TaggedEvent)[0].route == ["s", "x", "me"]


def test_epidemic_s4_2_publisher_pull_walks_the_most_recent_route_back_from_its_end() -> None:
    station = losing("publisher-pull")
    station.get("y", tagged(an_event(7, 3, "a"), "s", "a", 4, route=("s", "n", "y")))
    station.round()
    assert station.sent == [("y", PublisherPull("me", "s", [[0, sign("a"), 2]], ("n", "s")))]


def test_epidemic_s4_2_publisher_pull_goes_along_the_route_to_the_source_whatever_is_subscribed() -> None:
    station = pulling("x", "y", algorithm="publisher-pull", p_forward=0.0)
    station.subscribe("a")
    pull = PublisherPull("far", "s", [[0, sign("a"), 2]], ["m", "s"])
    station.get("x", pull)
    assert station.sent == [("m", pull._replace(route=["s"]))]
    station.get("x", pull._replace(source="me", route=[]))
    assert station.sent == [], "this is the source, and it has nothing: the digest is dropped"


def test_epidemic_s4_2_the_source_and_the_first_holder_on_the_way_answer() -> None:
    source = pulling("x", algorithm="publisher-pull", hops=("x",))
    source.told("x", "a")
    source.publish(an_event(7, 0, "a"))
    source.get("x", PublisherPull("far", "me", [[0, sign("a"), 1]], []))
    assert [(to, message.event.id) for to, message in source.sent] == [("far", (7, 0))]
    holder = pulling("x", "y", algorithm="publisher-pull")
    holder.subscribe("b")
    holder.get("y", tagged(an_event(7, 9, "ab"), "s", "a", 5, "b", 4, route=("s", "y")))
    holder.get("x", PublisherPull("far", "s", [[0, sign("a"), 5, 6]], ["y", "s"]))
    kinds = dict(holder.sent)
    assert kinds["far"].event.id == (7, 9)
    assert kinds["y"].missing == [[0, sign("a"), 6]]


def test_epidemic_s4_2_a_digest_to_the_publisher_holds_all_patterns_of_that_source_and_no_other_source() -> None:
    station = losing("publisher-pull", "a", "b")
    for source, publisher in (("s", 7), ("t", 8)):
        route = (source, "x")
        station.get("x", tagged(an_event(publisher, 10, "b"), source, "b", 1, route=route))
        station.get("x", tagged(an_event(publisher, 13, "b"), source, "b", 4, route=route))
    digests = {message.source: message.missing for _, message in station.rounds(30)}
    assert digests == {"s": [[0, sign("a"), 2], [0, sign("b"), 2, 3]], "t": [[0, sign("b"), 2, 3]]}


# ------------------------------------------------------------------------------------------------ the other pulls
def test_epidemic_s5_combined_pull_mixes_both_by_p_source() -> None:
    kinds = [
        type(message) for _, message in losing("combined-pull", p_source=0.25, lost_age_us=10**9, fanout=1).rounds(1000)
    ]
    assert 190 < kinds.count(PublisherPull) < 310
    assert kinds.count(PublisherPull) + kinds.count(SubscriberPull) == 1000


def test_epidemic_s5_random_pull_goes_to_any_neighbour_whatever_is_subscribed() -> None:
    station = losing("random-pull", lost_age_us=10**9)
    sent = station.rounds(300)
    assert {to for to, _ in sent} == {"x", "y", "z"}
    assert {type(message) for _, message in sent} == {RandomPull}
    station = pulling("x", "y", "z", algorithm="random-pull", p_forward=0.5)
    passed = []
    for _ in range(1000):
        station.get("x", RandomPull("far", sign("a"), [["s", 0, 5]]))
        passed += [to for to, _ in station.sent]
        assert len(station.sent) <= 1
    assert set(passed) == {"y", "z"}
    assert 430 < len(passed) < 570


def test_epidemic_s5_the_adaptive_interval_grows_while_nothing_is_found_and_falls_back_at_a_sign_of_loss() -> None:
    station = losing("subscriber-pull", adaptive=True, interval_us=30 * MS, interval_max_us=240 * MS, lost_age_us=10**9)
    times = []
    for _ in range(7):
        station.round()
        times.append(station.now_us)
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert gaps == [30 * MS, 60 * MS, 120 * MS, 240 * MS, 240 * MS, 240 * MS]
    station.now_us += 5 * MS
    station.get("x", tagged(an_event(7, 8, "a"), "s", "a", 9))
    assert station.wake_us is not None
    assert station.wake_us <= station.now_us + 30 * MS


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("subscriber-pull", SubscriberPull("far", 1, [["s", 0, "x"]])),
        ("subscriber-pull", SubscriberPull("far", 1, [[3, 0, 1]])),
        ("random-pull", RandomPull("far", 1, [7])),
        ("publisher-pull", PublisherPull("far", "s", [["s", 1, 2]], [])),
        ("publisher-pull", PublisherPull("far", "s", [[0, 1, 2]], [3])),  # type: ignore[list-item]
        ("none", TaggedEvent(an_event(7, 0, "a"), 1, (), "s", 0, [1], [])),
        ("none", EventRecovered(an_event(7, 0, "a"), 1, "s", 0, ["a", 2])),  # type: ignore[list-item]
    ],
)
def test_a_malformed_message_is_refused(kind: str, message: Any) -> None:
    with pytest.raises(WireError):
        pulling("x", algorithm=kind).get("x", message)
