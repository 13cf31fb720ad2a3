"""From counts to a verdict: valid, invalid or unknown, and why.

What was delivered and should not have been is wrong in any run. That something is missing is known only for a complete
run, and a run in which nothing was required, or in which nothing of it was delivered, shows nothing. The reason names
only what happened, and first what weighs most.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from murmur_pubsub.promise import Promise
from murmur_pubsub.verdict_file import DAMAGE, VERDICT_KEYS, Expectation
from spark_analysis.causes import Causes
from spark_analysis.given_up import REFUSED_AND_DELIVERED
from spark_analysis.journal_check import Damage
from spark_analysis.wording import duration, share

_NOT_ASKED_FOR = "the subscriber had not asked for them"
_WRONG = {
    "altered": "{} deliveries were altered (their contents or publication time are not those of the event)",
    "misplaced": "{} deliveries were misplaced (made by another node than the subscriber's)",
    "spurious": f"{{}} deliveries were spurious ({_NOT_ASKED_FOR})",
    "missing": "{} required deliveries are missing",
    "duplicate": "{} deliveries were duplicates",
    "out_of_order": "{} deliveries were out of order",
}
"""What may be wrong with deliveries, in order of weight."""
_NAMED_MAX = 3
COUNTS = ("missing", "duplicate", "spurious", "out_of_order", "misplaced", "altered")
"""The counts of a verdict that name findings."""


class RefusedDelivered(NamedTuple):
    """Deliveries of events that were refused: how many, and the event of them that was published first."""

    deliveries: int
    published_us: int
    source: int
    sequence: int


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a run. `counts`: by the names in `COUNTS`, and required, delivered, published. `explained`:
    findings that are excused, by name; `by_tables`: how many of them because tables were disturbed. `faults`: how many
    had each outcome of `fault_checks`. `late`: required deliveries that came too long after the last repair.
    `by_themselves`: what broke though nobody had ordered it, in words. `kills`: how many kills ended processes, and how
    many ended a node in a process that went on. `refused`: the spurious deliveries of events that were refused.
    `unsettled`: after what subscriptions had not settled in time (None: they had). `limit_us`: that time. `conjured`:
    why nothing is excused, in words (None: the journal shows the ways of events). `causes`: of deliveries, where
    subscriptions are durable.
    """

    status: str
    counts: Mapping[str, int]
    promise: Promise = field(default_factory=Promise)
    explained: Mapping[str, int] = field(default_factory=dict)
    by_tables: int = 0
    faults: Mapping[str, int] = field(default_factory=dict)
    expectations: Sequence[Expectation] = ()
    late: int = 0
    unsettled: str | None = None
    limit_us: int = 0
    recovery_us: int | None = None
    conjured: str | None = None
    causes: Causes = field(default_factory=Causes)
    by_themselves: Sequence[str] = ()
    kills: tuple[int, int] = (0, 0)
    refused: RefusedDelivered | None = None

    def left(self, name: str) -> int:
        """The findings of that name that nothing excuses."""
        return self.counts[name] - self.explained.get(name, 0)


def decide(facts: Facts) -> dict[str, Any]:
    """The verdict with its numbers; `reason` says in words why it is what it is, `finding` names what weighs most."""
    outcome, finding, reason = _outcome(facts)
    if facts.by_themselves:
        reason += f"; nobody had ordered the {', the '.join(facts.by_themselves)}"
    required = facts.counts["required"]
    made = required - facts.counts["missing"]
    return {
        **{name: facts.counts[name] for name in (*COUNTS, "required", "delivered", "published")},
        "delivery_rate": made / required if required else None,
        "explained": sum(facts.explained.get(name, 0) for name in COUNTS),
        "explained_by_tables": facts.by_tables,
        **{f"faults_{name}": facts.faults.get(name, 0) for name in ("took_effect", "not_exercised", "failed")},
        "kills_of_processes": facts.kills[0],
        "kills_in_process": facts.kills[1],
        "late": facts.late,
        "recovery_us": facts.recovery_us,
        "catch_up_us": facts.causes.catch_up_us,
        "delay_live_p99_us": facts.causes.live_p99_us,
        "delay_caught_up_p99_us": facts.causes.caught_up_p99_us,
        "promise": facts.promise.delivery,
        "expectations": [
            {"name": each.name, "wanted": each.wanted, "measured": each.measured, "met": each.met}
            for each in facts.expectations
        ],
        "verdict": outcome,
        "finding": finding,
        "reason": reason,
    }


