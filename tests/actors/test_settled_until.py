"""A protocol whose brokers are never done, since somebody always asks, and know what was asked some time ago to be."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from murmur_pubsub.filter import Filter
from murmur_pubsub.journal import RowKind
from murmur_pubsub.journal_rows import read_segment
from murmur_pubsub.machine import Effect, Input, SetTimer, Start, TimerFired
from murmuration.runs.driver import execute
from murmuration.scenario.load import check_scenario
from routing.flooding import Flooding
from spark_analysis.plain_judge import judge_run

_LAG_US = 300_000


class AlwaysAsked(Flooding):
    """Settles two seconds after something was withdrawn here, which is longer than all gaps; looks at the time every
    50 ms."""

    settled_until_us = -1
    _looks_left = 0

    @property
    def settling(self) -> bool:
        return self._looks_left > 0

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        if type(input) is not Start and type(input) is not TimerFired:
            return super().handle(input, now_us)
        self._looks_left -= 1
        self.settled_until_us = max(-1, now_us - _LAG_US)
        return [SetTimer(("routing", "look"), 50_000)]

    def unsubscribe(self, wanted: Filter) -> Sequence[Effect]:
        self._looks_left = 40
        return super().unsubscribe(wanted)


def test_what_was_asked_some_time_ago_is_journalled_as_settled(tmp_path: Path) -> None:
    check_journal("virtual", tmp_path)


@pytest.mark.ray
@pytest.mark.usefixtures("live_ray")
def test_live_what_was_asked_some_time_ago_is_journalled_as_settled(tmp_path: Path) -> None:
    check_journal("ray", tmp_path)


def check_journal(runtime: str, folder: Path) -> None:
    """Play a run; its journal says what was settled, and when, though some broker always asks."""
    scenario = {
        "name": "asked", "seed": 2, "runtime": runtime, "overlay": {"kind": "chain", "brokers": 2},
        "workload": {
            "kind": "zipf", "clients": 2, "subscribers_per_actor": 2, "publishers": 2, "publications": 200,
            "rate_per_s": 25, "matching_rate": 0.5, "resubscriptions": 20,
        },
        "broker": {"routing": f"{__name__}:{AlwaysAsked.__name__}"},
    }  # fmt: skip
    run = execute(check_scenario(scenario, "test"), folder / "run", lambda *_: None)
    settled = []
    for path in sorted((run.folder / "journal").glob("*.seg")):
        _, rows = read_segment(path)
        settled += [(int(row["time_us"]), int(row["value"])) for row in rows[rows["kind"] == RowKind.SETTLED]]
    late = [(time_us, until_us) for time_us, until_us in settled if time_us - until_us > _LAG_US / 2]
    assert len(late) > 5, settled
    assert judge_run(run.folder).numbers["verdict"] == "valid"
