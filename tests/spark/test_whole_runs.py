"""Whole analyses of small runs: verdicts, findings, tables and reports."""

import base64
import hashlib
import json
import random
import re
import struct
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from murmur_pubsub.errors import InputError
from murmur_pubsub.journal import DropReason, Phase, RowKind
from murmur_pubsub.journal_format import HEADER_BYTES, ROW
from murmuration.results.parquet_copy import copy_tables
from murmuration.runs.driver import execute
from murmuration.scenario.load import load_scenario
from murmuration.zoo.split_run import split_by_node
from spark_analysis.main import analyze, report
from spark_analysis.tables import SMALL_TABLES, AnalysisFolder
from spark_analysis.verdict import COUNTS
from tests.spark import plain_metrics as plain
from tests.spark.run_folder import RunFolder

pytestmark = pytest.mark.spark
ROOT = Path(__file__).parents[2]
BROKERS, CLIENTS = 5, 10


def _right_run(folder: Path) -> Path:
    """A chain of five brokers; a subscriber at every client wants one of three values; nothing goes wrong.

    Copies are lost and sent again on one link, which no subscriber loses by.
    """
    rng = random.Random("right run")
    run = RunFolder(folder, BROKERS, CLIENTS)
    run.phase(0, Phase.STARTING)
    run.phase(100, Phase.SUBSCRIBING)
    for number in range(CLIENTS):
        run.subscribe(f"c{number}", 200 + number, number, f"a = {number % 3}")
    run.settled(1_000, 300)
    run.phase(2_000, Phase.PUBLISHING)
    for sequence in range(60):
        value, at = rng.randrange(3), 2_000 + 1_000 * sequence
        run.publish("c0", at, 7, sequence, {"a": value})
        run.hop("c0", "b0", at, at + 50, 7, sequence, kind=3)
        for broker in range(BROKERS - 1):
            at += 100
            if broker == 2 and sequence % 10 == 0:
                run.hop("b2", "b3", at, None, 7, sequence)
                run.row("b2", at, RowKind.DROP, "b3", source=7, sequence=sequence, value=DropReason.LOSS)
            run.hop(f"b{broker}", f"b{broker + 1}", at, at + rng.randrange(5, 40_000), 7, sequence)
        for number in range(CLIENTS):
            if number % 3 == value:
                run.deliver(f"c{number}", at + rng.randrange(1, 900_000), 7, sequence, number, number % BROKERS)
    run.row("c2", 1_500, RowKind.LAG, value=9_999)  # before publishing: it makes no delay of an event longer
    run.row("c3", 5_000, RowKind.LAG, value=123)
    run.row("b1", 5_000, RowKind.PROTOCOL, size=9, value=4)
    run.phase(70_000, Phase.DRAINING)
    run.phase(90_000, Phase.STOPPED)
    return run.finish()


