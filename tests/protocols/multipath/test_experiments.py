"""Publiy section 7: datasets, the in-process measures against the judge, uplinks, links and loads one by one."""

import itertools
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from murmur_pubsub.codec import Codec
from murmur_pubsub.deployment import LinkPlan, NodeSpec
from murmur_pubsub.errors import InputError
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.journal import NONE, DropReason, JournalWriter, Phase, RowKind
from murmur_pubsub.journal_rows import read_segment
from murmur_pubsub.links import LinkSpec
from murmur_pubsub.machine import Effect, Input, Machine, Received, Send
from murmur_virtual.virtual_runtime import VirtualRuntime
from murmuration.deployment.build_deployment import build
from murmuration.papers.lab.judged_run import RUNTIMES
from murmuration.papers.lab.results import PaperResult
from murmuration.papers.multipath import live
from murmuration.papers.multipath.run import MultipathNetwork, MultipathSpec, measure_multipath
from murmuration.runs.driver import FinishedRun, execute
from murmuration.scenario.load import check_scenario, load_scenario
from routing.multipath.load import Loads, UplinkMeter
from routing.multipath.messages import LoadExchange, OriginSubscriptions
from routing.multipath.overlay_maps import MasterOverlayMap
from routing.multipath.parameters import STRATEGIES, MultipathParameters
from routing.multipath.soft_links import SoftLinks
from spark_analysis.plain_judge import judge_plainly
from tests.papers.runs_here import RunsHere
from workloads.multipath_datasets import PUBLISHED, covering_dataset, read_wall_posts, social_dataset, zipf_dataset
from workloads.overlay import Tree, balanced

CHAIN = {"a": ["b"], "b": ["a", "c"], "c": ["b", "d"], "d": ["c", "e"], "e": ["d"]}


@pytest.mark.parametrize(("name", "brokers"), [("DT1", 120), ("DT2", 120), ("DT3", 250), ("DT4", 21), ("DT5", 21)])
def test_publiy_s7_figure_8_datasets_come_out_at_the_published_counts(name: str, brokers: int) -> None:
    dataset = zipf_dataset(name, balanced(Tree(brokers, 3), 1), 1)
    subscriptions, share = PUBLISHED[name]
    assert len(dataset.subscriptions) == len(set(dataset.subscriptions))
    assert abs(len(dataset.subscriptions) - subscriptions) < 0.02 * subscriptions
    reached = dataset.description["matching share"]
    assert isinstance(reached, float)
    assert abs(reached - share) < 0.015
    texts: dict[str, int] = {}
    for _, text in dataset.subscriptions:
        texts[text] = texts.get(text, 0) + 1
    matched = [
        texts.get(f"src = {attributes['src']} AND rank = {attributes['rank']}", 0)
        for _, attributes, _ in dataset.contents
    ]
    assert sum(matched) / len(matched) == pytest.approx(dataset.description["matching brokers a publication"], abs=0.01)


def test_publiy_s7_dt_c_has_families_that_cover_each_other() -> None:
    dataset = covering_dataset(balanced(Tree(20, 3), 1), 1, subscriptions=400)
    filters = [parse_filter(text) for _, text in dataset.subscriptions]
    for number in range(0, 400, 4):
        family = filters[number : number + 4]
        assert all(first.covers(second) for first, second in itertools.pairwise(family))
        assert not family[1].covers(family[0])
    matching = [sum(each.matches(attributes) for each in filters) for _, attributes, _ in dataset.contents[:300]]
    assert 0.02 < sum(matching) / len(matching) / len(filters) < 0.06


def test_publiy_s7_dt_fb_subscribes_to_friends_and_publishes_by_activity(tmp_path: Path) -> None:
    graph, wall = tmp_path / "graph.txt", tmp_path / "wall.tsv"
    graph.write_text("".join(f"{user} {user + step}\n" for user in range(60) for step in (1, 2, 3)))
    wall.write_text("src\tdst\ttimestamp\n" + "7\t8\t1\n" * 5 + "9\t8\t2\n")
    dataset = social_dataset(balanced(Tree(10, 3), 1), 1, graph, wall, subscriptions=200)
    assert len(dataset.subscriptions) == 200
    assert [weight for _, _, weight in dataset.contents] == [5.0, 1.0]
    wall.write_text("src\tdst\ttimestamp\n1\t2\t3\nx y\n")
    with pytest.raises(InputError, match="line 3"):
        read_wall_posts(wall)


