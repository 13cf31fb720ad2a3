"""A frame: what changed, and what moved, in one stretch of a run. Frames that follow each other can be merged.

The picture at a moment is the fold of all frames up to it: states are the last word about a node or a link, and what
moved is of the frame alone. `Frame.plain` is what a page is sent, and what a frozen page holds.
"""

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal

NodeState = Literal["away", "up", "down", "stalled", "slow", "stopped"]
LinkState = Literal["away", "up", "down", "cut", "harmed", "gone"]
Pair = tuple[int, int]

BUCKETS_PER_OCTAVE = 8


def delay_bucket(delay_us: int) -> int:
    """The bucket of a delay: from 2 ** (bucket / 8) microseconds on, so a bucket is 9 % wide."""
    return int(BUCKETS_PER_OCTAVE * math.log2(delay_us)) if delay_us > 1 else 0


@dataclass(slots=True)
class Moved:
    """What went from one broker to another."""

    events: int = 0
    """Messages that carried an event."""
    others: int = 0
    lost: int = 0


@dataclass(slots=True)
class Activity:
    """What a broker did, its clients with it."""

    received: int = 0
    """Messages from other brokers."""
    delivered: int = 0
    published: int = 0


@dataclass(slots=True)
class Frame:
    """From `begin_us` (not included) to `end_us`, emulated time. Nodes are numbers, as in the run's manifest."""

    begin_us: int
    end_us: int
    nodes: dict[int, NodeState] = field(default_factory=dict)
    """The states that changed."""
    links: dict[Pair, LinkState] = field(default_factory=dict)
    """The states of links that changed; the smaller number first."""
    waiting: dict[int, int] = field(default_factory=dict)
    """How many messages are on their way to a broker at the end, where that has changed."""
    moved: dict[Pair, Moved] = field(default_factory=dict)
    """By sender and receiver."""
    activity: dict[int, Activity] = field(default_factory=dict)
    """By broker."""
    levels: dict[Pair, int] = field(default_factory=dict)
    """What the protocol measures of a broker, by topic and broker, where that has changed."""
    totals: Counter[Pair] = field(default_factory=Counter)
    """What the protocol counts at a broker, by topic and broker."""
    published: int = 0
    delivered: int = 0
    delays: Counter[int] = field(default_factory=Counter)
    """Deliveries by the bucket of their delay since publication (`delay_bucket`)."""
    lag_us: int = 0
    """How far the slowest node was behind emulated time."""
    story: list[dict[str, Any]] = field(default_factory=list)
    """What is told in words, in order of time."""

    @property
    def empty(self) -> bool:
        """Did nothing happen?"""
        return not (
            self.nodes or self.links or self.waiting or self.moved or self.activity or self.published or self.delivered
            or self.levels or self.totals or self.story or self.lag_us
        )  # fmt: skip

    def merge(self, later: "Frame") -> None:
        """Take in the frame that follows this one."""
        self.end_us = later.end_us
        self.nodes |= later.nodes
        self.links |= later.links
        self.waiting |= later.waiting
        for pair, moved in later.moved.items():
            here = self.moved.setdefault(pair, Moved())
            here.events += moved.events
            here.others += moved.others
            here.lost += moved.lost
        for broker, activity in later.activity.items():
            own = self.activity.setdefault(broker, Activity())
            own.received += activity.received
            own.delivered += activity.delivered
            own.published += activity.published
        self.levels |= later.levels
        self.totals += later.totals
        self.published += later.published
        self.delivered += later.delivered
        self.delays += later.delays
        self.lag_us = max(self.lag_us, later.lag_us)
        self.story += later.story

    def plain(self) -> dict[str, Any]:
        """As JSON holds it: numbers in short arrays, and nothing that is empty."""
        parts: dict[str, Any] = {
            "n": [[number, state] for number, state in self.nodes.items()],
            "l": [[*pair, state] for pair, state in self.links.items()],
            "w": [[number, count] for number, count in self.waiting.items()],
            "m": [[*pair, moved.events, moved.others, moved.lost] for pair, moved in self.moved.items()],
            "a": [[number, a.received, a.delivered, a.published] for number, a in self.activity.items()],
            "d": sorted([bucket, count] for bucket, count in self.delays.items()),
            "e": [[*key, level] for key, level in self.levels.items()],
            "o": [[*key, total] for key, total in self.totals.items()],
            "s": self.story,
            "p": self.published,
            "v": self.delivered,
            "g": self.lag_us,
        }
        return {"b": self.begin_us, "t": self.end_us} | {key: value for key, value in parts.items() if value}


class KeptFrames:
    """The frames of a run so far, never more than `frames_max`: when they are full, every two of them become one."""

    def __init__(self, frames_max: int) -> None:
        self.frames: list[Frame] = []
        self._frames_max = frames_max
        self.width_us = 0
        """Frames that lie within it together are one."""

    def add(self, frame: Frame) -> None:
        """The frame that follows the last one. It is kept and changed: the caller must not."""
        if not self.frames:
            self.width_us = frame.end_us - frame.begin_us
        if self.frames and frame.end_us - self.frames[-1].begin_us <= self.width_us:
            self.frames[-1].merge(frame)
            return
        self.frames.append(frame)
        if len(self.frames) > self._frames_max:
            self.width_us *= 2
            wide: list[Frame] = []
            for each in self.frames:
                if wide and each.end_us - wide[-1].begin_us <= self.width_us:
                    wide[-1].merge(each)
                else:
                    wide.append(each)
            self.frames = wide
