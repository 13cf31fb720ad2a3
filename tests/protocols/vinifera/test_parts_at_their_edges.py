"""The parts of Vinifera where one more or less matters: hash, regions, profiles, contacts, content table, balance."""

import random

import pytest

from murmur_pubsub.event import Event
from murmur_pubsub.filter import EVERYTHING
from murmur_pubsub.filter_parser import parse_filter
from routing.smallworld.contacts import Contacts
from routing.smallworld.content_table import ContentTable, Entry
from routing.smallworld.messages import BeatAnswer, GossipPeer
from routing.smallworld.profile import ANY_ATTRIBUTE, attribute_key, pack_profile, ranges_on, unpack_profile, wants
from routing.smallworld.quarantine import QUARANTINE_ROUNDS, Quarantine
from routing.smallworld.ring import RING_SIZE
from routing.smallworld.selection import NeighbourSelection
from routing.smallworld.subscription_regions import SubscriptionRegions
from routing.vinifera.balance import Load, jumps, new_identifier, place_within
from routing.vinifera.hashing import AttributeDomain
from routing.vinifera.interests import OwnInterests

LAST = RING_SIZE - 1
EVERY = AttributeDomain("every")


# -------------------------------------------------------------------------------------------------- hash
def test_integers_beyond_every_float_are_at_the_ends() -> None:
    """A filter may compare with one of up to 1,000 digits; its ranges are places on the ring all the same."""
    huge = 10**400
    assert (EVERY.hash(huge), EVERY.hash(-huge)) == (LAST, 0)
    assert OwnInterests({}, random.Random(1)).change([parse_filter(f"x > -{huge}")]) == pack_profile(
        {attribute_key("x"): [(0, LAST)]}
    )
    percent = AttributeDomain("x", 0, 100)
    assert (percent.hash(huge), percent.hash(-huge)) == (LAST, 0)


@pytest.mark.parametrize(("earlier", "later"), [("aÿ", "aĀ"), ("aĀ", "b"), ("aĀ", "aāb"), ("a", "aa"), ("", "\x01")])
def test_strings_with_characters_that_are_not_told_apart_keep_their_order_among_the_others(
    earlier: str, later: str
) -> None:
    assert earlier < later
    assert EVERY.hash(earlier) <= EVERY.hash(later)


def test_what_follows_a_character_that_is_not_told_apart_does_not_matter() -> None:
    assert EVERY.hash("aĀ") == EVERY.hash("aĀÿÿÿÿÿÿ") == EVERY.hash("aÿÿÿÿÿ")
    assert EVERY.hash("aþ") < EVERY.hash("aÿ") < EVERY.hash("aĀ") <= EVERY.hash("b")


