"""Workloads: what is generated is what was asked for, from one seed, and broken files are named by line."""

import pickle
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from murmur_pubsub.errors import InputError
from murmur_pubsub.filter_parser import parse_filter
from workloads.overlay import FromFile, Overlay, Sized, Tree, balanced, chain, from_file, random_tree, star
from workloads.plan import Workload
from workloads.recorded import RecordedOptions, build_recorded, parse_event, read_recorded
from workloads.social import SocialOptions, build_social, read_friendships
from workloads.zipf import ZipfOptions
from workloads.zipf_workload import build_zipf

QUOTE = (
    "[class,'STOCK'],[symbol,'YHOO'],[open,37.85],[high,37.99],[low,37.65],[close,37.90],"
    "[volume,11291000],[date,'28-Dec-04']"
)


def degrees(overlay: Overlay) -> list[int]:
    return [len(peers) for peers in overlay.neighbours.values()]


@given(st.integers(1, 60), st.integers(2, 6), st.integers(0, 1_000))
def test_trees_have_all_brokers_and_bounded_degree(brokers: int, degree: int, seed: int) -> None:
    for overlay in (balanced(Tree(brokers, degree), seed), random_tree(Tree(brokers, degree), seed)):
        assert len(overlay.brokers) == brokers
        assert overlay.is_tree
        assert max(degrees(overlay)) <= degree


def test_a_balanced_tree_is_filled_breadth_first() -> None:
    overlay = balanced(Tree(10, 3), 1)
    assert overlay.neighbours["b0"] == ["b1", "b2", "b3"]
    assert overlay.neighbours["b1"] == ["b0", "b4", "b5"]
    assert len(overlay.leaves) == 6


def test_chain_and_star() -> None:
    assert degrees(chain(Sized(4), 1)) == [1, 2, 2, 1]
    assert degrees(star(Sized(4), 1)) == [3, 1, 1, 1]
    assert chain(Sized(1), 1).edges == ()


@pytest.mark.parametrize(("make", "place"), [(lambda: Sized(0), "brokers"), (lambda: Tree(5, 1), "degree")])
def test_an_impossible_overlay_is_refused(make: object, place: str) -> None:
    with pytest.raises(InputError, match=f"overlay.{place}"):
        make()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("text", "place", "found"),
    [
        ("a b\nb c d\n", "line 2", "b c d"),
        ("a b\n\nb b\n", "line 3", "itself"),
        ("a b # fine\nb a\n", "line 2", "once more"),
        ("a b\nc d\n", "", "no way from a to c"),
        ("# nothing\n", "", "no links"),
    ],
)
def test_a_broken_edge_list_is_named_by_line(tmp_path: Path, text: str, place: str, found: str) -> None:
    path = tmp_path / "overlay.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=found) as caught:
        from_file(FromFile(str(path)), 1)
    assert str(path) in caught.value.place
    assert place in caught.value.place


def test_an_edge_list_with_a_cycle_is_an_overlay_but_no_tree(tmp_path: Path) -> None:
    path = tmp_path / "overlay.txt"
    path.write_text("a b\nb c\nc a\n")
    assert not from_file(FromFile(str(path)), 1).is_tree


def matching_rate(workload: Workload, events: int) -> float:
    """The share of (event, subscription) pairs that match, by the filters' own evaluation."""
    filters = [parse_filter(text) for client in workload.clients for _, text in client.subscriptions]
    published = [event for client in workload.clients for _, _, event in client.publications][:events]
    return sum(each.matches(event) for event in published for each in filters) / len(filters) / len(published)


@pytest.mark.parametrize("wanted", [0.01, 0.05, 0.3])
def test_zipf_reaches_the_wanted_rate_and_says_what_it_reached(wanted: float) -> None:
    options = ZipfOptions(clients=8, subscribers_per_actor=50, publications=800, matching_rate=wanted)
    workload = build_zipf(balanced(Tree(5, 3), 1), options, 3)
    measured = matching_rate(workload, 400)
    assert measured == pytest.approx(wanted, rel=0.2)
    assert workload.description["reached matching rate"] == pytest.approx(measured, rel=0.2)


def test_zipf_plans_can_be_walked_again_and_pickled() -> None:
    workload = build_zipf(chain(Sized(2), 1), ZipfOptions(clients=2, publishers=2, publications=50), 3)
    for client in workload.clients:
        first = list(client.publications)
        assert first == list(client.publications) == list(pickle.loads(pickle.dumps(client)).publications)
        assert [time_us for time_us, _, _ in first] == sorted(time_us for time_us, _, _ in first)
    assert sum(len(list(client.publications)) for client in workload.clients) == 50


def test_more_publications_change_no_subscription() -> None:
    overlay = chain(Sized(3), 1)
    few, many = (build_zipf(overlay, ZipfOptions(publications=count), 3) for count in (10, 1_000))
    assert [client.subscriptions for client in few.clients] == [client.subscriptions for client in many.clients]