def test_publiy_s7_the_scenario_is_the_dataset() -> None:
    loaded = load_scenario(Path("multipath"), ["workload.publications=50"])
    workload = build(loaded).workload
    assert sum(len(plan.subscriptions) for plan in workload.clients) == workload.description["subscriptions"]
    times = [time_us for plan in workload.clients for time_us, _, _ in plan.publications]
    assert sorted(times) == [int(number * 1e6 / 60) for number in range(50)]
    bad = load_scenario(Path("multipath"), ["workload.dataset=DT9"])
    with pytest.raises(InputError, match="DT9"):
        build(bad)


@pytest.mark.parametrize("strategy", ["S0", "S2"])
def test_publiy_s7_what_is_counted_in_process_is_what_the_judge_counts(strategy: str, tmp_path: Path) -> None:
    """The same run by its journal: deliveries, and those passed on by brokers that matched nothing."""
    spec = MultipathSpec("DT4", 21, strategy, fanout=8, seconds=20, warm_s=0, round_s=4)  # type: ignore[arg-type]
    network = MultipathNetwork(spec, tmp_path)
    network.begin_measuring(spec.seconds)
    network.publish_steadily(800, 40, 2)
    measures = network.finish()
    assert (measures.missing, measures.duplicate, measures.spurious) == (0, 0, 0)
    assert measures.required == measures.deliveries > 800
    journaled = 0
    for path in tmp_path.glob("*.seg"):
        _, rows = read_segment(path)
        delivered = rows[rows["kind"] == RowKind.DELIVER]
        journaled += int((delivered["hops"] > 0).sum())
    assert journaled == measures.deliveries
    assert not judge_plainly(tmp_path).duplicate
    assert sum(measures.hops) == measures.deliveries
    assert sum(measures.traffic) == measures.deliveries + measures.pure_forwards


@pytest.mark.slow
def test_publiy_s7_soft_links_raise_the_yield_and_shorten_paths() -> None:
    base, better = (
        measure_multipath(
            MultipathSpec("DT1", 120, strategy, seconds=3, warm_s=30, warm_rate_per_s=30, round_s=4, payload_bytes=10)
        )
        for strategy in ("S0", "S2")
    )
    assert base.required == better.required > 0
    for each in (base, better):
        assert (each.missing, each.duplicate, each.spurious) == (0, 0, 0)
    assert better.deliveries == base.deliveries
    assert better.system_yield > base.system_yield + 0.15
    assert better.mean_hops < 0.7 * base.mean_hops


def test_an_uplink_is_shared_by_all_links_of_a_node(tmp_path: Path) -> None:
    class Talker(Machine):
        message_types = (OriginSubscriptions,)

        def __init__(self) -> None:
            self.heard_us: list[int] = []

        def handle(self, input: Input, now_us: int) -> list[Effect]:
            if type(input) is Received:
                self.heard_us.append(now_us)
            return []

    numbers = {"a": 0, "b": 1, "c": 2}
    writer = JournalWriter(tmp_path, "run", 3)
    runtime = VirtualRuntime(1, writer, numbers, LinkSpec())
    uplink = LinkSpec(messages_per_s=100, queue_messages=4, on_overflow="drop")
    for name in numbers:
        runtime.add_node(NodeSpec(name, "broker", "", uplink=uplink if name == "a" else None), Talker())
    runtime.connect(LinkPlan("a", "b", LinkSpec()))
    runtime.run(until_us=10)
    table = OriginSubscriptions("a", 0, 1, (), 0, ())
    runtime.nodes["a"].perform([Send(peer, table) for peer in ("b", "c", "b", "c")], runtime.now_us)
    runtime.run()
    heard = [runtime.nodes[name].machine.heard_us for name in ("b", "c")]  # type: ignore[attr-defined]
    assert heard == [[10_010, 30_010], [20_010, 40_010]]
    writer.close()


def test_an_uplink_that_overflows_drops_and_says_so(tmp_path: Path) -> None:
    spec = MultipathSpec(
        "DT4", 21, "S0", rate_per_s=400, seconds=3, warm_s=0, uplink_messages_per_s=20, queue_messages=5, check=False
    )
    network = MultipathNetwork(spec, tmp_path)
    network.begin_measuring(spec.seconds)
    network.publish_steadily(1_200, 400, 2)
    measures = network.finish()
    assert measures.missing > 0
    assert measures.duplicate == measures.spurious == 0
    drops = 0
    for path in tmp_path.glob("*.seg"):
        _, rows = read_segment(path)
        drops += int((rows[rows["kind"] == RowKind.DROP]["value"] == DropReason.OVERFLOW).sum())
    assert drops > 100