def tell_conjured(node: str, source: int, sequence: int) -> str:
    """In words: the node had an event which it neither published nor received."""
    return f"{node} had {source}:{sequence}, and the journal does not show how it came there"


def decide_damaged(damages: Sequence[Damage]) -> dict[str, Any]:
    """The verdict on a run whose journal has these damages, in order: nothing is known, and there are no numbers."""
    named = "; ".join(map(str, damages[:_NAMED_MAX]))
    more = len(damages) - _NAMED_MAX
    reason = f"the journal is damaged: {named}" + (f"; and {more:,} more (see the table of damage)" if more > 0 else "")
    return dict.fromkeys(VERDICT_KEYS) | {
        "verdict": "unknown",
        "finding": DAMAGE,
        "reason": reason,
        DAMAGE: len(damages),
    }


def _outcome(facts: Facts) -> tuple[str, str | None, str]:
    """(verdict, finding, reason)."""
    promise, counts = facts.promise, facts.counts
    complete = facts.status == "complete"
    tolerated = {
        "missing": not complete or promise.delivery == "at_most_once",
        "duplicate": promise.delivery == "at_least_once",
        "out_of_order": promise.order == "none",
    }
    wrong = {name: facts.left(name) for name in _WRONG if not tolerated.get(name) and facts.left(name)}
    if wrong:
        told = [_WRONG[name].format(f"{count:,}") for name, count in wrong.items()]
        unexplained = " without a fault that explains it" if "missing" in wrong and facts.faults else ""
        told = [each.replace("are missing", f"are missing{unexplained}") for each in told]
        told = [each.replace(_NOT_ASKED_FOR, _why_spurious(facts)) for each in told]
        told += [f"nothing is excused: {facts.conjured}"] if facts.conjured is not None else []
        return "invalid", next(iter(wrong)), "; ".join(told)
    if not complete:
        return "unknown", "cut_short", f"the run was cut short (its status is {facts.status})"
    if failed := facts.faults.get("failed", 0):
        return "invalid", "faults_failed", f"{failed} faults did not take effect (see the table of faults)"
    if not counts["published"]:
        return "unknown", "nothing_published", "nothing was published"
    if promise.delivery != "at_most_once":
        if facts.unsettled is not None:
            reason = f"subscriptions had not settled {duration(facts.limit_us)} after {facts.unsettled}"
            return "invalid", "unsettled", reason
        if facts.late:
            reason = (
                f"{facts.late:,} required deliveries came later than {duration(facts.limit_us)} after the last repair"
            )
            return "invalid", "late", reason
    unmet = [each for each in facts.expectations if not each.met]
    if unmet:
        against = "; ".join(f"{each.name}: {each.measured}, expected {each.wanted}" for each in unmet)
        return "invalid", "expectation", f"not as expected: {against}"
    if not counts["required"]:
        reason = "no delivery was required: no settled subscription matches a publication"
        return "unknown", "nothing_required", reason
    if counts["missing"] == counts["required"]:
        return "unknown", "nothing_delivered", f"none of {counts['required']:,} required deliveries was made"
    return "valid", None, _why_valid(facts)


def _why_spurious(facts: Facts) -> str:
    if facts.refused is None:
        return _NOT_ASKED_FOR
    count, _, source, sequence = facts.refused
    told = f"{REFUSED_AND_DELIVERED}, the first {source}:{sequence}"
    others = facts.left("spurious") - count
    return f"{count:,} {told}; {others:,} not asked for" if others else told


def _why_valid(facts: Facts) -> str:
    promise, counts = facts.promise, facts.counts
    once = "" if promise.delivery == "at_least_once" else ", once"
    once += {"publisher": ", in order", "total": ", in one order"}.get(promise.order, "")
    if promise.delivery == "at_most_once" and (facts.left("missing") or facts.left("out_of_order")):
        rate = share((counts["required"] - counts["missing"]) / counts["required"])
        allowed = f"{counts['missing']:,} missing and {counts['out_of_order']:,} out of order, as may be"
        return f"{rate} delivered: {allowed}; nothing twice, and nothing else"
    excused = {name: facts.explained[name] for name in COUNTS if facts.explained.get(name)}
    if excused:
        listed = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in excused.items())
        tables = f" ({facts.by_tables:,} by disturbed tables)" if facts.by_tables else ""
        return f"a fault explains each of {listed}{tables}; every other delivery was made{once}"
    return f"every required delivery was made{once}, and no other"
