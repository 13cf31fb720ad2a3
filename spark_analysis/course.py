"""The course of a run: its phases, what had settled when, when faults were ordered and in effect, what orders came to.

These are few rows of a journal, mostly of the driver. The first look at the journal finds them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from murmur_pubsub.journal import Phase, RowKind
from spark_analysis.first_look import CourseRow


@dataclass(frozen=True, slots=True)
class Course:
    """`settled`: (time_us, covers_us) of the SETTLED rows. `phases`: name to begin, in order. `fault_times`: by step
    and stage. `answers`: by step, (time_us, value)."""

    settled: Sequence[tuple[int, int]]
    phases: Mapping[str, int]
    fault_times: Mapping[tuple[int, int], int]
    answers: Mapping[int, tuple[int, int]]

    def phases_table(self) -> pd.DataFrame:
        """phase, begin_us."""
        return pd.DataFrame(list(self.phases.items()), columns=["phase", "begin_us"]).astype({"begin_us": "int64"})

    def publishing_us(self) -> tuple[int | None, int | None]:
        """When publishing began and ended (None: it did not)."""
        begin_us = self.phases.get("publishing")
        over = [at for phase, at in self.phases.items() if phase in ("draining", "stopped") and at > (begin_us or 0)]
        return begin_us, min(over, default=None)


def course_of(rows: Sequence[CourseRow]) -> Course:
    """The course of the run that has these rows."""
    phases: dict[str, int] = {}
    for row in sorted(rows, key=lambda row: (row.time_us, row.value)):
        if row.kind == RowKind.PHASE:
            phases.setdefault(Phase(row.value).name.lower(), row.time_us)
    return Course(
        [(row.time_us, row.value) for row in rows if row.kind == RowKind.SETTLED],
        phases,
        {(row.sequence, row.hops): row.time_us for row in rows if row.kind == RowKind.FAULT},
        {row.sequence: (row.time_us, row.value) for row in rows if row.kind == RowKind.ANSWER},
    )