def test_filters_in_a_list_survive_the_wire() -> None:
    codec = Codec((OriginSubscriptions,))
    filters = [parse_filter(text) for text in ("x = 1", "y > 2 AND s LIKE 'a%'", "FALSE")]
    table = OriginSubscriptions("b1", 0, 3, ["b2"], 0, filters)
    assert codec.decode(codec.encode(table)) == table


# ------------------------------------------------------------------------------------------------ parts
def test_publiy_s5_the_meter_tells_when_the_threshold_is_passed() -> None:
    meter = UplinkMeter(100, 0.8, 500_000)
    meter.add(40)
    assert not meter.above_threshold
    meter.add(1)
    assert meter.above_threshold
    meter.turn()
    assert meter.above_threshold, "the stretch before counts until this one is over"
    meter.turn()
    assert not meter.above_threshold
    assert not UplinkMeter(None, 0.8, 1).above_threshold


def test_publiy_s6_gain_is_publications_times_bypassed_brokers_times_load() -> None:
    mom = MasterOverlayMap("a", 4, CHAIN)
    links = SoftLinks(MultipathParameters())
    loads = Loads()
    assert links.gain("d", 10, mom, loads) == 10 * 2
    assert links.gain("b", 10, mom, loads) == 0, "a primary link bypasses no broker"
    loads.rates = {"b": 10, "c": 30, "d": 20}
    assert links.gain("d", 10, mom, loads) == 10 * 2 * (1 + 30 / 20 - 1)
    loads.rates = {"b": 20, "c": 20, "d": 20}
    assert links.gain("d", 10, mom, loads) == 10 * 2, "no broker is above the mean"


def test_publiy_s6_load_and_round_trips_travel_along_primary_links() -> None:
    loads = Loads()
    mom = MasterOverlayMap("b", 3, CHAIN)
    loads.take("c", LoadExchange(1_000, 400, 300, [["c", 7, 0], ["d", 9, 2_500], ["a", 99, 1]]), mom, 2_000)
    assert loads.rates == {"c": 7, "d": 9}, "a lies in another direction"
    assert loads.round_trips_us == {"c": 2_000 - 400 - 300, "d": 2_500}
    told = loads.exchange("a", 5, mom, 2_600)
    assert told == LoadExchange(2_600, 0, 0, [["b", 5, 0], ["c", 7, 1_300], ["d", 9, 2_500]])
    assert loads.exchange("c", 5, mom, 2_600) == LoadExchange(2_600, 1_000, 600, [["b", 5, 0]])
    assert loads.slowness(["c"]) == 1.0
    assert loads.slowness(["c", "d"]) == 1.0
    assert loads.slowness(["d"]) == 2_500 / 1_900
    loads.round_trips_us = {"c": 0, "d": 0}
    assert loads.slowness(["c", "d"]) == 1.0, "none is slower than another that takes no time"


def test_publiy_s6_rounds_promote_by_gain_and_keep_to_fanout_and_maxlinks() -> None:
    star = {"a": ["b"], "b": ["a", *"cdefgh"], **{leaf: ["b"] for leaf in "cdefgh"}}
    mom = MasterOverlayMap("a", 4, star)
    links = SoftLinks(MultipathParameters(fanout=3, maxlinks=6, cool_down_rounds=2))

    def turn(**sent: int) -> list[str]:
        links.sent = dict(sent)
        result = links.end_round(mom, {"b": None}, Loads(), {}, lambda peer: peer != "h")
        for peer in result.promoted:
            links.accepted(peer)
        links.silent = {}
        links.check_invariants(1, 0)
        return sorted(links.soft)

    assert turn(b=10) == []
    assert sorted(links.candidates) == ["c", "d", "e"]
    assert turn(b=10, c=5, d=7, e=6) == ["d", "e"], "room for two beside the primary link"
    assert sorted(links.candidates) == ["f", "g"], "c was discarded and cools down, h is not allowed"
    assert turn(b=10, d=1, e=5, f=4) == ["e", "f"]
    assert turn(b=10, e=5, f=0) == ["e", "f"], "a soft link without gain stays while no other wants its place"
    assert "c" in links.candidates
    assert turn(b=10, e=5, c=1) == ["c", "e"]
    assert links.trim(2, {})
    assert sorted(links.soft) == ["c"] or sorted(links.soft) == ["e"]


