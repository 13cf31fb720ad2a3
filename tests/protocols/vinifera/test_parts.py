"""The parts of Vinifera, each alone: ring, hash, utility, primary attribute, regions, content table, balance."""

import itertools
import math
import random
from bisect import bisect_left

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from murmur_pubsub.errors import InputError
from murmur_pubsub.event import Event
from murmur_pubsub.filter import EVERYTHING
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.intervals import union
from murmur_pubsub.places import RingPlace
from routing.smallworld.content_table import ContentTable, Entry
from routing.smallworld.messages import GossipPeer
from routing.smallworld.peer_sampling import PeerSampling
from routing.smallworld.profile import attribute_key, pack_profile, unpack_profile
from routing.smallworld.quarantine import Quarantine
from routing.smallworld.ring import RING_SIZE, KnownRing, clockwise
from routing.smallworld.selection import NeighbourSelection
from routing.smallworld.subscription_regions import aggregate, coarse, from_wire, to_wire, within
from routing.vinifera.balance import Load, new_identifier
from routing.vinifera.hashing import AttributeDomain
from routing.vinifera.interests import OwnInterests
from routing.vinifera.router import VINIFERA
from tests.parameters import parameters_of

identifiers = st.integers(0, RING_SIZE - 1)
ranges = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)).map(lambda ends: (min(ends), max(ends))))
PLACE = RingPlace(5, base=4, digits=8, founds=True)
PERCENT = {"x": AttributeDomain("x", 0, 100), "y": AttributeDomain("y", 0, 100)}


def percent(value: float) -> int:
    return AttributeDomain("x", 0, 100).hash(value)


# -------------------------------------------------------------------------------------------------- ring
@given(own=identifiers, others=st.sets(identifiers, min_size=1, max_size=12), value=identifiers)
def test_vinifera_s4b2_the_destination_has_the_closest_identifier_at_or_above(
    own: int, others: set[int], value: int
) -> None:
    ring = KnownRing(own, {each: f"n{each}" for each in others})
    ordered = sorted({own, *others})
    closest = ordered[bisect_left(ordered, value) % len(ordered)]
    assert ring.next_hop(value) == (None if closest == own else f"n{closest}")


@given(own=identifiers, others=st.sets(identifiers, max_size=12), ends=st.tuples(identifiers, identifiers))
def test_vinifera_s4b2_showering_cuts_a_range_into_parts_that_go_the_way_of_their_values(
    own: int, others: set[int], ends: tuple[int, int]
) -> None:
    low, high = min(ends), max(ends)
    ring = KnownRing(own, {each: f"n{each}" for each in others})
    parts = ring.split_range(low, high)
    assert parts[0][0] == low
    assert parts[-1][1] == high
    assert all(before[1] + 1 == after[0] for before, after in itertools.pairwise(parts))
    for begin, end, hop in parts:
        assert ring.next_hop(begin) == ring.next_hop(end) == hop


# ------------------------------------------------------------------------------------- hash and profiles
@given(st.lists(st.one_of(st.integers(-(10**6), 10**6), st.floats(-1e6, 1e6)), min_size=2))
def test_vinifera_s4a_the_hash_keeps_the_order_of_numbers(values: list[float]) -> None:
    for domain in (AttributeDomain("x", -1_000, 1_000.5), AttributeDomain("x")):
        hashed = [domain.hash(value) for value in sorted(values)]
        assert hashed == sorted(hashed)
        assert all(0 <= each < RING_SIZE for each in hashed)


@given(st.one_of(st.integers(2**53, 2**54), st.floats(-1e6, 1e6)))
@example(9007199254740988)
@example(-3.2402094841344584)
def test_vinifera_s4a_the_hash_keeps_the_order_of_neighbours(value: float) -> None:
    for domain in (AttributeDomain("x", -1_000, 2**54), AttributeDomain("x")):
        for above in (value + 1, value + 3, value + 6, math.nextafter(value, math.inf)):
            assert above < value or domain.hash(value) <= domain.hash(above)


