"""The same schedule in virtual time and live on Ray, and what differs.

A live run is no function of its seed: what has been decided by a microsecond there comes out otherwise now and then. A
finding that shows live too is no artefact of virtual time; one that does not may need many live runs.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from murmur_pubsub.errors import RunError
from murmur_pubsub.progress import Progress
from murmuration.hunt.present import whole_scenario
from murmuration.runs.driver import execute
from murmuration.scenario.load import check_scenario
from spark_analysis.plain_judge import Judgement, Pair, judge_run

_COMPARED = (
    "verdict", "finding", "published", "required", "delivered", "missing", "duplicate", "spurious", "out_of_order",
    "explained", "faults_took_effect", "faults_not_exercised", "faults_failed", "late", "recovery_us",
)  # fmt: skip
_PAIRS = ("missing", "duplicate", "out_of_order")
_SHOWN = 5
_RUNTIMES = {"virtual": "virtual", "live": "ray"}


@dataclass(frozen=True, slots=True)
class Played:
    """One of the two runs. `failure`: why it ended early, if it did; then nothing is judged."""

    folder: Path
    judgement: Judgement | None
    failure: str | None

    @property
    def verdict(self) -> str:
        """The judge's word, or that the run raised."""
        return "raised" if self.judgement is None else str(self.judgement.numbers["verdict"])


def play_both(keys: Mapping[str, Any], folder: Path, progress: Progress) -> dict[str, Played]:
    """Play the scenario of these keys on both runtimes, into `virtual` and `live` of the folder; raises `InputError`
    for one that cannot be played."""
    whole = whole_scenario(keys)
    played = {}
    for name, runtime in _RUNTIMES.items():
        run = folder / name
        loaded = check_scenario({**whole, "runtime": runtime}, "the schedule")
        failure = None
        try:
            execute(loaded, run, progress)
        except RunError as error:
            failure = str(error)
        played[name] = Played(run, None if failure is not None else judge_run(run), failure)
    return played


def differences(played: Mapping[str, Played]) -> Iterator[str]:
    """What differs, in words, a line each; first a table of all numbers."""
    judged = {name: each.judgement.numbers for name, each in played.items() if each.judgement is not None}
    for name, each in played.items():
        if each.failure is not None:
            yield f"{name} ended early: {each.failure.partition(chr(10))[0]}"
    if len(judged) < len(played):
        return
    virtual, live = judged["virtual"], judged["live"]
    yield f"{'':24}{'virtual':>16}{'live':>16}"
    for name in _COMPARED:
        mark = "" if virtual[name] == live[name] else "  differs"
        yield f"{name.replace('_', ' '):24}{virtual[name]!s:>16}{live[name]!s:>16}{mark}"
    for name in _PAIRS:
        ours, theirs = (_left(played[each], name) for each in ("virtual", "live"))
        for where, pairs in (("in virtual time", ours - theirs), ("live", theirs - ours)):
            if pairs:
                told = ", ".join(f"{source}:{number} at {subscriber}" for (source, number), subscriber in _first(pairs))
                yield f"{name.replace('_', ' ')} only {where}: {len(pairs):,} ({told})"


def _left(played: Played, finding: str) -> set[Pair]:
    assert played.judgement is not None
    return set(played.judgement.left(finding))


def _first(pairs: set[Pair]) -> list[Pair]:
    return sorted(pairs)[:_SHOWN]
