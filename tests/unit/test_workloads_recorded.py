"""Recorded workloads: the rate told is the rate of the filters, and what cannot be used is named, never a traceback."""

import io
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from murmur_pubsub.errors import InputError
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.values import Value
from workloads.overlay import Sized, chain
from workloads.plan import Workload
from workloads.recorded import RecordedOptions, build_recorded, parse_event, read_recorded


def quotes(folder: Path, days: dict[str, int]) -> str:
    """A folder of quotes, newest first: of each symbol this many days, at prices that rise daily."""
    folder.mkdir(exist_ok=True)
    for number, (symbol, count) in enumerate(days.items()):
        lines = [
            f"[symbol,'{symbol}'],[close,{10 * number + day / 8}],[volume,{100 * (day * 7 % 50)}],[day,{day}]"
            for day in range(count, 0, -1)
        ]
        (folder / symbol).write_text("\n".join(lines))
    return str(folder)


def build(path: str, **options: object) -> Workload:
    return build_recorded(chain(Sized(3), 1), RecordedOptions(path=path, **options), 5)  # type: ignore[arg-type]


def plain_rate(workload: Workload) -> float:
    """The share of pairs of a publication and a subscription that match, by the filters' own evaluation."""
    filters = [parse_filter(text) for client in workload.clients for _, text in client.subscriptions]
    events = [event for client in workload.clients for _, _, event in client.publications]
    return sum(each.matches(event) for event in events for each in filters) / len(filters) / len(events)


@pytest.mark.parametrize("take", ["sample", "latest", "first"])
@pytest.mark.parametrize("wanted", [0.01, 0.03])
def test_the_rate_in_the_description_is_exactly_what_the_filters_match(
    tmp_path: Path, take: str, wanted: float
) -> None:
    # Ten files in rounds: any regular stride through the events would see some symbols only.
    path = quotes(tmp_path / "q", {f"S{number}": 100 if number else 20 for number in range(10)})
    workload = build(path, publications=700, subscriptions=200, matching_rate=wanted, take=take)
    assert workload.description["reached matching rate"] == round(plain_rate(workload), 6)
    assert workload.description["events the rate was measured on"] == 700


def test_a_sample_reaches_the_wanted_rate(tmp_path: Path) -> None:
    path = quotes(tmp_path / "q", {f"S{number}": 200 for number in range(10)})
    workload = build(path, publications=1_000, subscriptions=400, matching_rate=0.02)
    assert plain_rate(workload) == pytest.approx(0.02, rel=0.1)


def test_a_rate_beyond_what_the_category_allows_is_told_as_it_is(tmp_path: Path) -> None:
    path = quotes(tmp_path / "q", {f"S{number}": 50 for number in range(10)})
    workload = build(path, publications=500, subscriptions=100, matching_rate=0.9)
    assert workload.description["wanted matching rate"] == 0.9
    assert workload.description["reached matching rate"] == pytest.approx(0.1, abs=0.001)


@pytest.mark.parametrize("take", ["sample", "latest", "first"])
def test_more_publications_change_no_subscription(tmp_path: Path, take: str) -> None:
    path = quotes(tmp_path / "q", {"A": 90, "B": 90})
    few, many = (build(path, publications=count, take=take) for count in (20, 150))
    assert [client.subscriptions for client in few.clients] == [client.subscriptions for client in many.clients]


def test_each_way_of_taking_keeps_the_order_of_time(tmp_path: Path) -> None:
    path = quotes(tmp_path / "q", {"A": 40, "B": 5})
    taken = {}
    for take in ("first", "latest", "sample"):
        workload = build(path, publications=15, take=take, clients=1, publishers=1)
        events = [event for _, _, event in workload.clients[0].publications]
        taken[take] = [event["day"] for event in events if event["symbol"] == "A"]
        assert [event["day"] for event in events if event["symbol"] == "B"] == [1, 2, 3, 4, 5]
    assert taken["first"] == list(range(1, 11))
    assert taken["latest"] == list(range(31, 41))
    assert len(taken["sample"]) == 10
    assert taken["sample"] == sorted(taken["sample"], key=float)
    assert taken["sample"] not in (taken["first"], taken["latest"])


