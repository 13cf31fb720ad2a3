"""The verdict so far of a run that goes on: what is owed, judged event by event once its deadline has passed.

An event is judged when its deadline has passed by the newest time in the journal, and with it everything that decides
who had to get it: subscriptions, when they had settled, withdrawals. So rows may come in any order, in batches of any
size, and the verdict is the same. What is missing then and comes later is late. No fault excuses anything here, and
nothing is said of deliveries that nobody was owed: both are the judge's to say when the run is over. So is it what
became of events that a broker refused: here they are owed as all others.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from murmur_pubsub.event import unpack_attributes
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.journal import NONE
from spark_analysis.evaluation import Condition, EventColumns, condition_of
from spark_analysis.fault_windows import NEVER_US
from spark_analysis.rules import Rules

DEADLINE_US = 5_000_000
_REMEMBERED = 4
"""So many deadlines after its own, copies of an event are still counted."""
_UNKNOWN_MAX = 100_000
"""Deliveries whose event has not been read yet: more than that are forgotten, the oldest first."""
_NAMED = 5

EventKey = tuple[int, int]
Pair = tuple[EventKey, int]


class SubscriptionRecord(NamedTuple):
    """A subscription that was issued, or withdrawn, as in the journal's side files."""

    time_us: int
    node: int
    subscriber: int
    wanted: str
    ordinal: int
    withdrawn: bool


class JournalBatch(NamedTuple):
    """Rows of a journal, those of one writer in their order. `settled`: covers_us and time_us. `events`: source,
    sequence, time_us and packed attributes. `deliveries`: source, sequence, subscriber and time_us."""

    subscriptions: Sequence[SubscriptionRecord] = ()
    settled: Sequence[tuple[int, int]] = ()
    events: Sequence[tuple[int, int, int, bytes]] = ()
    deliveries: Iterable[tuple[int, int, int, int]] = ()
    newest_us: int = 0


@dataclass(frozen=True, slots=True)
class RunningVerdict:
    """`owed` deliveries are past their deadline; of them `made` in time, `late` or `missing`. `duplicate`: deliveries
    beyond the first. `through_us`: events published up to then are judged. `named`: some of what is missing."""

    owed: int
    made: int
    late: int
    missing: int
    duplicate: int
    through_us: int
    deadline_us: int
    named: tuple[str, ...]


@dataclass(slots=True)
class _Life:
    subscriber: int
    issued_us: int
    settled_us: int
    withdrawn_us: int = NEVER_US


@dataclass(slots=True)
class _Delivered:
    """What became of one event: when each subscriber was first handed it."""

    published_us: int
    blob: bytes
    first_us: dict[int, int] = field(default_factory=dict)


