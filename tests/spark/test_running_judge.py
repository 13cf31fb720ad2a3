"""The verdict so far says what the judge would, whatever the batches, and tells late from missing."""

import threading
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from murmur_pubsub.journal import RowKind, SideKind, read_side
from murmur_pubsub.journal_rows import read_segment
from murmur_pubsub.run_manifest import read_manifest, write_manifest
from murmuration.runs.driver import execute
from murmuration.scenario.load import check_scenario
from spark_analysis.plain_judge import judge_run
from spark_analysis.rules import Rules, rules_of
from spark_analysis.running_judge import JournalBatch, RunningJudge, RunningVerdict, SubscriptionRecord

SCENARIO: dict[str, Any] = {
    "name": "lossy", "runtime": "virtual", "seed": 4,
    "overlay": {"kind": "chain", "brokers": 4},
    "workload": {
        "kind": "zipf", "clients": 6, "publications": 400, "rate_per_s": 200, "subscribers_per_actor": 3,
        "resubscriptions": 30,
    },
    "links": {"delay": "2 ms", "loss": 0.05, "duplication": 0.02},
    "withdrawal_grace": "200 ms",
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return execute(check_scenario(SCENARIO, "test"), tmp_path_factory.mktemp("lossy") / "run", lambda *_: None).folder


def whole(run: Path) -> JournalBatch:
    """All of a journal, as one batch."""
    journal = run / "journal"
    rows = np.concatenate([read_segment(path)[1] for path in sorted(journal.glob("*.seg"))])
    records = [each for path in sorted(journal.glob("*.blob")) for each in read_side(path)]
    delivered, settled = (rows[rows["kind"] == kind] for kind in (RowKind.DELIVER, RowKind.SETTLED))
    return JournalBatch(
        [
            SubscriptionRecord._make((*fields, kind is SideKind.UNSUBSCRIBE))
            for kind, fields in records
            if kind in (SideKind.SUBSCRIBE, SideKind.UNSUBSCRIBE)
        ],
        [(int(row["value"]), int(row["time_us"])) for row in settled],
        [tuple(fields) for kind, fields in records if kind is SideKind.EVENT],
        list(zip(*(delivered[name].tolist() for name in ("source", "sequence", "value", "time_us")), strict=True)),
        int(rows["time_us"].max()),
    )


def judged(rules: Rules, batches: Iterable[JournalBatch], last_us: int) -> RunningVerdict:
    judge = RunningJudge(rules, deadline_us=1_000_000)
    for batch in batches:
        judge.take(batch)
    judge.take(JournalBatch(newest_us=last_us + 1_000_000))
    return judge.verdict


def test_it_finds_missing_what_the_judge_does(run: Path) -> None:
    batch = whole(run)
    verdict = judged(rules_of(read_manifest(run)), [batch], batch.newest_us)
    pairs = judge_run(run).pairs
    assert pairs.missing
    assert (verdict.owed, verdict.missing, verdict.late) == (pairs.required, len(pairs.missing), 0)
    assert verdict.made == pairs.required - len(pairs.missing)
    assert verdict.duplicate >= len(pairs.duplicate) > 0
    (source, sequence), reader = pairs.missing[0]
    assert f"{source}:{sequence} for subscriber {reader}" in verdict.named or verdict.missing > len(verdict.named)


@pytest.mark.parametrize("seed", range(5))
def test_the_verdict_does_not_depend_on_the_batches(run: Path, seed: int) -> None:
    """Rows of different writers come in any order within half a deadline, as files are looked at one after another."""
    batch, draw = whole(run), Random(seed)
    width_us = draw.choice([20_000, 100_000, 250_000])
    steps = range(0, batch.newest_us + 2 * width_us, width_us)
    batches: list[dict[str, list[Any]]] = [
        {"subscriptions": [], "settled": [], "events": [], "deliveries": []} for _ in [*steps, None]
    ]
    for what, time_at in (("subscriptions", 0), ("settled", 1), ("events", 2), ("deliveries", 3)):
        behind = draw.choice([0, 1])
        for record in getattr(batch, what):
            batches[record[time_at] // width_us + behind][what].append(record)
    in_pieces = [
        JournalBatch(**each, newest_us=min(batch.newest_us, (number + 1) * width_us - 1))
        for number, each in enumerate(batches)
    ]
    rules = rules_of(read_manifest(run))
    assert judged(rules, in_pieces, batch.newest_us) == judged(rules, [batch], batch.newest_us)


SUBSCRIBED = SubscriptionRecord(10, 1, 7, "x > 0", 0, False)
EVENT = (3, 0, 1_000, b"\x81\xa1x\x01")


def taken(*batches: JournalBatch) -> list[tuple[int, int, int, int, int]]:
    """owed, made, late, missing and duplicate after each batch; deadlines are 100 us."""
    judge = RunningJudge(Rules(withdrawal_grace_us=50), deadline_us=100)
    found = []
    for batch in (JournalBatch([SUBSCRIBED], [(20, 20)], newest_us=20), *batches):
        judge.take(batch)
        verdict = judge.verdict
        found.append((verdict.owed, verdict.made, verdict.late, verdict.missing, verdict.duplicate))
    return found[1:]


def test_what_comes_after_its_deadline_is_late_and_no_more_missing() -> None:
    found = taken(
        JournalBatch(events=[EVENT], newest_us=1_050),
        JournalBatch(newest_us=1_100),
        JournalBatch(deliveries=[(3, 0, 7, 1_200)], newest_us=1_200),
        JournalBatch(deliveries=[(3, 0, 7, 1_210)], newest_us=1_210),
    )
    assert found == [(0, 0, 0, 0, 0), (1, 0, 0, 1, 0), (1, 0, 1, 0, 0), (1, 0, 1, 0, 1)]


def test_a_delivery_in_time_whose_row_is_read_late_is_not_late() -> None:
    found = taken(
        JournalBatch(events=[EVENT], newest_us=1_100),
        JournalBatch(deliveries=[(3, 0, 7, 1_090)], newest_us=1_110),
    )
    assert found == [(1, 0, 0, 1, 0), (1, 1, 0, 0, 0)]


def test_a_delivery_may_be_read_before_its_event() -> None:
    delivered = JournalBatch(deliveries=[(3, 0, 7, 1_002)], newest_us=1_002)
    assert taken(delivered, JournalBatch(events=[EVENT], newest_us=1_100)) == [(0, 0, 0, 0, 0), (1, 1, 0, 0, 0)]


@pytest.mark.parametrize(
    ("withdrawn_us", "settled", "owed"),
    [(1_040, True, 0), (1_051, True, 1), (5_000, True, 1), (5_000, False, 0)],
    ids=["withdrawn within the grace", "after it", "later", "not settled"],
)
def test_owed_is_what_a_settled_subscription_wants_that_is_not_withdrawn_soon(
    withdrawn_us: int, settled: bool, owed: int
) -> None:
    judge = RunningJudge(Rules(withdrawal_grace_us=50), deadline_us=100)
    withdrawn = SUBSCRIBED._replace(time_us=withdrawn_us, ordinal=1, withdrawn=True)
    again = SUBSCRIBED._replace(time_us=900)  # after a restart
    judge.take(JournalBatch([SUBSCRIBED, withdrawn, again], [(20, 20)] if settled else [(5, 5)], [EVENT], (), 1_100))
    assert judge.verdict.owed == owed


@pytest.mark.spark
@pytest.mark.slow
def test_spark_tells_the_same_of_a_journal_that_it_follows(run: Path, tmp_path: Path) -> None:
    """The run is over, but its manifest says so only once Spark has begun to read."""
    from spark_analysis.running import follow

    manifest = read_manifest(run)
    write_manifest(run, replace(manifest, status="running"))
    told: list[RunningVerdict] = []

    def tell(verdict: RunningVerdict) -> None:
        told.append(verdict)
        write_manifest(run, manifest)

    follow(run, tell, threading.Event(), deadline_us=1_000_000)
    batch = whole(run)
    judge = RunningJudge(rules_of(manifest), deadline_us=1_000_000)
    judge.take(batch)
    assert asdict(told[-1]) == asdict(judge.verdict)
