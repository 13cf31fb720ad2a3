"""What the judge says of a run, for programs and test suites."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from murmur_pubsub.journal_format import HEADER_BYTES, ROW
from murmur_pubsub.journal_store import store_at
from murmur_pubsub.run_manifest import read_manifest

JudgeName = Literal["spark", "plain", "auto"]
PLAIN_ROWS_MAX = 100_000
"""Journal rows of the largest run that the judge in plain Python gets where nobody says who judges."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the judge says; `numbers` are those of `murmur analyze --json`, `folder` has all findings."""

    numbers: Mapping[str, Any]
    folder: Path
    told: str = ""
    """The first findings in words, where no table has them."""
    judge: Literal["spark", "plain"] = "spark"
    """Who says so."""

    @property
    def valid(self) -> bool:
        """Did every subscriber get what it had to get, and nothing else, except for what a fault excuses?"""
        return bool(self.numbers["verdict"] == "valid")

    def __getattr__(self, name: str) -> Any:
        """The counts by name: missing, duplicate, spurious, out_of_order, explained, required, delivered, …"""
        try:
            return self.numbers[name]
        except KeyError:
            raise AttributeError(name) from None

    def assert_valid(self) -> None:
        """Raise AssertionError with the judge's reason, its first findings and where all of them are."""
        if not self.valid:
            if self.numbers.get("finding") == "damage":
                raise AssertionError(f"unknown: {self.numbers['reason']}\nrun folder: {self.folder}")
            table = self.folder / "analysis" / "findings.csv"
            findings = self.told if self.judge == "plain" else _first_findings(table)
            lines = (f"{self.numbers['verdict']}: {self.numbers['reason']}", findings, f"run folder: {self.folder}")
            raise AssertionError("\n".join(filter(None, lines)))


def _first_findings(table: Path) -> str:
    import pandas as pd

    return pd.read_csv(table).head(10).to_string(index=False)


def verdict_of(folder: Path, judge_by: JudgeName = "spark") -> Verdict:
    """Have the run judged; raises `InputError` for a folder that is no run's, or a missing Java.

    `plain` is the judge in plain Python, for runs of thousands of events: it needs no Java and writes no tables. `auto`
    asks it for runs of up to `PLAIN_ROWS_MAX` rows, and Spark for larger ones.
    """
    if (judge_for(folder) if judge_by == "auto" else judge_by) == "plain":
        from spark_analysis.plain_judge import judge_run

        judgement = judge_run(folder)
        return Verdict(judgement.numbers, folder, "\n".join(judgement.first_findings(10)), "plain")
    from spark_analysis.main import judge

    return Verdict(judge(folder), folder)


def judge_for(folder: Path) -> Literal["spark", "plain"]:
    """Who judges a run where nobody says: plain Python those that it judges in a second."""
    store = store_at(read_manifest(folder).journal_at(folder))
    sizes = [size - HEADER_BYTES for size in store.sizes("seg").values()]
    return "plain" if sum(sizes) // ROW.size <= PLAIN_ROWS_MAX else "spark"