@pytest.fixture(scope="module")
def right_run(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    run = _right_run(tmp_path_factory.mktemp("right") / "run")
    return run, analyze(run)


def _table(run: Path, name: str) -> pd.DataFrame:
    return AnalysisFolder(run).read(name)


def test_a_right_run_is_valid(right_run: tuple[Path, dict[str, Any]]) -> None:
    run, verdict = right_run
    rows = plain.all_rows(run / "journal")
    delivered = len(plain.of(rows, RowKind.DELIVER))
    expected: dict[str, Any] = dict.fromkeys(COUNTS, 0) | {
        "required": delivered, "delivered": delivered, "published": 60, "delivery_rate": 1.0,
        "explained": 0, "explained_by_tables": 0,
        "faults_took_effect": 0, "faults_not_exercised": 0, "faults_failed": 0,
        "kills_of_processes": 0, "kills_in_process": 0,
        "late": 0, "recovery_us": None, "catch_up_us": None, "delay_live_p99_us": None,
        "delay_caught_up_p99_us": None, "promise": "best_effort", "expectations": [],
        "verdict": "valid", "finding": None,
        "reason": "every required delivery was made, once, in order, and no other",
    }  # fmt: skip
    assert verdict == expected
    assert AnalysisFolder(run).verdict() == verdict
    assert len(_table(run, "findings")) == 0


def test_delays_are_those_counted_by_hand(right_run: tuple[Path, dict[str, Any]]) -> None:
    run, _ = right_run
    rows = plain.all_rows(run / "journal")
    for name, delays_us in (
        ("delivery_delay", plain.delivery_delays_us(rows, plain.events_of(run / "journal"))),
        ("hop_latency", plain.hop_latencies_us(rows, BROKERS)),
    ):
        only = _table(run, name).iloc[0]
        assert only["count"] == len(delays_us)
        assert (only["p50_us"], only["p90_us"], only["p99_us"], only["max_us"]) == plain.quantiles_us(delays_us)
        cdf = _table(run, f"{name}_cdf")
        assert cdf["share"].is_monotonic_increasing
        assert cdf["share"].iloc[-1] == 1
        assert list(cdf["delay_us"]) == sorted({plain.four_digits(each) for each in delays_us})


def test_messages_drops_and_hops_are_those_counted_by_hand(right_run: tuple[Path, dict[str, Any]]) -> None:
    run, _ = right_run
    rows = plain.all_rows(run / "journal")
    kinds = _table(run, "messages_by_kind")
    columns = zip(kinds["message_kind"], kinds["sent"], kinds["bytes"], kinds["received"], strict=True)
    assert {kind: (sent, size, received) for kind, sent, size, received in columns} == plain.messages(rows)
    assert dict(zip(kinds["message_kind"], kinds["name"], strict=True)) == {3: "Publication", 16: "kind 16"}
    drops = _table(run, "drops")
    assert dict(zip(drops["reason"], drops["messages"], strict=True)) == plain.drops(rows) == {"loss": 6}
    hops = _table(run, "hop_count_cdf")
    for number, count in zip(hops["hops"], hops["count"], strict=True):
        assert count == sum(row["hops"] == number for row in plain.of(rows, RowKind.DELIVER))
    assert list(hops["hops"]) == sorted({row["hops"] for row in plain.of(rows, RowKind.DELIVER)})


def test_brokers_forwarding_and_load_are_those_counted_by_hand(right_run: tuple[Path, dict[str, Any]]) -> None:
    run, _ = right_run
    rows = plain.all_rows(run / "journal")
    home = {node: node if node < BROKERS else (node - BROKERS) % BROKERS for node in range(BROKERS + CLIENTS)}
    expected = plain.broker_events(rows, home, BROKERS)
    brokers = _table(run, "brokers")
    columns = ("node", "events", "pure_forwarder", "interested")
    found = {node: tuple(rest) for node, *rest in zip(*(brokers[name] for name in columns), strict=True)}
    assert found == expected
    assert list(brokers["load"]) == [expected[node][0] / 60 for node in range(BROKERS)]
    pure, wanted = (sum(counts[part] for counts in expected.values()) for part in (1, 2))
    forwarding = _table(run, "forwarding").iloc[0]
    assert (forwarding["pure_forwarders"], forwarding["broker_deliveries"]) == (pure, wanted)
    assert pure > 0
    assert forwarding["yield"] == pytest.approx(wanted / (wanted + pure))
    copies = [row for row in plain.of(rows, RowKind.RECEIVE) if row["node"] < BROKERS]
    interested = {(plain.event(row), home[row["node"]]) for row in plain.of(rows, RowKind.DELIVER)}
    unwanted = sum((plain.event(row), row["node"]) not in interested for row in copies)
    assert forwarding["receptions"] == len(copies)
    assert forwarding["traffic_overhead"] == pytest.approx(unwanted / len(copies))
    load_cdf = _table(run, "load_cdf")
    loads = Counter(expected[node][0] / 60 for node in range(BROKERS))
    assert list(zip(load_cdf["load"], load_cdf["count"], strict=True)) == sorted(loads.items())


def test_the_course_of_the_run_is_that_counted_by_hand(right_run: tuple[Path, dict[str, Any]]) -> None:
    run, _ = right_run
    rows = plain.all_rows(run / "journal")
    rates = _table(run, "rates").iloc[0]
    assert (rates["begin_us"], rates["end_us"], rates["publications"]) == (2_000, 70_000, 60)
    assert rates["publications_per_second"] == pytest.approx(60 / 0.068)
    within = [row for row in plain.of(rows, RowKind.DELIVER) if 2_000 <= row["time_us"] < 70_000]
    assert rates["deliveries"] == len(within)
    traffic = _table(run, "traffic")
    for column, kind in (("published", RowKind.PUBLISH), ("sent", RowKind.SEND), ("received", RowKind.RECEIVE)):
        assert traffic[column].sum() == len(plain.of(rows, kind))
    width_us = AnalysisFolder(run).summary()["bucket_us"]
    sent = {at: n for at, n in zip(traffic["bucket_us"], traffic["sent"], strict=True) if n}
    buckets = [row["time_us"] // width_us * width_us for row in plain.of(rows, RowKind.SEND)]
    assert sent == {at: buckets.count(at) for at in buckets}
    assert set(_table(run, "delivery_rate")["delivery_rate"]) == {1.0}
    assert _table(run, "lag").iloc[0].to_dict() == {"node": BROKERS + 3, "name": "c3", "lag_us_max": 123}
    assert _table(run, "protocol_records").iloc[0].to_dict() == {
        "topic": 9, "rows": 1, "value_sum": 4, "value_max": 4,
    }  # fmt: skip
    assert list(_table(run, "phases")["phase"]) == [phase.name.lower() for phase in Phase]
    by_kind = _table(run, "rows_by_kind")
    assert by_kind["rows"].sum() == len(rows)


def test_every_table_is_there_as_parquet_and_csv(right_run: tuple[Path, dict[str, Any]]) -> None:
    run, _ = right_run
    for name in (*SMALL_TABLES, "findings"):
        frame = pd.read_csv(run / "analysis" / f"{name}.csv")
        assert list(frame.columns) == list(_table(run, name).columns)


def test_the_report_needs_nothing_but_itself(right_run: tuple[Path, dict[str, Any]]) -> None:
    run, _ = right_run
    page = (run / "report.html").read_text()
    assert "Valid: every subscriber got what it had to get" in page
    assert page.count('class="chart"') == 7
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    for script in re.findall(r"<script>(.*?)</script>", page, re.DOTALL):
        assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() in policy[1]
    assert not re.search(r"(?:src|href)=[\"'](?!data:)", page)
    assert "name: built" in page


def test_a_report_can_be_written_anew_without_spark(right_run: tuple[Path, dict[str, Any]]) -> None:
    run, _ = right_run
    before = (run / "report.html").read_text()
    (run / "report.html").unlink()
    assert report(run) == run / "report.html"
    assert (run / "report.html").read_text() == before


def test_a_run_that_was_not_analysed_has_no_report(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run").finish()
    with pytest.raises(InputError, match="murmur analyze"):
        report(run)


# --------------------------------------------------------------------------------------- what goes wrong
@pytest.fixture(scope="module")
def wrong_run(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """One finding of each kind, and subscriptions that come too late, end too early or never settle."""
    run = RunFolder(tmp_path_factory.mktemp("wrong") / "run", brokers=2, clients=2, grace_us=1_000, rows_per_segment=2)
    for subscriber in range(5):
        run.subscribe("c1", 10, subscriber, "x > 0")
    run.subscribe("c0", 10, 6, "x > 0")
    run.settled(100, 10)
    run.subscribe("c0", 5_000, 7, "x > 0")  # never settles: may get, need not
    for sequence in range(3):
        at = 1_000 * (sequence + 1)
        run.publish("c0", at, 3, sequence, {"x": sequence + 1})
    order = {
        0: [0, 1, 2],
        1: [0, 2],  # 1 is missing
        2: [0, 1, 1, 2, 2, 2],  # three copies too many
        3: [0, 2, 1],  # 1 comes after 2
        4: [0, 1, 2, 9],  # 9 was never published
    }
    for subscriber, sequences in order.items():
        for number, sequence in enumerate(sequences):
            run.deliver("c1", 6_000 + number, 3, sequence, subscriber)
    run.subscribe("c0", 2_500, 6, "x > 0", withdrawn=True)  # a grace of 1,000: only the first is required
    run.deliver("c0", 6_000, 3, 0, 6)
    run.deliver("c0", 6_001, 3, 2, 6)  # on its way while the withdrawal was
    run.publish("c0", 6_500, 3, 3, {"x": 0})
    run.deliver("c0", 6_600, 3, 3, 7)  # x > 0 does not match
    run.restart("c1", 1)
    run.publish("c1", 7_000, 4, 0, {"x": 5})
    for subscriber in range(5):
        run.deliver("c1", 7_100, 4, 0, subscriber)
    return run.finish(), analyze(run.folder)


def _findings(run: Path, kind: str) -> list[dict[str, Any]]:
    table = _table(run, "findings")
    return [
        {str(name): value for name, value in row.items()} for row in table[table["finding"] == kind].to_dict("records")
    ]


def test_the_wrong_run_is_invalid_and_counted(wrong_run: tuple[Path, dict[str, Any]]) -> None:
    _, verdict = wrong_run
    counts = {name: verdict[name] for name in ("missing", "duplicate", "spurious", "out_of_order")}
    assert counts == {"missing": 1, "duplicate": 3, "spurious": 2, "out_of_order": 1}
    assert verdict["verdict"] == "invalid"
    assert verdict["required"] == 5 * 4 + 1
    assert verdict["published"] == 5


def test_a_missing_delivery_is_named(wrong_run: tuple[Path, dict[str, Any]]) -> None:
    (found,) = _findings(wrong_run[0], "missing")
    assert (found["event"], found["subscriber"], found["client"]) == ("3:1", 1, "c1")
    assert (found["published_us"], json.loads(found["attributes"])) == (2_000, {"x": 2})
    assert pd.isna(found["delivered_us"])
    assert found["detail"] == "wanted by x > 0"


def test_a_duplicate_is_named_and_counted(wrong_run: tuple[Path, dict[str, Any]]) -> None:
    found = {each["event"]: each for each in _findings(wrong_run[0], "duplicate")}
    assert {event: (each["subscriber"], each["count"]) for event, each in found.items()} == {
        "3:1": (2, 1),
        "3:2": (2, 2),
    }
    assert found["3:2"]["detail"] == "delivered 3 times"


def test_a_spurious_delivery_is_named(wrong_run: tuple[Path, dict[str, Any]]) -> None:
    found = {each["event"]: each for each in _findings(wrong_run[0], "spurious")}
    assert {event: (each["subscriber"], each["client"], each["detail"]) for event, each in found.items()} == {
        "3:9": (4, "c1", "never published"),
        "3:3": (7, "c0", "no subscription of this subscriber matches"),
    }


def test_an_overtaken_delivery_is_named(wrong_run: tuple[Path, dict[str, Any]]) -> None:
    (found,) = _findings(wrong_run[0], "out_of_order")
    assert (found["event"], found["subscriber"], found["client"]) == ("3:1", 3, "c1")
    assert found["detail"] == "delivered after 3:2"


def test_the_report_of_a_wrong_run_lists_the_findings(wrong_run: tuple[Path, dict[str, Any]]) -> None:
    page = (wrong_run[0] / "report.html").read_text()
    assert "Invalid: deliveries went wrong." in page
    assert "never published" in page
    assert "did not record messages between nodes" in page


def test_a_run_cut_short_is_judged_as_far_as_it_went(spark: SparkSession, tmp_path: Path) -> None:
    """Every writer is killed: segments keep their unwritten rows, and one row is half written."""
    run = RunFolder(tmp_path / "run")
    run.subscribe("c1", 10, 1, "x > 0")
    run.settled(100, 10)
    run.publish("c0", 1_000, 0, 0, {"x": 1})
    run.deliver("c1", 1_500, 0, 0, 1)
    run.publish("c0", 2_000, 0, 1, {"x": 1})
    segment = run.folder / "journal" / "c1-0-00000.seg"
    with segment.open("r+b") as opened:
        opened.seek(HEADER_BYTES + 2 * ROW.size)
        opened.write(struct.pack("<qqq", 2_500, 1, 1))
    (run.folder / "journal" / "b0-1-00000.seg").write_bytes(b"")
    verdict = analyze(run.finish("interrupted", close=False))
    assert verdict["verdict"] == "unknown"
    assert verdict["reason"] == "the run was cut short (its status is interrupted)"
    assert (verdict["missing"], verdict["delivered"], verdict["required"]) == (1, 1, 2)
    assert "cut short" in (run.folder / "report.html").read_text()


@pytest.mark.slow
def test_a_copy_of_the_tables_by_spark_says_what_that_of_pandas_says(right_run: tuple[Path, dict[str, Any]]) -> None:
    run, _ = right_run
    copies = []
    for with_spark in (True, False):
        place = copy_tables(run, with_spark)
        copies.append({path.name: pd.read_parquet(path) for path in place.iterdir()})
    by_spark, by_pandas = copies
    assert set(by_spark) == set(by_pandas)
    for name, copied in by_spark.items():
        lines = [sorted(each.to_json(orient="records", lines=True).splitlines()) for each in (copied, by_pandas[name])]
        assert lines[0] == lines[1], name


@pytest.mark.slow
def test_spark_submit_prints_the_verdict(tmp_path: Path) -> None:
    """From another working directory, with nothing on the path: the packages are found all the same."""
    run = RunFolder(tmp_path / "run")
    run.subscribe("c1", 10, 1, "x > 0")
    run.settled(100, 10)
    run.publish("c0", 1_000, 0, 0, {"x": 1})
    run.deliver("c1", 1_500, 0, 0, 1)
    folder = run.finish()
    submit = Path(sys.executable).parent / "spark-submit"
    if not submit.exists():
        pytest.skip("spark-submit is not beside this Python")
    done = subprocess.run(
        [str(submit), "--master", "local[1]", str(ROOT / "spark_analysis" / "main.py"), str(folder)],
        cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2_000:]
    assert json.loads(done.stdout)["verdict"] == "valid"


@pytest.mark.slow
def test_a_run_of_which_every_node_wrote_its_own_journal_is_judged_like_the_same_in_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    one = execute(load_scenario(Path("parity"), ["workload.publications=200"]), tmp_path / "one", lambda *_: None)
    verdict = analyze(one.folder)
    assert verdict["verdict"] == "valid"
    assert analyze(split_by_node(one.folder, tmp_path / "split")) == verdict
