"""What a judge says of a run, in a form in which the two judges and the zoo's expectations can be compared."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from murmur_pubsub.journal import RowKind
from murmur_pubsub.run_manifest import read_manifest
from murmuration.zoo.entry import Saboteur
from spark_analysis.history import read_history
from spark_analysis.plain_judge import judge_run

Wrong = tuple[str, tuple[int, int], int]
"""(finding, event, subscriber) of a finding that nothing excuses."""
_PAIRS = ("missing", "duplicate", "spurious", "out_of_order", "misplaced", "altered")
_EVENTS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Sighting:
    """`where`: the nodes at which the finding is, of those about deliveries; of a misplaced one, where it was made and
    in whose place. `wrong`: all that is wrong. `events`: the first of them, in words."""

    verdict: str
    finding: str | None
    reason: str
    where: str = ""
    events: str = ""
    wrong: frozenset[Wrong] = frozenset()

    @property
    def names(self) -> str:
        """What the finding names, in words."""
        return f"{self.where} ({self.events})" if self.where else self.reason

    def is_of(self, saboteur: Saboteur) -> bool:
        """Was the saboteur found under its own name?"""
        if (self.verdict, self.finding) != (saboteur.verdict, saboteur.finding):
            return False
        if self.where:
            return re.fullmatch(saboteur.names, self.where) is not None
        return re.search(saboteur.names, self.reason) is not None


def see_plainly(run: Path) -> Sighting:
    """What the judge in plain Python says of the run."""
    judgement = judge_run(run)
    if judgement.numbers["finding"] == "damage":
        return _sighting(judgement.numbers, {})  # what is damaged cannot be read
    manifest = read_manifest(run)
    names = manifest.names
    history = read_history(manifest.journal_at(run))
    deliveries = history.rows.of(RowKind.DELIVER)
    wrong = [(finding, *pair) for finding in _PAIRS for pair in judgement.left(finding)]
    made_by = judgement.pairs.made_by

    def place(finding: str, event: tuple[int, int], subscriber: int) -> tuple[str, str]:
        if not history.lives.get(subscriber):  # an unknown subscriber: all that is known is which node delivered
            return next(names[row.node] for row in deliveries if row.value == subscriber), ""
        home = names[history.lives[subscriber][0].node]
        return names[made_by[event, subscriber]] if (event, subscriber) in made_by else home, home

    return _sighting(judgement.numbers, {each: place(*each) for each in wrong})


def see_on_spark(run: Path) -> Sighting:
    """What the judge on Spark says of it, in the active session."""
    from spark_analysis.main import judge

    verdict = judge(run)
    if verdict["finding"] == "damage":
        return _sighting(verdict, {})
    table = pd.read_csv(run / "analysis" / "findings.csv", keep_default_na=False)
    places: dict[Wrong, tuple[str, str]] = {}
    for row in table[table["explanation"] == ""].to_dict("records"):
        made = re.search("delivered by .*, not by (.*)", row["detail"])
        where = row["client"], made[1] if made else row["client"]
        places[row["finding"], (row["source"], row["sequence"]), row["subscriber"]] = where
    return _sighting(verdict, places)


def _sighting(verdict: Mapping[str, Any], places: Mapping[Wrong, tuple[str, str]]) -> Sighting:
    finding = verdict["finding"]
    of_it = sorted(each for each in places if each[0] == finding)
    where = _listed(places[each][0] for each in of_it)
    if finding == "misplaced":
        where += f" for {_listed(places[each][1] for each in of_it)}"
    events = list(dict.fromkeys(f"{source}:{sequence}" for _, (source, sequence), _ in of_it))
    shown = ", ".join(events[:_EVENTS_SHOWN]) + (", …" if len(events) > _EVENTS_SHOWN else "")
    return Sighting(verdict["verdict"], finding, verdict["reason"], where, shown, frozenset(places))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(dict.fromkeys(names)))
