"""Epidemic recovery, section 4.1 (push, Figure 2), at one dispatcher."""

from typing import Any

import pytest

from murmur_pubsub.filter import Filter
from murmur_pubsub.message import is_datagram
from reliability.epidemic.messages import EventRecovered, EventsRequested, LinkMade, PushDigest, TaggedEvent
from tests.protocols.epidemic.station import MS, Station, an_event, pattern, sign, tagged


def pushing(*neighbours: str, **given: Any) -> Station:
    return Station(*neighbours, algorithm="push", **given)


def test_epidemic_s4_1_a_pattern_is_drawn_from_the_whole_table_and_not_only_from_local_ones() -> None:
    station = pushing("x", "y")
    station.subscribe("a")
    station.told("x", "b")
    station.told("y", "c")
    for sequence, names in enumerate(("ab", "ac", "bc")):
        station.get("x", tagged(an_event(7, sequence, *names), "s"))
    drawn = {message.pattern: to for to, message in station.rounds(200) if type(message) is PushDigest}
    assert drawn == {sign("b"): "x", sign("c"): "y"}, "no other dispatcher holds a, so there is none to tell of it"


def test_epidemic_s4_1_the_digest_lists_the_cached_events_that_match_the_pattern_and_no_others() -> None:
    station = pushing("x")
    station.subscribe("a")
    station.told("x", "b")
    for sequence, names in enumerate(("ab", "a", "ab")):
        station.get("x", tagged(an_event(7, sequence, *names), "s"))
    digests = {tuple(message.ids) for _, message in station.rounds(20)}
    assert digests == {(7, 0, 7, 2)}


def test_epidemic_s4_1_nothing_cached_for_the_pattern_means_no_message() -> None:
    station = pushing("x")
    station.subscribe("a")
    station.told("x", "b")
    station.get("x", tagged(an_event(7, 0, "a"), "s"))
    assert station.rounds(30) == []


def test_epidemic_s4_1_a_subscriber_asks_the_initiator_for_what_it_has_not_received_and_nothing_else() -> None:
    station = pushing("x")
    station.subscribe("a")
    station.get("x", tagged(an_event(7, 0, "a"), "s"))
    station.get("x", PushDigest("far", sign("a"), [7, 0, 7, 1, 8, 0]))
    assert [(to, list(message.ids)) for to, message in station.sent if type(message) is EventsRequested] == [
        ("far", [7, 1, 8, 0])
    ]
    station.get("x", PushDigest("far", sign("a"), [7, 0]))
    assert station.sent == []


def test_epidemic_s4_1_a_dispatcher_without_the_pattern_asks_for_nothing_but_passes_the_digest_on() -> None:
    station = pushing("x", "y")
    station.told("x", "a")
    station.told("y", "a")
    digest = PushDigest("far", sign("a"), [7, 0])
    station.get("x", digest)
    assert station.sent == [("y", digest)]


def test_epidemic_s4_1_every_dispatcher_that_the_digest_reaches_tosses_the_coin() -> None:
    for subscribes in (False, True):
        station = pushing("x", "y", p_forward=0.3)
        station.told("y", "a")
        if subscribes:
            station.subscribe("a")
        passed = 0
        for number in range(1000):
            station.get("x", PushDigest("far", sign("a"), [7, number]))
            passed += len(station.messages(PushDigest))
        assert 240 < passed < 360, f"subscribes: {subscribes}"


def test_epidemic_s4_1_the_initiator_always_sends() -> None:
    station = pushing("x", p_forward=0.0)
    station.told("x", "a")
    station.publish(an_event(7, 0, "a"))
    assert len(station.rounds(10)) == 10


def test_epidemic_s4_1_gossip_goes_to_a_subset_of_the_neighbours_with_subscribers() -> None:
    station = pushing("x", "y", "z", "w", fanout=2)
    for peer in ("x", "y", "z"):
        station.told(peer, "a")
    station.publish(an_event(7, 0, "a"))
    reached = set()
    for _ in range(50):
        station.round()
        peers = [to for to, _ in station.sent]
        assert len(set(peers)) == 2
        reached |= set(peers)
    assert reached == {"x", "y", "z"}


