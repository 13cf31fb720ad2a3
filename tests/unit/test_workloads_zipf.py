"""Zipf workloads: every option does what it says, and the rate in the description is the rate of the filters."""

import pickle
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from murmur_pubsub.errors import InputError
from murmur_pubsub.filter_parser import parse_filter
from workloads.interests import Interests
from workloads.overlay import Sized, Tree, balanced, chain
from workloads.plan import Workload
from workloads.resubscriptions import draw_changes
from workloads.zipf import ZipfOptions
from workloads.zipf_workload import build_zipf


def plain_rate(workload: Workload) -> float:
    """The share of pairs of a publication and a subscription that match, by the filters' own evaluation."""
    filters = [parse_filter(text) for client in workload.clients for _, text in client.subscriptions]
    events = [event for client in workload.clients for _, _, event in client.publications]
    return sum(each.matches(event) for event in events for each in filters) / len(filters) / len(events)


@given(
    integers=st.sampled_from([None, 2, 7, 1_000]),
    categories=st.sampled_from([0, 1, 5]),
    predicates=st.integers(1, 3),
    wanted=st.sampled_from([0.001, 0.1, 1.0]),
    seed=st.integers(0, 1_000),
)
@settings(max_examples=25)
def test_the_rate_in_the_description_is_exactly_what_the_filters_match(
    integers: int | None, categories: int, predicates: int, wanted: float, seed: int
) -> None:
    options = ZipfOptions(
        clients=3, subscribers_per_actor=10, publications=40, attributes=3, predicates=predicates,
        integers=integers, categories=categories, matching_rate=wanted,
    )  # fmt: skip
    workload = build_zipf(chain(Sized(2), 1), options, seed)
    assert workload.description["reached matching rate"] == round(plain_rate(workload), 6)
    assert workload.description["events the rate was measured on"] == 40


def test_integers_are_whole_numbers_in_events_and_filters() -> None:
    options = ZipfOptions(clients=2, publishers=2, publications=200, integers=100, matching_rate=0.1)
    workload = build_zipf(chain(Sized(2), 1), options, 3)
    events = [event for client in workload.clients for _, _, event in client.publications]
    assert {type(value) for event in events for value in event.values()} == {int}
    assert all(0 <= int(value) < 100 for event in events for value in event.values())
    assert not any("." in text for client in workload.clients for _, text in client.subscriptions)
    assert plain_rate(workload) == pytest.approx(0.1, rel=0.3)


def test_categories_are_popular_by_zipf_and_every_filter_asks_for_one() -> None:
    options = ZipfOptions(clients=1, publishers=1, publications=3_000, categories=4, exponent=1.0, matching_rate=0.05)
    client = build_zipf(chain(Sized(1), 1), options, 3).clients[0]
    drawn = [event["category"] for _, _, event in client.publications]
    assert sorted({str(value) for value in drawn}) == ["v0", "v1", "v2", "v3"]
    assert drawn.count("v0") / len(drawn) == pytest.approx(12 / 25, rel=0.1)  # 1 of 1 + 1/2 + 1/3 + 1/4
    assert all(text.startswith("category = 'v") for _, text in client.subscriptions)


def test_publishers_beyond_the_clients_share_them_in_order_of_time() -> None:
    options = ZipfOptions(clients=3, publishers=7, publications=100)
    clients = build_zipf(chain(Sized(2), 1), options, 3).clients
    assert [client.publishers for client in clients] == [(0, 3, 6), (1, 4), (2, 5)]
    for client in clients:
        published = list(client.publications)
        assert sorted({publisher for _, publisher, _ in published}) == list(client.publishers)
        assert [time_us for time_us, _, _ in published] == sorted(time_us for time_us, _, _ in published)
        assert published == list(client.publications) == list(pickle.loads(pickle.dumps(client)).publications)
    assert sum(len(list(client.publications)) for client in clients) == 100


def test_clients_without_publishers_publish_nothing() -> None:
    clients = build_zipf(chain(Sized(2), 1), ZipfOptions(clients=3, publishers=1, publications=10), 3).clients
    assert [len(list(client.publications)) for client in clients] == [10, 0, 0]
    assert [client.publishers for client in clients] == [(0,), (), ()]


def test_uniform_arrivals_of_several_publishers_take_turns() -> None:
    options = ZipfOptions(clients=4, publishers=4, publications=100, rate_per_s=400, arrival="uniform")
    workload = build_zipf(chain(Sized(2), 1), options, 3)
    times = sorted(time_us for client in workload.clients for time_us, _, _ in client.publications)
    assert {after - before for before, after in pairwise(times)} == {2_500}


def test_poisson_arrivals_have_the_rate_of_all_publishers_together() -> None:
    workload = build_zipf(chain(Sized(2), 1), ZipfOptions(publications=8_000, rate_per_s=400), 3)
    last_us = max(time_us for client in workload.clients for time_us, _, _ in client.publications)
    assert last_us == pytest.approx(20_000_000, rel=0.1)


def test_one_publishers_events_depend_on_no_other_publisher() -> None:
    few, many = (
        build_zipf(chain(Sized(2), 1), ZipfOptions(clients=4, publishers=count, publications=50 * count), 3)
        for count in (2, 4)
    )
    assert [event for _, _, event in few.clients[1].publications] != []
    rates = [ZipfOptions(clients=4, publishers=count, publications=50 * count, rate_per_s=None) for count in (2, 4)]
    first, second = (build_zipf(chain(Sized(2), 1), options, 3).clients[1] for options in rates)
    assert list(first.publications) == list(second.publications)
    assert [client.subscriptions for client in few.clients] == [client.subscriptions for client in many.clients]


