"""What the judge says of a run, for programs and test suites."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

JudgeName = Literal["spark", "plain"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the judge says; `numbers` are those of `murmur analyze --json`, `folder` has all findings."""

    numbers: Mapping[str, Any]
    folder: Path
    told: str = ""
    """The first findings in words, where no table has them."""

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
            findings = self.told or _first_findings(self.folder / "analysis" / "findings.csv")
            raise AssertionError(
                f"{self.numbers['verdict']}: {self.numbers['reason']}\n{findings}\nrun folder: {self.folder}"
            )


def _first_findings(table: Path) -> str:
    import pandas as pd

    return pd.read_csv(table).head(10).to_string(index=False)


def verdict_of(folder: Path, judge_by: JudgeName = "spark") -> Verdict:
    """Have the run judged; raises `InputError` for a folder that is no run's, or a missing Java.

    `plain` is the judge in plain Python, for runs of thousands of events: it needs no Java and writes no tables.
    """
    if judge_by == "plain":
        from spark_analysis.plain_judge import judge_run

        judgement = judge_run(folder)
        return Verdict(judgement.numbers, folder, "\n".join(judgement.first_findings(10)))
    from spark_analysis.main import judge

    return Verdict(judge(folder), folder)