def test_epidemic_s4_1_the_initiator_sends_what_it_still_has_to_the_requester_out_of_band() -> None:
    station = pushing("x", buffer=2)
    station.subscribe("a")
    for sequence in range(3):
        station.get("x", tagged(an_event(7, sequence, "a"), "s", hops=4))
    station.get("far", EventsRequested([7, 0, 7, 1, 9, 9, 7, 2]))
    assert [(to, message.event.sequence, message.hops) for to, message in station.sent] == [
        ("far", 1, 5),
        ("far", 2, 5),
    ]
    assert is_datagram(EventsRequested)
    assert is_datagram(EventRecovered)


def test_epidemic_s4_1_a_recovered_event_is_delivered_once_kept_and_not_passed_on() -> None:
    station = pushing("x", "y", hops=("x", "y"))
    station.subscribe("a")
    recovered = EventRecovered(an_event(7, 0, "a"), 3, "s", 0, [])
    station.get("far", recovered)
    assert (station.delivered, station.sent) == ([0], [])
    station.get("far", recovered)
    assert station.delivered == []
    station.get("other", EventsRequested([7, 0]))
    assert [to for to, _ in station.sent] == ["other"]


def test_epidemic_s4_1_the_first_copy_over_the_tree_goes_on_though_it_was_recovered_and_a_second_goes_nowhere() -> None:
    station = pushing("x", "y", hops=("x", "y"))
    station.subscribe("a")
    event = an_event(7, 0, "a")
    station.get("far", EventRecovered(event, 3, "s", 0, []))
    station.get("x", tagged(event, "s"))
    assert station.delivered == []
    assert [(to, message.hops) for to, message in station.sent] == [("y", 2)]
    station.get("x", tagged(event, "s"))
    assert (station.delivered, station.sent) == ([], [])


def test_epidemic_s4_1_a_new_subscriber_gets_no_old_events_from_a_push_and_asks_only_once() -> None:
    station = pushing("x", now_us=500 * MS)
    station.subscribe("a")
    station.get("x", PushDigest("far", sign("a"), [7, 0]))
    assert station.messages(EventsRequested)
    station.get("far", EventRecovered(an_event(7, 0, "a", time_us=499 * MS), 3, "s", 0, []))
    assert station.delivered == []
    station.get("x", PushDigest("far", sign("a"), [7, 0]))
    assert station.messages(EventsRequested) == []


def test_epidemic_s4_1_a_restarted_dispatcher_delivers_nothing_that_its_subscribers_may_have_had() -> None:
    station = pushing("x", "y", hops=("y",), incarnation=1, now_us=500 * MS)
    station.subscribe("a")
    station.get("x", tagged(an_event(7, 0, "a", time_us=499 * MS), "s"))
    assert station.delivered == []
    assert [to for to, _ in station.sent] == ["y"], "those behind it wait for it"
    station.get("x", tagged(an_event(7, 1, "a", time_us=501 * MS), "s"))
    assert station.delivered == [1]


def test_epidemic_s4_1_a_second_copy_of_a_publication_is_not_published_again() -> None:
    station = pushing("x", hops=("x",))
    station.publish(an_event(7, 0, "a"))
    station.publish(an_event(7, 0, "a"))
    assert station.sent == []


def test_epidemic_s4_1_push_sleeps_when_there_has_been_no_news_and_wakes_with_the_next() -> None:
    station = pushing("x", rest_after_us=300 * MS, interval_us=30 * MS)
    station.told("x", "a")
    station.publish(an_event(7, 0, "a"))
    station.round()
    station.publish(an_event(7, 1, "a"))
    sent = station.rounds(1000)
    assert len(sent) == 10, "the rounds up to and with the one 300 ms after the news"
    assert station.wake_us is None
    station.publish(an_event(7, 2, "a"))
    assert station.wake_us is not None
    station.rounds(1000)
    station.get("far", EventsRequested([7, 1]))
    assert station.wake_us is not None, "a dispatcher has lost something, so there may be more to tell"


def test_epidemic_s4_1_an_event_cached_before_its_pattern_was_known_is_pushed_all_the_same() -> None:
    """Figure 2 evaluates the cached events when the digest is made."""
    station = pushing("x", buffer=3)
    station.told("x", "b")
    for sequence, names in enumerate(("a", "b", "a", "ab")):
        station.publish(an_event(7, sequence, names))
    station.told("x", "a")
    assert {(message.pattern, *message.ids) for _, message in station.rounds(20)} == {
        (sign("a"), 7, 2, 7, 3),
        (sign("b"), 7, 1, 7, 3),
    }
    station.publish(an_event(7, 4, "a"))
    station.publish(an_event(7, 5, "b"))
    assert {(message.pattern, *message.ids) for _, message in station.rounds(20)} == {
        (sign("a"), 7, 3, 7, 4),
        (sign("b"), 7, 3, 7, 5),
    }


