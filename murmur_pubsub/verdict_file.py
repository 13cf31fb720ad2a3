"""The verdict on a run as an analysis keeps it, in `RUN/analysis/verdict.json`, for all that reads it again."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from murmur_pubsub.errors import InputError
from murmur_pubsub.json_file import check_keys, read_json

DAMAGE = "damage"
"""The finding of a run whose journal is damaged, and the name of its table."""
TOLD_COUNTS = ("published", "required", "delivered", "missing", "duplicate", "spurious", "out_of_order", "explained")
"""The counts of a verdict that tables of many runs tell."""
_ALLOWED = "the verdict of a run that `murmur analyze` has been through, or no such file"
_COUNT_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a scenario expects of a run: in words, and what came out (None: nothing to measure)."""

    name: str
    wanted: str
    measured: str
    met: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TableVerdict:
    """What a table of many runs tells of a verdict. Raises `InputError` for a count that is none: only where the
    journal is damaged there need not be any."""

    verdict: Literal["valid", "invalid", "unknown"]
    reason: str
    finding: str | None = None
    published: int | None
    required: int | None
    delivered: int | None
    missing: int | None
    duplicate: int | None
    spurious: int | None
    out_of_order: int | None
    explained: int | None

    def __post_init__(self) -> None:
        if not self.reason:
            raise InputError("reason", "nothing", "why the verdict is what it is")
        for name in TOLD_COUNTS:
            _check_count(name, getattr(self, name), self.finding == DAMAGE)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunVerdict(TableVerdict):
    """All that stands in the file. `damage`: how many files of the journal are damaged."""

    finding: str | None
    misplaced: int | None
    altered: int | None
    delivery_rate: float | None
    explained_by_tables: int | None
    faults_took_effect: int | None
    faults_not_exercised: int | None
    faults_failed: int | None
    kills_of_processes: int | None
    kills_in_process: int | None
    late: int | None
    recovery_us: int | None
    catch_up_us: int | None
    delay_live_p99_us: int | None
    delay_caught_up_p99_us: int | None
    promise: str | None
    expectations: tuple[Expectation, ...] | None
    damage: int | None = None

    def __post_init__(self) -> None:
        TableVerdict.__post_init__(self)
        for name in ("misplaced", "altered"):
            _check_count(name, getattr(self, name), self.finding == DAMAGE)
        _check_count(DAMAGE, self.damage, self.finding != DAMAGE)


VERDICT_KEYS = tuple(each.name for each in dataclasses.fields(RunVerdict) if each.default is dataclasses.MISSING)
"""What stands in every verdict."""


def read_verdict(run: Path) -> dict[str, Any] | None:
    """What was judged of the run, None if nothing was; raises `InputError` naming the file, and the key if it can."""
    path = run / "analysis" / "verdict.json"
    try:
        document = read_json(path, _ALLOWED)
    except FileNotFoundError:
        return None
    check_keys(RunVerdict, document, path, written_anew(run))
    return document


def written_anew(run: Path) -> str:
    """What is allowed where a file of the analysis lacks something that this version writes."""
    return f"what this version of murmur writes there (`murmur analyze {run}` judges the run again)"


def _check_count(name: str, found: int | None, may_be_none: bool) -> None:
    if (found is None and not may_be_none) or (found is not None and not 0 <= found <= _COUNT_MAX):
        raise InputError(name, f"{found!r:.60}", "a count")
