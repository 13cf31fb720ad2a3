"""The lessons: a run of each, what is to be done to it, and how what was done is decided after the judge's verdict."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from murmur_pubsub.faults import FaultKind
from murmur_pubsub.run_manifest import FaultEntry
from spark_analysis.plain_judge import Judgement

_DETECTION = {"heartbeat": "100 ms", "timeout": "500 ms", "reconnect": "50 ms"}
_SECONDS = 20
_LINKS_WANTED = 3
_TREE: Mapping[str, Any] = {
    "overlay": {"kind": "balanced", "brokers": 7, "degree": 3},
    "workload": {
        "kind": "paced",
        "publishers": {"b0": 1},
        "subscribers": {"b3": 1, "b4": 1, "b5": 1, "b6": 1},
        "rate_per_s": 5,
        "seconds": _SECONDS,
    },
    "links": {"delay": "5 ms"},
    "failure_detection": _DETECTION,
}
_CELLS: Mapping[str, Any] = {
    "overlay": {
        "kind": "cells",
        "cells": {"p": ["p1"], "left": ["b1", "b2"], "right": ["b3", "b4"], "s": ["s1"], "t": ["s2"], "u": ["s3"]},
        "links": [["p", "left"], ["p", "right"], ["left", "s"], ["left", "t"], ["right", "u"]],
        "redundancy": {"left": 2, "right": 2},
    },
    "workload": {
        "kind": "paced",
        "publishers": {"p1": 2},
        "subscribers": {"s1": 2, "s2": 2, "s3": 2},
        "rate_per_s": 5,
        "seconds": _SECONDS,
    },
    "broker": {"routing": "cells", "reliability": "gryphon"},
    "links": {"delay": "5 ms"},
    "failure_detection": _DETECTION,
}
_CHAIN: Mapping[str, Any] = {
    "overlay": {"kind": "chain", "brokers": 8},
    "workload": {
        "kind": "paced",
        "publishers": {"b0": 1, "b7": 1},
        "subscribers": {"b2": 1},
        "rate_per_s": 10,
        "seconds": _SECONDS,
    },
    "broker": {"routing": "multipath", "parameters": {"multipath": {"round": "2 s", "fanout": 3}}},
    "links": {"delay": "5 ms"},
    "datagrams": {"delay": "5 ms"},
    "failure_detection": _DETECTION,
}
_RING: Mapping[str, Any] = {
    "overlay": {"kind": "structured", "brokers": 16, "probe": "500 ms", "probe_timeout": "250 ms"},
    "workload": {
        "kind": "paced",
        "publishers": {"b0": 1, "b8": 1},
        "subscribers": {"b3": 1, "b6": 1, "b9": 1, "b12": 1, "b15": 1},
        "rate_per_s": 5,
        "seconds": _SECONDS,
    },
    "broker": {"routing": "irbr"},
    "last_mile": "broker",
    "datagrams": {"delay": "5 ms"},
    "drain": {"quiet": "500 ms", "limit": "5 s"},
    "failure_detection": _DETECTION,
}


@dataclass(frozen=True, slots=True)
class End:
    """A lesson's run that is over. `answer`: what was typed. `way_end`: where the way of the first event that is
    missing ended, in words ("": none is). `hops`: see `LessonRun`."""

    judgement: Judgement
    faults: Sequence[FaultEntry]
    answer: str
    way_end: str
    hops: Mapping[str, Sequence[int]]

    @property
    def numbers(self) -> Mapping[str, Any]:
        """Those of the verdict."""
        return self.judgement.numbers

    @property
    def valid(self) -> bool:
        """Is the verdict that the system did what it promises?"""
        return bool(self.numbers["verdict"] == "valid")

    def hit(self, kind: FaultKind) -> frozenset[str]:
        """The nodes that faults of this kind were about."""
        return frozenset(name for fault in self.faults if fault.kind is kind for name in fault.nodes)


def _nothing(end: End) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Lesson:
    """`task`: paragraphs. `question`: what is asked once the run is over, or "". `lacks`: what is still to be done, in
    words; None: it is solved. `shown`: what the run then shows, or ""."""

    name: str
    title: str
    task: Sequence[str]
    keys: Mapping[str, Any]
    lacks: Callable[[End], str | None]
    question: str = ""
    shown: Callable[[End], str] = _nothing

    def scenario(self, seed: int) -> dict[str, Any]:
        """The keys of its run with this seed."""
        return {"name": self.name, "description": self.title, "seed": seed, **self.keys}


def _losing(end: End) -> str | None:
    missing = end.numbers["missing"]
    if not missing:
        return "Every event came to everybody who wanted it. Break something on its way while it is published."
    named, ended = (set(re.findall(r"\b[bc]\d+\b", words)) for words in (end.answer, end.way_end))
    if not named:
        return f"{missing} deliveries are missing. Where did the way of the first of these events end?"
    return None if named == ended else "It did not end there. Pick the event: a copy that was lost ends in a cross."


def _way_ended(end: End) -> str:
    return f"The way of the first event ended so: {end.way_end}."


def _dead_broker(end: End) -> str | None:
    if not end.hit(FaultKind.KILL) & end.hit(FaultKind.RESTART):
        return "Kill a broker that has others behind it, and restart it before publishing is over."
    if not end.numbers["missing"]:
        return "Nothing was lost: that broker had nobody behind it, or was away too shortly."
    return None if end.valid and not end.numbers["late"] else "It did not recover as best effort promises."


def _exactly_once(end: End) -> str | None:
    killed = end.hit(FaultKind.KILL)
    if "p1" not in killed or not killed & {"b1", "b2", "b3", "b4"}:
        return "Two crashes are wanted: of p1, where events enter, and of a broker of a cell in the middle."
    if end.numbers["missing"] or not end.valid:
        return f"{end.numbers['missing']} deliveries are missing: a broker that stays away can give nothing again."
    return None


def _shortcuts(end: End) -> str | None:
    hops = end.hops["b7"]
    if not hops:
        return "Nothing came to b7: nobody there wants what b0 publishes."
    if hops[-1] > _LINKS_WANTED or hops[-1] >= hops[0]:
        return f"{_ways_to_b7(end)} It takes traffic that a shortcut would serve, and some rounds of it."
    return None if end.valid else f"{_ways_to_b7(end)} But {end.numbers['missing']} deliveries are missing."


def _ways_to_b7(end: End) -> str:
    hops = end.hops["b7"]
    return f"The first event came to b7 over {hops[0]} links, and the last over {hops[-1]}."


def _churn(end: End) -> str | None:
    if len(end.hit(FaultKind.KILL)) < 3 or len(end.hit(FaultKind.KILL) & end.hit(FaultKind.RESTART)) < 2:
        return "Three brokers are to go, and at least two of them to come back."
    if end.numbers["delivery_rate"] < 0.9 or not end.valid:
        return f"{end.numbers['delivery_rate']:.0%} arrived: kill brokers that are nobody's home, such as b1."
    return None


LESSONS: Mapping[str, Lesson] = {
    each.name: each
    for each in (
        Lesson(
            "losing",
            "Lose an event, and find where",
            (
                "A tree of seven brokers; b0 publishes, four others want everything. Nothing is ever lost here. Change "
                "that: click a broker or a link, and kill, cut or harm it.",
                "Then finish. The judge says how many deliveries are missing, and of which events; the way of each can "
                "be drawn. Say where the first one ended.",
            ),
            _TREE,
            _losing,
            "Where did the way of the first event that is missing end: at which node, or between which two?",
            _way_ended,
        ),
        Lesson(
            "dead-broker",
            "A dead broker, and what best effort may promise",
            (
                "The same tree. Kill a broker that has others behind it, let some events pass, and restart it.",
                "Best effort gives nothing again of what was lost meanwhile. Its promise is about after: once the "
                "broker is back and tables have settled, everything comes. The judge measures how long that took.",
            ),
            _TREE,
            _dead_broker,
        ),
        Lesson(
            "exactly-once",
            "Exactly once, across a crash",
            (
                "Cells of redundant brokers under guaranteed delivery (Gryphon). Crash p1, where events enter, and a "
                "broker in the middle: nothing may be missing, doubled or out of order in the end.",
                "Whoever crashes loses its memory and keeps its log.",
            ),
            _CELLS,
            _exactly_once,
        ),
        Lesson(
            "shortcuts",
            "Multipath finds its shortcuts",
            (
                "A chain of eight brokers with opportunistic multipath forwarding. b0 publishes, and only a subscriber "
                "at b2 wants its events. Every two seconds a broker looks at what passed, and opens the soft link that "
                "would have saved most: dashed, past at most three others. It has room for one or two of them.",
                "Have c1 at b7 subscribe. Its first event comes over seven links; the last one of the run shall come "
                "over three, and none be missing. “/” and a name such as 0:50 draws the way of an event.",
            ),
            _CHAIN,
            _shortcuts,
            shown=_ways_to_b7,
        ),
        Lesson(
            "churn",
            "A ring under churn",
            (
                "Sixteen brokers on a ring of identifiers (IRBR over Pastry), without fixed links. Three are to go and "
                "two to come back; nine deliveries in ten must arrive, and a fault explain each of the others.",
            ),
            _RING,
            _churn,
        ),
    )
}