@given(st.lists(st.text(), min_size=2))
@example(["a\xff\xff\xff\xff\xff", "b"])
def test_vinifera_s4a_the_hash_keeps_the_order_of_strings(values: list[str]) -> None:
    for domain in (AttributeDomain("s", "a", "z"), AttributeDomain("s")):
        hashed = [domain.hash(value) for value in sorted(values)]
        assert hashed == sorted(hashed)
        assert all(0 <= each < RING_SIZE for each in hashed)


def test_vinifera_s4a_strings_are_mapped_to_the_whole_space() -> None:
    named = AttributeDomain("s", "a", "z")
    assert [named.hash(value) for value in ("", "a", "z", "zz")] == [0, 0, RING_SIZE - 1, RING_SIZE - 1]
    every = [AttributeDomain("s").hash(value) for value in ("", "@", "\x80", "\xff" * 6, "Ā")]
    assert every == [pytest.approx(RING_SIZE * part, abs=1) for part in (0, 1 / 4, 1 / 2, 1, 1)]


def test_vinifera_s4a_a_domain_is_mapped_to_the_whole_space() -> None:
    domain = AttributeDomain("temperature", -50, 50)
    assert (domain.hash(-50), domain.hash(50)) == (0, RING_SIZE - 1)
    assert domain.hash(0) == pytest.approx(RING_SIZE / 2, abs=1)


def test_a_value_outside_its_domain_is_clamped() -> None:
    domain = AttributeDomain("temperature", -50, 50)
    assert (domain.hash(-51), domain.hash(10**400)) == (0, RING_SIZE - 1)


@pytest.mark.parametrize(
    "ends", [(1, 1), (2, 1), ("b", "a"), (1, "z"), (None, 3), (True, False), ("same as", "same as!")]
)
def test_a_domain_whose_min_is_not_below_its_max_is_refused(ends: tuple[object, object]) -> None:
    with pytest.raises(InputError):
        AttributeDomain("broker.parameters.vinifera.attributes.x", *ends)


@pytest.mark.parametrize("ends", [(-math.inf, 0), (0, math.inf), (0, 10**400), (math.nan, 1)])
def test_a_domain_without_an_end_is_refused(ends: tuple[float, float]) -> None:
    with pytest.raises(InputError, match=r"a min below the max|at most 1\.7e308"):
        AttributeDomain("attributes.x", *ends)