def test_clients_attach_where_they_are_told() -> None:
    overlay = balanced(Tree(7, 3), 1)
    at_leaves = build_zipf(overlay, ZipfOptions(clients=8, clients_at="leaves"), 1)
    assert sorted({client.broker for client in at_leaves.clients}) == sorted(overlay.leaves)
    listed = build_zipf(overlay, ZipfOptions(clients=3, client_brokers=("b5", "b0")), 1)
    assert [client.broker for client in listed.clients] == ["b5", "b0", "b5"]
    with pytest.raises(InputError, match=r"workload\.client_brokers: found 'b7'"):
        build_zipf(overlay, ZipfOptions(client_brokers=("b0", "b7")), 1)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("clients", 0), ("subscriptions_per_subscriber", 0), ("publishers", 0), ("publications", 0), ("predicates", 6),
        ("integers", 1), ("integers", 2**53 + 1), ("categories", -1), ("exponent", -0.1), ("exponent", float("nan")),
        ("exponent", float("inf")), ("rate_per_s", 0.0), ("rate_per_s", float("nan")), ("rate_per_s", float("inf")),
        ("matching_rate", 0.0), ("matching_rate", 1.1), ("matching_rate", float("nan")),
    ],
)  # fmt: skip
def test_an_impossible_option_is_named(key: str, value: float) -> None:
    with pytest.raises(InputError) as caught:
        ZipfOptions(**{key: value})  # type: ignore[arg-type]
    assert caught.value.place == f"workload.{key}"
    assert str(value) in caught.value.found


def test_a_hundred_thousand_filters_are_all_measured() -> None:
    options = ZipfOptions(clients=10, subscribers_per_actor=10_000, publications=1_000, matching_rate=0.05)
    workload = build_zipf(chain(Sized(10), 1), options, 3)
    assert workload.description["subscriptions"] == 100_000
    assert float(workload.description["reached matching rate"]) == pytest.approx(0.05, rel=0.15)


def test_subscribers_change_their_minds_while_others_publish() -> None:
    options = ZipfOptions(
        clients=3, subscribers_per_actor=4, publishers=2, publications=400, rate_per_s=100.0, resubscriptions=60
    )
    workload = build_zipf(chain(Sized(2), 1), options, 5)
    assert workload == build_zipf(chain(Sized(2), 1), options, 5)
    assert (
        workload.clients[0].subscriptions
        == build_zipf(chain(Sized(2), 1), replace(options, resubscriptions=0), 5).clients[0].subscriptions
    ), "the filters of the beginning do not depend on later ones"
    again, others = 0, 0
    for client in workload.clients:
        held = Counter(client.subscriptions)
        withdrawn: dict[int, list[str]] = defaultdict(list)
        assert list(client.changes) == sorted(client.changes)
        for time_us, what, subscriber, text in client.changes:
            assert 0 <= time_us <= 5_000_000
            if what == "unsubscribe":
                assert held[subscriber, text] == 1
                withdrawn[subscriber].append(text)
            elif text in withdrawn[subscriber]:
                again += 1
            else:
                others += 1
            held[subscriber, text] += 1 if what == "subscribe" else -1
        assert held.total() == len(client.subscriptions), "each that was withdrawn has its successor"
    assert 40 < again + others <= 60
    assert min(again, others) > 10


def test_changes_of_mind_need_time_to_happen_in() -> None:
    with pytest.raises(InputError, match="0 without rate_per_s"):
        ZipfOptions(resubscriptions=1, rate_per_s=None)
    with pytest.raises(InputError, match="found -1"):
        ZipfOptions(resubscriptions=-1)


@pytest.mark.parametrize("integers", [None, 30])
@pytest.mark.parametrize("predicates", [1, 2])
def test_covered_filters_ask_for_a_part_of_what_an_earlier_one_asks_for(integers: int | None, predicates: int) -> None:
    options = ZipfOptions(
        clients=4, publications=400, attributes=3, predicates=predicates, integers=integers, categories=2,
        matching_rate=0.1, covered=0.6,
    )  # fmt: skip
    workload = build_zipf(chain(Sized(2), 1), options, 5)
    filters = [parse_filter(text) for client in workload.clients for _, text in client.subscriptions]
    covered = sum(any(other.covers(each) for other in filters[:at]) for at, each in enumerate(filters))
    assert covered == pytest.approx(0.6 * len(filters), abs=0.2 * len(filters))
    assert plain_rate(workload) == pytest.approx(0.1, rel=0.3)


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_a_share_of_covered_filters_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(InputError, match=r"workload\.covered: found .*; allowed: 0 to 1"):
        ZipfOptions(covered=share)


def test_of_two_equal_filters_of_a_subscriber_none_is_withdrawn() -> None:
    """There is no telling which of the two it would be."""
    others = [f"a0 > {number}" for number in range(40)]
    assert draw_changes({0: [(0, "a0 > 1"), (0, "a0 > 1")]}, others, 1_000_000, Random(1)) == {}
    assert draw_changes({0: [(0, "a0 > 1"), (1, "a0 > 1")]}, others, 1_000_000, Random(1))[0]


def test_parts_that_are_covered_lie_anywhere_in_what_covers_them() -> None:
    one = [(0.0,)] * 400
    interests = Interests([(0,)] * 400, one, None, 100.0, False, [(1.0,)] * 400, one).with_covered(1.0, Random(1))
    bounds = [low_and_high for (low_and_high,) in interests.bounds(10.0)]
    assert bounds[0] == (-5.0, 5.0)
    assert all(-5.0 <= low < high <= 5.0 for low, high in bounds)
    middles = [(low + high) / 2 for low, high in bounds]
    assert min(middles) < -1
    assert max(middles) > 1