def test_a_rate_of_null_publishes_at_once() -> None:
    workload = build_zipf(chain(Sized(1), 1), ZipfOptions(clients=1, publishers=1, publications=9, rate_per_s=None), 3)
    assert [time_us for time_us, _, _ in workload.clients[0].publications] == [0] * 9


def test_social_subscribes_everyone_to_their_friends(tmp_path: Path) -> None:
    path = tmp_path / "graph.txt"
    path.write_text("0 1\n1 2\n2 0\n2 3\n")
    workload = build_social(chain(Sized(2), 1), SocialOptions(path=str(path), posts=100), 1)
    held = sorted(each for client in workload.clients for each in client.subscriptions)
    assert held == sorted(
        (a, f"author = {b}") for a, b in [(0, 1), (1, 0), (1, 2), (2, 1), (2, 0), (0, 2), (2, 3), (3, 2)]
    )
    assert matching_rate(workload, 100) == pytest.approx(float(workload.description["reached matching rate"]), abs=1e-6)


@pytest.mark.parametrize(("text", "line"), [("0 1\n1 x\n", 2), ("0 1\n\n3 3\n", 3), ("0 1 2\n", 1)])
def test_a_broken_graph_file_is_named_by_line(tmp_path: Path, text: str, line: int) -> None:
    path = tmp_path / "graph.txt"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_friendships(path)
    assert caught.value.place == f"{path}, line {line}"


def test_a_padres_publication_has_typed_attributes() -> None:
    event = parse_event(QUOTE, "here")
    assert event["symbol"] == "YHOO"
    assert event["volume"] == 11_291_000
    assert type(event["volume"]) is int
    assert event["close"] == 37.9
    assert len(event) == 8


@pytest.mark.parametrize("line", ["[symbol,'A'", "[symbol,A b]", "symbol=A", "[a,1] [b,2]", '{"a": null}', '{"a": '])
def test_a_broken_publication_is_named(line: str) -> None:
    with pytest.raises(InputError, match=r"quotes\.txt, line 7"):
        parse_event(line, "quotes.txt, line 7")


def quotes_folder(folder: Path) -> Path:
    for number, symbol in enumerate(("AAA", "BBB", "CCC")):
        lines = [
            f"[class,'STOCK'],[symbol,'{symbol}'],[close,{10 + number + day / 10}],[volume,{1000 * day}]"
            for day in range(200, 0, -1)
        ]
        (folder / symbol).write_text("\n".join(lines))
    return folder


def test_recorded_publications_from_folder_and_archive_are_the_same(tmp_path: Path) -> None:
    folder = quotes_folder(tmp_path)
    with tarfile.open(tmp_path / "quotes.tar.xz", "w:xz") as archive:
        for symbol in ("AAA", "BBB", "CCC"):
            archive.add(folder / symbol, symbol)
    plain = list(read_recorded(tmp_path / "quotes.tar.xz"))
    (tmp_path / "quotes.tar.xz").rename(tmp_path.parent / f"{tmp_path.name}.tar.xz")
    assert plain == list(read_recorded(folder))
    assert plain[0][0]["volume"] == 1_000, "oldest first"


def test_recorded_filters_reach_the_wanted_rate_and_symbols_stay_with_one_publisher(tmp_path: Path) -> None:
    options = RecordedOptions(
        path=str(quotes_folder(tmp_path)),
        publications=450,
        subscriptions=300,
        matching_rate=0.05,
        publishers=2,
        clients=4,
    )
    workload = build_recorded(chain(Sized(3), 1), options, 5)
    assert workload.expected_publications == 450
    assert matching_rate(workload, 450) == pytest.approx(0.05, rel=0.35)
    owners: dict[object, set[int]] = {}
    for client in workload.clients:
        for _, publisher, event in client.publications:
            owners.setdefault(event["symbol"], set()).add(publisher)
    assert all(len(publishers) == 1 for publishers in owners.values())


def test_more_publications_than_recorded_are_refused(tmp_path: Path) -> None:
    options = RecordedOptions(path=str(quotes_folder(tmp_path)), publications=601)
    with pytest.raises(InputError, match="at most 600"):
        build_recorded(chain(Sized(3), 1), options, 5)


def test_the_real_quotes_are_read_whole(data_directory: Path) -> None:
    files = list(read_recorded(data_directory / "padres_stockquotes.tar.xz"))
    assert len(files) == 100
    assert sum(map(len, files)) == 245_190


def test_the_real_graph_gives_every_directed_friendship(data_directory: Path) -> None:
    friends = read_friendships(data_directory / "facebook_combined.txt")
    assert len(friends) == 4_039
    assert sum(map(len, friends.values())) == 176_468