@given(st.lists(st.floats(-1.7e308, 1.7e308), min_size=2, max_size=12))
def test_vinifera_s4a_the_hash_keeps_order_where_the_ends_are_farther_apart_than_any_float(values: list[float]) -> None:
    domain = AttributeDomain("x", -1.7e308, 1.7e308)
    hashed = [domain.hash(value) for value in sorted(values)]
    assert hashed == sorted(hashed)
    assert abs(domain.hash(0.0) - RING_SIZE // 2) <= 1
    assert abs(domain.hash(-0.85e308) - RING_SIZE // 4) <= 1


@given(st.dictionaries(st.integers(0, RING_SIZE - 1), ranges.filter(bool).map(union), max_size=4))
def test_a_profile_survives_packing(profile: dict[int, list[tuple[int, int]]]) -> None:
    assert unpack_profile(pack_profile(profile)) == {attribute: list(each) for attribute, each in profile.items()}
    assert unpack_profile(b"abc") == unpack_profile(bytes(4)) == {}, "no whole number, or an attribute without a count"


def test_vinifera_s4b1_utility_is_intersection_over_union_on_the_primary_attribute() -> None:
    mine, theirs = OwnInterests(PERCENT, random.Random(1)), OwnInterests(PERCENT, random.Random(1))
    mine.change([parse_filter("x BETWEEN 10 AND 30")])
    assert mine.utility(theirs.change([parse_filter("x BETWEEN 20 AND 40")])) == pytest.approx(1 / 3, abs=1e-6)
    assert mine.utility(theirs.change([parse_filter("y BETWEEN 10 AND 30")])) == 0
    assert mine.utility(theirs.change([parse_filter("x BETWEEN 10 AND 30 AND y > 3")])) == pytest.approx(1)


def test_vinifera_algorithm_1_the_primary_attribute_has_most_overlapping_candidates() -> None:
    interests, other = OwnInterests(PERCENT, random.Random(1)), OwnInterests(PERCENT, random.Random(1))
    interests.change([parse_filter("x BETWEEN 10 AND 20 AND y BETWEEN 10 AND 20")])
    on_x = [other.change([parse_filter(f"x = {value} AND y = 90")]) for value in (12, 14, 16)]
    on_y = [other.change([parse_filter(f"x = 90 AND y = {value}")]) for value in (12, 14, 16, 18, 19)]
    interests.rank([on_x[0], *on_y])
    assert interests.primary == attribute_key("y")
    interests.rank([*on_x, *on_x, on_y[0]])
    assert interests.primary == attribute_key("x")
    before = interests.primary
    assert (interests.rank([]), interests.primary) == (None, before), "where nobody wants the same it stays"


def test_nodes_agree_on_an_attribute_where_ranks_leave_open_which() -> None:
    interests = OwnInterests(PERCENT, random.Random(1))
    interests.change([parse_filter("x BETWEEN 10 AND 20 AND y BETWEEN 10 AND 20")])
    x, y = ([(percent(12), percent(14))], [(percent(12), percent(14))])
    first_x, first_y = (
        pack_profile({attribute_key("x"): x, attribute_key("y"): y}, attribute_key(first)) for first in ("x", "y")
    )
    for profiles, primary in (([first_x] * 3 + [first_y] * 2, "x"), ([first_x] * 2 + [first_y] * 3, "y")):
        profile = interests.rank(profiles)
        assert interests.primary == attribute_key(primary)
        assert profile is None or next(iter(unpack_profile(profile))) == attribute_key(primary), "others hear of it"
    assert interests.rank([first_x, first_y]) is None, "as many for one as for the other change nothing"
    only_x = pack_profile({attribute_key("x"): x}, attribute_key("x"))
    assert interests.rank([only_x] * 2 + [first_y] * 3) is None, "more of them overlap on x, but not twice as many"
    assert interests.rank([only_x] * 5 + [first_y] * 2) is not None
    assert interests.primary == attribute_key("x"), "more than twice as many"


def test_vinifera_s4b3_a_subscription_is_registered_on_one_attribute() -> None:
    interests = OwnInterests(PERCENT, random.Random(1))
    interests.change([parse_filter("x BETWEEN 10 AND 20 AND y > 5"), parse_filter("y = 3")])
    regions = interests.regions()
    assert len(regions) == 2
    assert (attribute_key("y"), parse_filter("TRUE")) in regions, "a filter without the primary attribute has its own"


def test_vinifera_s4b4_an_event_has_a_target_for_each_attribute() -> None:
    interests = OwnInterests(PERCENT, random.Random(1))
    event = Event(1, 1, 0, {"x": 50, "y": 0})
    assert interests.targets(event) == [(attribute_key("x"), percent(50)), (attribute_key("y"), 0)]


# ---------------------------------------------------------------------------------- regions and the table
def test_vinifera_s4b3_requests_on_one_attribute_are_aggregated() -> None:
    """Figure 2(b): [75, 85] and [80, 100] become [75, 100]."""
    everything = parse_filter("TRUE")
    regions = aggregate([{(1, everything): [(75, 85)]}, {(1, everything): [(80, 100)]}])
    assert regions == {(1, everything): [(75, 100)]}


def test_vinifera_s4b3_what_a_wider_request_covers_is_left_out() -> None:
    wide, narrow = parse_filter("y > 1"), parse_filter("y BETWEEN 3 AND 4")
    regions = aggregate([{(1, narrow): [(10, 20)]}, {(1, wide): [(5, 30)]}, {(2, narrow): [(10, 20)]}])
    assert regions == {(1, wide): [(5, 30)], (2, narrow): [(10, 20)]}
    numbers, filters = to_wire(regions)
    assert from_wire(numbers, filters) == regions


def test_where_more_filters_meet_than_the_parameter_has_all_events_of_their_ranges_are_asked_for() -> None:
    few = {(1, parse_filter("y > 1")): [(10, 20)], (1, parse_filter("y > 2")): [(15, 30), (50, 60)]}
    many = {(2, parse_filter(f"y > {least}")): [(least, least)] for least in (1, 2, 4)}
    assert coarse({**few, **many}, 2) == {**few, (2, EVERYTHING): [(1, 2), (4, 4)]}
    assert coarse(few, 2) is few
    assert within(many, {(2, EVERYTHING): [(0, 9)]})
    assert not within(many, {(2, EVERYTHING): [(0, 3)], (1, EVERYTHING): [(0, 9)]})


def test_vinifera_s4b4_events_go_to_neighbours_whose_whole_subscription_matches() -> None:
    table = ContentTable()
    table.install("n1", Entry(0, 1, {(1, parse_filter("y > 5")): [(10, 20)]}), 0)
    table.install("n2", Entry(0, 1, {(1, parse_filter("TRUE")): [(20, 30)]}), 0)
    assert table.destinations(1, 20, {"y": 9}) == ["n1", "n2"]
    assert table.destinations(1, 20, {"y": 3}) == ["n2"]
    assert table.destinations(1, 20, None) == ["n1", "n2"], "the baseline does not match"
    assert table.destinations(2, 20, {"y": 9}) == []


def test_vinifera_s4c_an_entry_that_is_not_confirmed_expires() -> None:
    table = ContentTable()
    regions = {(1, parse_filter("TRUE")): [(10, 20)]}
    table.install("n1", Entry(0, 1, regions), 0)
    table.install("n2", Entry(0, 1, regions), 0)
    table.confirm("n1", 0, 1, 3)
    table.confirm("n2", 0, 2, 3)  # another version than the one it has here
    assert table.expire(2)
    assert table.destinations(1, 15, {}) == ["n1"]
    table.check_invariants()


def test_an_entry_that_is_older_than_the_known_one_changes_nothing() -> None:
    table = ContentTable()
    newer, older = {(1, parse_filter("TRUE")): [(10, 20)]}, {(1, parse_filter("TRUE")): [(0, 5)]}
    assert table.install("n1", Entry(0, 2, newer), 0)
    assert not table.install("n1", Entry(0, 1, older), 0)
    assert table.destinations(1, 15, {}) == ["n1"]
    assert table.install("n1", Entry(1, 1, older), 0), "a new incarnation counts anew"
    assert table.destinations(1, 15, {}) == []


# ------------------------------------------------------------------------------ selection and sampling
def _peers(count: int, seed: int = 1) -> dict[str, GossipPeer]:
    rng = random.Random(seed)
    return {
        f"n{number}": GossipPeer(f"n{number}", 0, rng.randrange(RING_SIZE), bytes([number % 7]))
        for number in range(count)
    }


@given(seed=st.integers(0, 10_000), count=st.integers(1, 40), small_world=st.integers(0, 4), friends=st.integers(0, 6))
def test_vinifera_s4b1_a_node_selects_ring_small_world_and_friend_links(
    seed: int, count: int, small_world: int, friends: int
) -> None:
    peers, own = _peers(count, seed), seed
    selection = NeighbourSelection(small_world, friends, random.Random(seed), lambda profile: profile[0])
    chosen = selection.select(own, peers, {})
    assert len(chosen) == len(set(chosen)) == min(count, 2 + small_world + friends) or count == 1
    nearest = {
        min(peers.values(), key=lambda peer: clockwise(peer.identifier, own)).name,
        min(peers.values(), key=lambda peer: clockwise(own, peer.identifier)).name,
    }
    assert set(selection.ring) == nearest <= set(chosen)
    if friends and not small_world:
        best = sorted((peers[name].profile[0] for name in peers if name not in nearest), reverse=True)[:friends]
        assert sorted((peers[name].profile[0] for name in chosen if name not in nearest), reverse=True) == best


def test_vinifera_s4b1_a_peer_is_preferred_that_is_a_better_friend_than_one_that_was_chosen() -> None:
    selection = NeighbourSelection(0, 1, random.Random(1), lambda profile: profile[0])
    peers = {f"n{at}": GossipPeer(f"n{at}", 0, at, bytes([3])) for at in (10, 500, RING_SIZE - 10)}
    assert set(selection.select(0, peers, {})) == set(peers)
    assert selection.prefers(0, GossipPeer("better", 0, 600, bytes([4])))
    assert not selection.prefers(0, GossipPeer("as good", 0, 600, bytes([3])))
    assert selection.prefers(0, GossipPeer("nearer", 0, 5, bytes([0])))


def test_vinifera_s4b1_small_world_links_are_nearer_more_often() -> None:
    """Kleinberg: as many links to distances from 1/1,000 to 1/100 of the ring as from 1/100 to 1/10."""
    peers = {f"n{at}": GossipPeer(f"n{at}", 0, at * (RING_SIZE // 1_000), b"") for at in range(1, 1_000)}
    distances = []
    for seed in range(400):
        selection = NeighbourSelection(1, 0, random.Random(seed), lambda profile: 0.0)
        *_, link = selection.select(0, peers, {})
        if link not in selection.ring:
            distances.append(clockwise(peers[link].identifier, 0) / RING_SIZE)
    near = sum(0.002 < distance < 0.02 for distance in distances)
    far = sum(0.02 < distance < 0.2 for distance in distances)
    assert near == pytest.approx(far, rel=0.35)


def test_peer_sampling_forgets_a_peer_that_does_not_answer_and_keeps_its_size() -> None:
    sampling = PeerSampling("me", 4, 3, random.Random(1))
    for name, peer in _peers(6).items():
        sampling.add(peer, 0 if name == "n0" else 1)
    assert len(sampling) == 4
    oldest, sent = sampling.begin(5, ("me", 0, 1, b"", 0, 0))  # type: ignore[misc]
    assert oldest == "n0"
    assert len(sent) == 3
    sampling.end([(*peer, 0) for peer in _peers(30, 2).values()], 5)
    assert len(sampling) == 4
    sampling.check_invariants()


# ---------------------------------------------------------------------------------------------- balance
def test_vinifera_s4b5_a_new_identifier_halves_the_successors_load() -> None:
    load = Load()
    assert load.events == 0
    for value in (100, 200, 300, 400):
        load.add(value)
    assert load.median(500) == 200
    assert new_identifier(50, 500, load.median(500)) == 200
    assert new_identifier(50, 500, 500) is None, "most events have the last value of its range: no place takes half"
    assert new_identifier(250, 500, 200) is None, "the median is not between the two"
    assert new_identifier(499, 500, 500) is None
    load.forget_half()
    assert load.events == 2
    load.become(7)
    assert (load.events, load.median(500)) == (7, 500), "what is remembered of the former range counts no more"


# -------------------------------------------------------------------------------------------- bad input
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"degree": 10, "small_world_links": 4, "friend_links": 5}, "4 small-world and 5 friend links of degree 10"),
        ({"degree": 1}, "at least 2"),
        ({"friends": 3}, "an unknown key"),
        ({"friend_links": "many"}, "a valid integer"),
        ({"view": 3}, "at most 3, the view"),
        ({"view": 0}, "at least 1"),
        ({"beta": -1}, "from 0 on"),
        ({"balance_rounds": 0}, "from 1 on"),
        ({"attributes": ["x"]}, "a mapping of keys"),
        ({"attributes": {"x": {"min": 1}}}, "min"),
        ({"attributes": {"x": {"min": 9, "max": 1}}}, "a min below the max"),
    ],
)
def test_parameters_that_cannot_be_are_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        parameters_of(VINIFERA, given)


# -------------------------------------------------------------------------------------------------- quarantine
def test_hearsay_of_a_failed_peer_is_believed_if_somebody_has_heard_it_well_after_it_failed() -> None:
    quarantine = Quarantine()
    quarantine.begin("a", 1, round=5)
    quarantine.begin_round(9)

    def believed(incarnation: int, age: int) -> bool:
        told = ["a", incarnation, 0, b"", 0, age]
        return quarantine.believed([told]) == [told]

    assert not believed(1, 4), "when it failed"
    assert not believed(1, 2), "two rounds later: rounds of nodes differ"
    assert believed(1, 1)
    assert believed(2, 4), "another incarnation"
    quarantine.begin_round(17)
    assert believed(1, 12), "its time is over"