def test_epidemic_s4_1_a_pattern_that_was_forgotten_and_is_told_again_finds_what_was_cached_meanwhile() -> None:
    station = pushing("x", linger_us=100 * MS)
    for sequence in range(3):
        station.told("x", "a")
        station.publish(an_event(7, 2 * sequence, "a"))
        assert sorted(station.rounds(3)[-1][1].ids[1::2]) == list(range(2 * sequence + 1))
        station.lose_link("x")
        station.now_us += 200 * MS
        station.publish(an_event(7, 2 * sequence + 1, "a"))
        station.gain_link("x")
    station.told("x", "a")
    station.told("x", "b")
    station.lose_link("x")
    station.now_us += 200 * MS
    station.publish(an_event(7, 6, "a"))
    station.gain_link("x")
    station.told("x", "a")
    assert sorted(station.rounds(3)[-1][1].ids[1::2]) == list(range(7))


def test_epidemic_s4_1_a_digest_costs_no_evaluation_where_no_pattern_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    station = pushing("x", buffer=100)
    station.told("x", "a", "b")
    for sequence in range(100):
        station.publish(an_event(7, sequence, "a"))
    evaluated = []
    monkeypatch.setattr(Filter, "matches", lambda wanted, attributes: evaluated.append(wanted))
    assert station.rounds(40)
    assert evaluated == []
    station.told("x", "c")
    assert station.rounds(40)
    assert evaluated == [pattern("c")] * 100, "once, for each event that was there before it"


@pytest.mark.parametrize("news", ["a link comes up", "a pattern is told"])
def test_epidemic_s4_1_push_wakes_when_there_may_be_other_dispatchers_to_tell(news: str) -> None:
    """Figure 2 goes on for ever; that push rests must not cost what it would have told."""
    station = pushing("x", rest_after_us=300 * MS)
    station.told("x", "a")
    assert station.wake_us is None, "nothing is cached yet"
    station.publish(an_event(7, 0, "a"))
    station.lose_link("x")
    station.rounds(1000)
    assert station.wake_us is None
    station.now_us += 10_000 * MS
    station.gain_link("x")
    if news == "a pattern is told":
        station.rounds(1000)
        station.told("x", "a")
    else:
        station.told("x", "a")
    assert station.wake_us is not None
    assert station.rounds(1)


def test_push_tells_the_whole_tree_of_a_link_that_came_up_once_there_are_events() -> None:
    station = pushing("x", "y")
    assert station.messages(LinkMade) == [], "links come up before anything is published"
    station.publish(an_event(7, 0, "a"))
    station.gain_link("z")
    assert [to for to, message in station.sent if type(message) is LinkMade] == ["x", "y", "z"]
    station.get("y", LinkMade())
    assert station.sent == [("x", LinkMade()), ("z", LinkMade())]


def test_push_passes_on_what_it_hears_of_links_though_it_has_seen_no_event_itself() -> None:
    """As a dispatcher that was restarted: the link that it hears of is its own, and the next one is news to others."""
    station = pushing("x")
    station.get("x", LinkMade())
    assert (station.sent, station.wake_us) == ([], None)
    station.gain_link("y")
    assert station.sent == [("x", LinkMade()), ("y", LinkMade())]


def test_a_pull_is_not_interested_in_links() -> None:
    station = Station("x", "y", algorithm="combined-pull")
    station.publish(an_event(7, 0, "a"))
    station.gain_link("z")
    station.get("x", LinkMade())
    assert (station.sent, station.wake_us) == ([], None)


def test_a_second_copy_of_a_publication_that_is_cached_no_more_goes_nowhere() -> None:
    """A client's link may make two copies, and between them other events may have filled the cache."""
    station = pushing("x", hops=["x"], buffer=1)
    station.subscribe("a")
    for sequence, is_new in ((0, True), (1, True), (0, False)):
        station.publish(an_event(7, sequence, "a"))
        assert station.delivered == [sequence] * is_new
        assert [type(message) for _, message in station.sent] == [TaggedEvent] * is_new