def test_the_places_of_booleans_and_of_the_first_and_last_values() -> None:
    assert (EVERY.hash(False), EVERY.hash(True)) == (RING_SIZE // 4, 3 * RING_SIZE // 4)
    assert (EVERY.hash(0), EVERY.hash(1), EVERY.hash(-1)) == (LAST // 2, int(0.75 * LAST), int(0.25 * LAST))
    assert (EVERY.hash(""), EVERY.hash("ÿ" * 6)) == (0, LAST)
    letters = AttributeDomain("letters", "b", "d")
    assert [letters.hash(text) for text in ("a", "b", "c", "d", "e")] == [0, 0, LAST // 2, LAST, LAST]


def test_a_constraint_without_an_end_reaches_to_that_end_of_the_ring() -> None:
    percent = AttributeDomain("x", 0, 100)
    ranges = {
        "x > 50": [(percent.hash(50), LAST)],
        "x < 50": [(0, percent.hash(50))],
        "x != 50": [(0, LAST)],
        "x IS NOT NULL": [(0, LAST)],
        "x IN (0, 50, 100)": [(0, 0), (percent.hash(50), percent.hash(50)), (LAST, LAST)],
    }
    for text, expected in ranges.items():
        constraints = parse_filter(text).constraints
        assert constraints is not None
        assert percent.ranges(constraints["x"]) == expected


# ----------------------------------------------------------------------------------------------- interests
def regions_of(interests: OwnInterests, *texts: str) -> SubscriptionRegions:
    interests.change([parse_filter(text) for text in texts])
    return interests.regions()


def test_what_requires_no_attribute_is_registered_where_events_without_a_declared_one_come_by() -> None:
    """At one place, which is in its region."""
    interests, any_attribute = OwnInterests({}, random.Random(1)), (ANY_ATTRIBUTE, EVERYTHING)
    assert regions_of(interests, "TRUE") == {any_attribute: [(0, 0)]}
    assert interests.targets(Event(1, 1, 0, {"x": 1})) == [(attribute_key("x"), EVERY.hash(1)), (ANY_ATTRIBUTE, 0)]
    assert interests.targets(Event(1, 1, 0, {})) == [(ANY_ATTRIBUTE, 0)]
    declared = OwnInterests({"x": AttributeDomain("x", 0, 100)}, random.Random(1))
    assert regions_of(declared, "TRUE") == {any_attribute: [(0, 0)], (attribute_key("x"), EVERYTHING): [(0, LAST)]}
    assert declared.targets(Event(1, 1, 0, {"x": 100})) == [(attribute_key("x"), LAST)]
    assert declared.targets(Event(1, 1, 0, {"y": False})) == [(attribute_key("y"), RING_SIZE // 4), (ANY_ATTRIBUTE, 0)]


def test_who_wants_nothing_has_no_regions_and_is_of_no_use_as_a_friend() -> None:
    interests, other = OwnInterests({}, random.Random(1)), OwnInterests({}, random.Random(1))
    assert interests.utility(other.change([parse_filter("x = 1")])) == 0
    assert not interests.rank([b""])
    for texts in ((), ("FALSE",)):
        assert regions_of(interests, *texts) == {}
        assert interests.primary is None
    interests.change([parse_filter("x = 1")])
    assert interests.primary == attribute_key("x")


def test_an_attribute_of_its_own_is_the_one_of_highest_rank() -> None:
    """Of a filter without the primary attribute; of those with as many overlapping candidates the greatest number."""
    interests, other = OwnInterests({}, random.Random(1)), OwnInterests({}, random.Random(1))
    texts = [f"x{number} = 1 AND a = 1" for number in range(4)]
    interests.change([parse_filter(text) for text in [*texts, "b = 1 AND c = 1"]])
    wants_c, wants_a = (other.change([parse_filter(text)]) for text in ("c = 1", "a = 1"))
    interests.rank([wants_a, wants_a, wants_c])
    assert interests.primary == attribute_key("a")
    attributes = {attribute for attribute, _ in interests.regions()}
    assert attributes == {attribute_key("a"), attribute_key("c")}
    interests.rank([wants_a])
    last = max(attribute_key("b"), attribute_key("c"))
    assert {attribute for attribute, _ in interests.regions()} == {attribute_key("a"), last}


# ------------------------------------------------------------------------------------------------ profiles
def test_a_profile_wants_an_event_that_has_a_wanted_value_of_each_of_its_attributes() -> None:
    packed = pack_profile({1: [(10, 20), (30, 40)], 2: [(5, 5)]})
    assert ranges_on(1, packed) == ([(10, 20), (30, 40)], 22)
    assert ranges_on(3, packed) == ((), 0)
    for value, wanted in ((9, False), (10, True), (20, True), (21, False), (29, False), (30, True), (41, False)):
        assert wants(packed, {1: value, 2: 5}) is wanted
    assert not wants(packed, {1: 10})
    assert not wants(packed, {1: 10, 2: 4})
    assert wants(packed, {1: 10, 2: 5, 3: 7})
    assert not wants(pack_profile({}), {1: 10})
    assert wants(pack_profile({ANY_ATTRIBUTE: [(0, 0)], 1: [(10, 20)]}), {2: 1})


def test_a_profile_of_more_ranges_than_fit_fills_the_smallest_gaps() -> None:
    ranges = [(10 * number, 10 * number + 1) for number in range(256)]
    assert unpack_profile(pack_profile({1: ranges})) == {1: ranges}
    assert unpack_profile(pack_profile({1: [*ranges, (2_558, 2_559)]})) == {1: [*ranges[:-1], (2_550, 2_559)]}


# ------------------------------------------------------------------------------------------------ contacts
def answered_at(identifier: int) -> BeatAnswer:
    return BeatAnswer(identifier, 0, 1, [7], 3, 4, 0, 0, False)


def test_what_is_told_of_a_contact_has_the_identifier_that_it_has_last_given_itself() -> None:
    contacts = Contacts([], inbound_max=2)
    peer = GossipPeer("a", 0, 100, b"profile")
    assert contacts.placed(peer) == peer, "it has not spoken for itself"
    assert contacts.hear("a", answered_at(100), 1) is None
    assert contacts.placed(peer) == peer
    assert contacts.hear("a", answered_at(200), 1) == 100, "it has moved"
    assert contacts.placed(peer) == peer._replace(identifier=200)
    assert contacts.hear("a", answered_at(200), 1) is None
    assert contacts.hear("b", answered_at(0), 1) is None, "the first that is heard of a peer is no move"
    assert contacts.hear("b", answered_at(1), 1) == 0


def test_a_node_routes_over_so_many_links_of_others_besides_its_neighbours_and_over_the_closest() -> None:
    peers = ("own", "silent", "in1", "in2", "in3", "before")
    for most, names in ((2, {1: "own", 3: "in1", 4: "in2", 6: "before"}), (0, {1: "own", 6: "before"})):
        contacts = Contacts(["own", "silent"], inbound_max=most)
        for at, name in enumerate(peers, 1):
            contacts.hear(name, answered_at(at), at)
        contacts.answered("own")
        for name in peers:
            contacts.links_here(name)
        assert {at: contacts.ring(0).next_hop(at) for at in names} == names
        assert contacts.ring(0).next_hop(5) == "before"
        assert contacts.ring(0).next_hop(7) is None
        assert list(contacts.reach()) == [1], "of neighbours alone"


def test_contacts_that_were_last_heard_before_a_round() -> None:
    contacts = Contacts([], inbound_max=2)
    for heard, name in enumerate(("a", "b", "c")):
        contacts.hear(name, answered_at(heard), heard)
    assert contacts.unheard_since(0) == []
    assert contacts.unheard_since(1) == ["a"]
    assert contacts.unheard_since(2) == ["a", "b"]


# -------------------------------------------------------------------------------------------- content table
REGIONS: SubscriptionRegions = {(1, EVERYTHING): [(10, 20)]}
MORE: SubscriptionRegions = {(1, EVERYTHING): [(30, 40)]}


@pytest.mark.parametrize("extends", [False, True])
def test_who_asks_for_more_goes_on_wanting_what_it_wanted(extends: bool) -> None:
    table = ContentTable()
    table.install("a", Entry(0, 1, REGIONS), 0)
    if extends:
        assert table.extend("a", Entry(0, 2, MORE), since=1, round=5)
    assert table.expire(5) is not extends
    assert table.destinations(1, 15, {}) == table.destinations(1, 35, {}) == (["a"] if extends else [])
    assert table.version("a") == (2 if extends else 0)
    table.check_invariants()


@pytest.mark.parametrize(("incarnation", "since"), [(0, 2), (1, 1)])
def test_what_is_added_to_another_version_or_by_another_incarnation_is_left(incarnation: int, since: int) -> None:
    table = ContentTable()
    assert not table.extend("a", Entry(incarnation, 3, MORE), since, 5), "nothing is here"
    table.install("a", Entry(0, 1, REGIONS), 0)
    assert not table.extend("a", Entry(incarnation, 3, MORE), since, 5)
    assert (table.version("a"), table.destinations(1, 35, {})) == (1, [])
    assert table.expire(1), "nor does it confirm what is here"


def test_a_table_says_whether_anything_that_was_wanted_has_expired() -> None:
    table = ContentTable()
    assert not table.expire(9)
    table.install("a", Entry(0, 1, REGIONS), 3)
    table.install("b", Entry(0, 1, {}), 1)
    assert not table.expire(1)
    assert len(table) == 2
    assert not table.expire(3), "b wanted nothing"
    assert len(table) == 1
    assert table.expire(4)
    table.check_invariants()


def test_the_same_under_another_version_is_no_change_but_confirms() -> None:
    table = ContentTable()
    assert table.install("a", Entry(0, 1, REGIONS), 0)
    assert not table.install("a", Entry(0, 2, REGIONS), 4)
    assert table.version("a") == 2
    assert not table.install("a", Entry(0, 1, MORE), 6), "overtaken; but the neighbour is there"
    assert not table.expire(6)
    assert not table.confirm("a", 0, 2, 8)
    assert not table.expire(8)
    assert not table.confirm("stranger", 5, 1, 9)
    assert table.confirm("a", 1, 2, 9), "a new incarnation knows nothing of it"
    assert len(table) == 0
    table.check_invariants()


@pytest.mark.parametrize(("attribute", "value", "wanted"), [(1, 9, 0), (1, 10, 1), (1, 20, 1), (1, 21, 0), (2, 15, 0)])
def test_an_event_goes_where_its_value_is_wanted(attribute: int, value: int, wanted: int) -> None:
    table = ContentTable()
    table.install("a", Entry(0, 1, {**REGIONS, (1, parse_filter("y > 1")): [(10, 20)]}), 0)
    assert table.destinations(attribute, value, None) == ["a"] * wanted, "once"


# ------------------------------------------------------------------------- selection, balance, quarantine
def test_a_peer_is_preferred_for_a_small_world_link_only_if_it_is_nearer_to_where_the_link_should_be() -> None:
    """Else nodes that are equally near would make a node select anew with each table that it is told."""
    selection = NeighbourSelection(1, 0, random.Random(5), lambda profile: 0.0)

    def peer(name: str, at: int) -> GossipPeer:
        return GossipPeer(name, 0, at % RING_SIZE, b"")

    ring = {name: peer(name, at) for name, at in (("after", 100), ("before", -100))}
    selection.select(0, {**ring, "far": peer("far", RING_SIZE // 2)}, {})
    (link,) = selection._links
    target = -link.distance % RING_SIZE
    chosen = selection.select(0, {**ring, "link": peer("link", target + 1_000)}, {})
    assert chosen == ["before", "after", "link"]
    assert not selection.prefers(0, peer("link", target + 1_000))
    assert not selection.prefers(0, peer("as far", target - 1_000))
    assert not selection.prefers(0, peer("farther", target + 1_001))
    assert selection.prefers(0, peer("nearer", target - 999))
    assert [selection.prefers(0, peer("ahead", at)) for at in (99, 100)] == [True, False]
    assert [selection.prefers(0, peer("behind", at)) for at in (-99, -100)] == [True, False]
    selection.select(0, ring, {})
    assert selection.prefers(0, peer("farther", target + 9_999)), "there is no link yet"
    assert selection.select(0, {}, {}) == selection.ring == []


@pytest.mark.parametrize(("median", "moves"), [(50, False), (51, True), (499, True), (500, False), (501, False)])
def test_a_node_moves_to_any_place_between_its_own_and_its_successors(median: int, moves: bool) -> None:
    assert new_identifier(50, 500, median) == (median if moves else None)
    turned = (median - 400) % RING_SIZE
    assert new_identifier((50 - 400) % RING_SIZE, 100, turned) == (turned if moves else None), "over the ring's end"


def test_a_light_node_takes_half_of_a_heavy_ones_range_and_not_of_a_single_value() -> None:
    load = Load()
    for value in (100, 200, 300, 400):
        load.add(value)
    rng = random.Random("places")
    places = {place_within(500, load.median(500), rng) for _ in range(200)}
    assert min(place for place in places if place is not None) == 200
    assert max(place for place in places if place is not None) <= 200 + 300 // 8
    assert len(places) > 20, "two that jump at once seldom meet"
    hot = Load()
    for value in (100, 200, 200, 200, 200, 400):
        hot.add(value)
    assert place_within(500, hot.median(500), rng) is None, "what is beyond the median is less than a quarter"


def test_a_node_jumps_only_if_it_has_a_quarter_or_less_of_a_load_that_counts() -> None:
    def share(own: int, heaviest: int) -> float:
        rng = random.Random("jumps")
        return sum(jumps(own, heaviest, 20, rng) for _ in range(2_000)) / 2_000

    assert share(5, 20) == share(6, 21) == 0
    assert share(5, 21) == share(25, 100) == pytest.approx(0.15, abs=0.02)


def test_the_median_is_a_place_that_half_of_the_events_were_at_or_before() -> None:
    load = Load()
    assert load.median(500) == 500
    medians = []
    for value in (300, 100, 200, RING_SIZE - 5):
        load.add(value)
        medians.append(load.median(500))
    assert medians == [500, 100, 200, 100], "of a single one no half can be taken"
    load.become(3)
    load.forget_half()
    assert (load.events, load.median(500)) == (1, 500)


def test_a_failed_peer_is_not_believed_for_its_quarantine_whoever_names_it() -> None:
    quarantine = Quarantine()
    told, other = ("a", 0, 9, b"", 0, 3), ("b", 0, 9, b"", 0, 3)
    assert quarantine.believed([told, other]) == [told, other]
    quarantine.begin("a", 0, round=0)
    for age in (0, 3):
        assert quarantine.believed([("a", 0, 9, b"", 0, age), other]) == [other], "before any round"
    for number in range(1, QUARANTINE_ROUNDS + 1):
        quarantine.begin_round(number)
        stale = ("a", 0, 9, b"", 0, number)
        assert (stale in quarantine.believed([stale, other])) is (number == QUARANTINE_ROUNDS)
    quarantine.begin("a", 0, QUARANTINE_ROUNDS)
    quarantine.end("a")
    assert quarantine.believed([told, other]) == [told, other], "it has spoken for itself"