class RunningJudge:
    """Takes a journal batch by batch."""

    def __init__(self, rules: Rules, deadline_us: int = DEADLINE_US) -> None:
        self._grace_us = rules.withdrawal_grace_us
        self._deadline_us = deadline_us
        self._newest_us = 0
        self._issued: set[tuple[int, int]] = set()
        self._lives: defaultdict[str, list[_Life]] = defaultdict(list)
        self._conditions: dict[str, Condition] = {}
        self._settled: list[tuple[int, int]] = []
        self._waiting: dict[EventKey, _Delivered] = {}
        self._judged: dict[EventKey, _Delivered] = {}
        self._unknown: deque[tuple[EventKey, int, int]] = deque(maxlen=_UNKNOWN_MAX)
        self._missing: dict[Pair, None] = {}
        self._owed = self._made = self._late = self._duplicate = 0

    def take(self, batch: JournalBatch) -> None:
        """Take in what follows in the journal, and judge what is due."""
        self._newest_us = max(self._newest_us, batch.newest_us)
        self._settle(batch.settled)
        for record in sorted(batch.subscriptions, key=lambda each: each.time_us):
            self._subscribe(record)
        for source, sequence, time_us, blob in batch.events:
            event = source, sequence
            if event not in self._waiting and event not in self._judged:
                self._waiting[event] = _Delivered(time_us, blob)
        unknown, self._unknown = self._unknown, deque(maxlen=_UNKNOWN_MAX)
        for event, subscriber, time_us in unknown:
            self._deliver(event, subscriber, time_us)
        for source, sequence, subscriber, time_us in batch.deliveries:
            self._deliver((source, sequence), subscriber, time_us)
        self._judge_due()

    @property
    def verdict(self) -> RunningVerdict:
        """The verdict so far."""
        named = (f"{source}:{sequence} for subscriber {reader}" for (source, sequence), reader in self._missing)
        return RunningVerdict(
            self._owed, self._made, self._late, len(self._missing), self._duplicate,
            max(0, self._newest_us - self._deadline_us), self._deadline_us,
            tuple(each for each, _ in zip(named, range(_NAMED), strict=False)),
        )  # fmt: skip

    def _settle(self, settled: Sequence[tuple[int, int]]) -> None:
        self._settled += settled
        for lives in self._lives.values() if settled else ():
            for life in lives:
                for covers_us, time_us in settled:
                    if covers_us >= life.issued_us:
                        life.settled_us = min(life.settled_us, time_us)

    def _subscribe(self, record: SubscriptionRecord) -> None:
        if record.ordinal != NONE:
            if (record.node, record.ordinal) in self._issued:
                return  # once more, after a restart
            self._issued.add((record.node, record.ordinal))
        lives = self._lives[record.wanted]
        if record.withdrawn:
            held = (life for life in lives if life.subscriber == record.subscriber and life.withdrawn_us == NEVER_US)
            first = next(held, None)
            if first is not None:
                first.withdrawn_us = record.time_us
            return
        settled = (time_us for covers_us, time_us in self._settled if covers_us >= record.time_us)
        lives.append(_Life(record.subscriber, record.time_us, min(settled, default=NEVER_US)))
        if record.wanted not in self._conditions:
            self._conditions[record.wanted] = condition_of(parse_filter(record.wanted))

    def _deliver(self, event: EventKey, subscriber: int, time_us: int) -> None:
        known = self._waiting.get(event) or self._judged.get(event)
        pair = event, subscriber
        if pair in self._missing:  # it may have been in time, and in a file that was read before
            del self._missing[pair]
            in_time = known is not None and time_us <= known.published_us + self._deadline_us
            self._made, self._late = self._made + in_time, self._late + (not in_time)
        if known is None:
            self._unknown.append((event, subscriber, time_us))
        elif subscriber in known.first_us:
            self._duplicate += 1
        else:
            known.first_us[subscriber] = time_us

    def _judge_due(self) -> None:
        before_us = self._newest_us - self._deadline_us
        due = {event: known for event, known in self._waiting.items() if known.published_us <= before_us}
        if not due:
            return
        columns = EventColumns([unpack_attributes(known.blob) for known in due.values()])
        owed: list[set[int]] = [set() for _ in due]
        times = [known.published_us for known in due.values()]
        for wanted, condition in self._conditions.items():
            lives = self._lives[wanted]
            for row in columns.matching(condition).tolist():
                for life in lives:
                    if life.settled_us < times[row] < life.withdrawn_us - self._grace_us:
                        owed[row].add(life.subscriber)
        for (event, known), subscribers in zip(due.items(), owed, strict=True):
            self._judge(event, known, subscribers)
            del self._waiting[event]
            self._judged[event] = known
            known.blob = b""
        forget_us = before_us - _REMEMBERED * self._deadline_us
        for event in [event for event, known in self._judged.items() if known.published_us <= forget_us]:
            del self._judged[event]

    def _judge(self, event: EventKey, known: _Delivered, subscribers: Iterable[int]) -> None:
        for subscriber in sorted(subscribers):
            self._owed += 1
            first_us = known.first_us.get(subscriber)
            if first_us is None:
                self._missing[event, subscriber] = None
            elif first_us > known.published_us + self._deadline_us:
                self._late += 1
            else:
                self._made += 1