def test_publiy_s6_a_soft_link_that_bridges_takes_one_of_the_places_and_is_kept_without_gain() -> None:
    star = {"a": ["b"], "b": ["a", *"cde"], **{leaf: ["b"] for leaf in "cde"}}
    links = SoftLinks(MultipathParameters(fanout=3, maxlinks=6))
    links.soft = dict.fromkeys("cde")
    links.sent = {"d": 5, "e": 4}
    links.end_round(MasterOverlayMap("a", 4, star), {"b": None}, Loads(), {"c": None}, lambda _: False)
    assert list(links.soft) == ["c", "d"], "three links in all"


def test_publiy_s6_there_are_no_candidates_where_fanout_takes_all_links() -> None:
    mom = MasterOverlayMap("a", 4, CHAIN)
    links = SoftLinks(MultipathParameters(fanout=3, maxlinks=3))
    links.sent = {"b": 10}
    links.end_round(mom, {"b": None}, Loads(), {}, lambda _: True)
    assert not links.candidates


def test_publiy_s6_a_soft_link_that_does_not_answer_is_given_up() -> None:
    mom = MasterOverlayMap("a", 4, CHAIN)
    links = SoftLinks(MultipathParameters())
    links.candidates["c"] = links.opening["c"] = None
    assert links.accepted("c")
    links.end_round(mom, {"b": None}, Loads(), {}, lambda _: True)
    assert "c" in links.soft, "it has had no round yet in which to answer"
    links.end_round(mom, {"b": None}, Loads(), {}, lambda _: True)
    assert "c" not in links.soft


# ------------------------------------------------------------------------------------------------ live beside virtual
def test_live_arrivals_are_those_of_measured_publications_and_know_whether_they_were_wanted() -> None:
    """Publication 0 is of the warm-up; 1 comes to brokers 2, where it is wanted, and 3, which passes it on."""
    rows = pd.DataFrame(
        [
            (RowKind.PHASE, 0, NONE, NONE, 0, Phase.PUBLISHING, 1_000_000),
            (RowKind.PUBLISH, 1, 1, 0, 0, 0, 1_000_000),
            (RowKind.RECEIVE, 2, 1, 0, 1, 0, 1_100_000),
            (RowKind.DELIVER, 2, 1, 0, 1, 7, 1_100_000),
            (RowKind.PUBLISH, 1, 1, 1, 0, 0, 3_000_000),
            (RowKind.RECEIVE, 3, NONE, NONE, 1, 60, 3_050_000),
            (RowKind.RECEIVE, 3, 1, 1, 1, 0, 3_100_000),
            (RowKind.RECEIVE, 2, 1, 1, 2, 0, 3_200_000),
            (RowKind.DELIVER, 2, 1, 1, 2, 7, 3_200_000),
            (RowKind.DELIVER, 2, 1, 1, 2, 8, 3_200_000),
        ],
        columns=["kind", "node", "source", "sequence", "hops", "value", "time_us"],
    )
    found = live.measured_arrivals(rows, warm_s=2)
    assert found[["node", "hops", "matched"]].values.tolist() == [[3, 1, False], [2, 2, True]]


def test_live_comparison_gives_table_figure_and_criteria(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The live half is played in virtual time here, so the two must agree to the last publication."""

    def play_in_virtual_time(data: dict[str, Any], folder: Path, address: None) -> tuple[FinishedRun, dict[str, int]]:
        finished = execute(check_scenario(data | {"runtime": "virtual"}, "test"), folder, lambda *_: None)
        verdict = judge_plainly(folder / "journal")
        wrong = {name: len(getattr(verdict, name)) for name in ("missing", "duplicate", "spurious")}
        return finished, wrong | {"required": verdict.required}

    monkeypatch.setattr(live, "play_judged", play_in_virtual_time)
    specs = [
        live.LiveBrokersSpec(runtime, strategy, brokers=15, seconds=2, warm_s=12)
        for strategy in STRATEGIES
        for runtime in RUNTIMES
    ]
    result = PaperResult(scaled_down=False)
    runs = RunsHere(tmp_path).one_by_one(live.measure_live_brokers, specs, lambda _: live.LiveBrokers)
    live.add_live_brokers(result, runs, tmp_path)
    (table,) = result.tables
    for virtual, real in zip(table.rows[::2], table.rows[1::2], strict=True):
        assert [each for each in virtual if each != "virtual"] == [each for each in real if each != "live"]
    by_name = {each.name: each for each in result.criteria}
    assert by_name["live: yields apart from virtual time, points"].measured == 0
    assert by_name["live: missing, duplicate and spurious deliveries"].met
    assert result.figures[0].stat().st_size > 5_000