def test_publishers_beyond_the_clients_keep_their_symbols(tmp_path: Path) -> None:
    path = quotes(tmp_path / "q", {f"S{number}": 20 for number in range(10)})
    workload = build(path, publications=200, clients=2, publishers=5, rate_per_s=100.0, take="first")
    assert [client.publishers for client in workload.clients] == [(0, 2, 4), (1, 3)]
    owners: dict[object, list[int]] = {}
    for client in workload.clients:
        published = list(client.publications)
        assert [time_us for time_us, _, _ in published] == sorted(time_us for time_us, _, _ in published)
        for _, publisher, event in published:
            assert publisher in client.publishers
            owners.setdefault(event["symbol"], []).append(publisher)
    assert all(len(set(publishers)) == 1 for publishers in owners.values())
    times = sorted(time_us for client in workload.clients for time_us, _, _ in client.publications)
    assert times == [10_000 * number for number in range(200)]


def test_clients_attach_where_they_are_told(tmp_path: Path) -> None:
    path = quotes(tmp_path / "q", {"A": 40})
    workload = build(path, publications=10, clients=3, client_brokers=("b2", "b1"))
    assert [client.broker for client in workload.clients] == ["b2", "b1", "b2"]


def test_json_lines_of_mixed_events_keep_their_types_and_lacking_attributes_match_nothing(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    lines = [
        '{"kind": "it\'s", "size": 3, "wet": true}', '{"kind": "b", "size": 4.5, "note": "a\u2028b"}',
        '{"kind": "b"}', '{"size": 7, "kind": "b"}', "", '{"kind": "b", "size": "big"}',
    ]  # fmt: skip
    path.write_text("\n".join(lines * 4), encoding="utf-8")
    events = next(read_recorded(path))
    assert len(events) == 20
    assert events[0] == {"kind": "it's", "size": 3, "wet": True}
    assert events[1]["note"] == "a\u2028b"
    workload = build(
        str(path), publications=20, subscriptions=40, category="kind", ranges=("size",), publisher_by="kind"
    )
    assert workload.description["reached matching rate"] == round(plain_rate(workload), 6)
    assert any("'it''s'" in text for client in workload.clients for _, text in client.subscriptions)


def test_true_and_one_are_different_categories(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    path.write_text('{"k": true, "x": 1}\n{"k": 1, "x": 1}\n' * 20)
    workload = build(
        str(path), publications=40, subscriptions=60, category="k", ranges=(), publisher_by="k", matching_rate=1
    )
    texts = {text for client in workload.clients for _, text in client.subscriptions}
    assert texts == {"k = True", "k = 1"}
    assert workload.description["reached matching rate"] == plain_rate(workload) == 0.5


def test_many_pairs_are_measured_on_a_sample_and_the_description_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workloads.quantile_filters._PAIRS_MAX", 20_000)
    path = quotes(tmp_path / "q", {f"S{number}": 200 for number in range(4)})
    workload = build(path, publications=800, subscriptions=400, matching_rate=0.05)
    assert 0 < int(workload.description["events the rate was measured on"]) < 800
    assert float(workload.description["reached matching rate"]) == pytest.approx(plain_rate(workload), rel=0.2)


@pytest.mark.parametrize(
    "line",
    [
        "[close,nan]", "[close,inf]", "[close,1e999]", "[close,1_0]", "[close,٣]", "[close," + "9" * 5000 + "]",
        "[a,18446744073709551616]", "[a,1],[a,2]", '{"a": NaN}', '{"a": Infinity}', '{"a": 1' + "0" * 30 + "}",
        '{"a": "\\ud800"}', '{"\\ud800": 1}', '{"a": ' + "[" * 100_000, '{"a": {"b": 1}}', '{"a": [1]}',
    ],
)  # fmt: skip
def test_values_that_the_wire_cannot_carry_are_refused(line: str) -> None:
    with pytest.raises(InputError, match="quotes, line 7"):
        parse_event(line, "quotes, line 7")


def test_the_ends_of_64_bits_are_values() -> None:
    assert parse_event("[a,-9223372036854775808],[b,9223372036854775807]", "") == {"a": -(2**63), "b": 2**63 - 1}


@pytest.mark.parametrize("kind", ["xz", "gz", "bz2"])
def test_an_archive_that_is_cut_or_has_one_byte_wrong_is_named(tmp_path: Path, kind: str) -> None:
    content = "\n".join(f"[symbol,'A'],[close,{day * 7919 % 10_007}]" for day in range(2_000)).encode()
    path = tmp_path / f"quotes.tar.{kind}"
    with tarfile.open(path, f"w:{kind}") as archive:  # type: ignore[call-overload]
        member = tarfile.TarInfo("A")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    whole = path.read_bytes()
    assert [len(events) for events in read_recorded(path)] == [2_000]
    damaged = [whole[: len(whole) // 2]]
    for at in range(40, len(whole) - 20, len(whole) // 40):
        damaged.append(whole[:at] + bytes([whole[at] ^ 0x5A]) + whole[at + 1 :])
    for data in damaged:
        path.write_bytes(data)
        with pytest.raises(InputError) as caught:
            list(read_recorded(path))
        assert str(path) in caught.value.place


def test_hidden_files_and_links_in_folders_and_archives_are_passed_over(tmp_path: Path) -> None:
    folder = Path(quotes(tmp_path / "q", {"A": 3}))
    (folder / ".DS_Store").write_bytes(b"\xff\x00")
    assert [len(events) for events in read_recorded(folder)] == [3]
    path = tmp_path / "quotes.tar"
    with tarfile.open(path, "w") as archive:
        archive.add(folder / "A", "A")
        archive.add(folder / ".DS_Store", "._A")
        link = tarfile.TarInfo("B")
        link.type, link.linkname = tarfile.SYMTYPE, "nowhere"
        archive.addfile(link)
    assert [len(events) for events in read_recorded(path)] == [3]


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    folder = Path(quotes(tmp_path / "q", {"A": 3}))
    (folder / "B").write_bytes("[symbol,'é']".encode("latin-1"))
    with pytest.raises(InputError, match="UTF-8") as caught:
        list(read_recorded(folder))
    assert caught.value.place == str(folder / "B")


def test_a_broken_line_among_those_taken_is_named_by_file_and_line(tmp_path: Path) -> None:
    folder = Path(quotes(tmp_path / "q", {"A": 30}))
    lines = (folder / "A").read_text().split("\n")
    (folder / "A").write_text("\n".join([*lines[:11], "[symbol,'A'", *lines[11:]]))
    with pytest.raises(InputError) as caught:
        build(str(folder), publications=31)
    assert caught.value.place == f"{folder / 'A'}, line 12"


@pytest.mark.parametrize(
    ("options", "place", "found"),
    [
        ({"ranges": ("symbol",)}, "workload.ranges", "'symbol'"),
        ({"ranges": ("price",)}, "workload.ranges", "'price'"),
        ({"category": "name"}, "workload.category", "'name'"),
        ({"publisher_by": "name"}, "workload.publisher_by", "'name'"),
        ({"publications": 41}, "workload.publications", "41"),
        ({"rate_per_s": float("nan")}, "workload.rate_per_s", "nan"),
        ({"exponent": -1.0}, "workload.exponent", "-1.0"),
        ({"client_brokers": ("b9",)}, "workload.client_brokers", "'b9'"),
    ],
)
def test_an_impossible_option_is_named(tmp_path: Path, options: dict[str, object], place: str, found: str) -> None:
    path = quotes(tmp_path / "q", {"A": 40})
    with pytest.raises(InputError) as caught:
        build(path, **({"publications": 40} | options))
    assert (caught.value.place, caught.value.found) == (place, found)


@pytest.mark.parametrize("name", ["two words", "x-y", ""])
def test_an_attribute_that_no_filter_can_name_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "own.jsonl"
    path.write_text(f'{{"{name}": 1}}\n' * 5)
    with pytest.raises(InputError, match=r"workload\.category, workload\.ranges"):
        build(str(path), publications=5, category=name, ranges=(), publisher_by=name)


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: None])
def test_an_empty_folder_and_a_missing_path_are_named(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "there")
    with pytest.raises(InputError, match=r"workload\.path .*there"):
        list(read_recorded(tmp_path / "there"))


def test_the_real_quotes_reach_the_wanted_rate(data_directory: Path) -> None:
    path = str(data_directory / "padres_stockquotes.tar.xz")
    workload = build(path, publications=50_000, subscriptions=5_000, matching_rate=0.002)
    assert workload.description["events the rate was measured on"] == 50_000
    assert float(workload.description["reached matching rate"]) == pytest.approx(0.002, rel=0.05)
    symbols: dict[object, list[Mapping[str, Value]]] = {}
    for client in workload.clients:
        for _, _, event in client.publications:
            symbols.setdefault(event["symbol"], []).append(event)
    texts = [text for client in workload.clients for _, text in client.subscriptions]
    matched = sum(parse_filter(text).matches(event) for text in texts[::20] for event in symbols[text.split("'")[1]])
    assert matched / len(texts[::20]) / 50_000 == pytest.approx(0.002, rel=0.25)
