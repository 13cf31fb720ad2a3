"""What the judge says of a run, for programs and test suites."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the judge says; `numbers` are those of `murmur analyze --json`, `folder` has all findings."""

    numbers: Mapping[str, Any]
    folder: Path

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
            import pandas as pd

            if self.numbers.get("finding") == "damage":
                raise AssertionError(f"unknown: {self.numbers['reason']}\nrun folder: {self.folder}")
            findings = pd.read_csv(self.folder / "analysis" / "findings.csv").head(10)
            raise AssertionError(
                f"{self.numbers['verdict']}: {self.numbers['reason']}\n"
                f"{findings.to_string(index=False)}\nrun folder: {self.folder}"
            )


def verdict_of(folder: Path) -> Verdict:
    """Have Spark judge the run; raises `InputError` for a folder that is no run's, or a missing Java."""
    from spark_analysis.main import judge

    return Verdict(judge(folder), folder)
