"""What a node's clients do in a run: their subscriptions, and timed publications and changes of mind.

A script is plain data made by a workload; both runtimes play it through a `Player`, so that a scenario means
the same on both. Times count from the start of publishing, in emulated microseconds. A subscription with OR is a
command for each of its filters, and so is its withdrawal: brokers, journals and the judge know conjunctions only, and
a subscriber gets an event once however many of its filters match.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from murmur_pubsub.event import Event
from murmur_pubsub.faults import Fault, FaultKind
from murmur_pubsub.filter import Filter
from murmur_pubsub.filter_parser import parse_subscription, subscription_text
from murmur_pubsub.machine import Command, NodeName, Publish, Subscribe, Unsubscribe
from murmur_pubsub.values import Value

Change = tuple[int, Literal["subscribe", "unsubscribe"], int, str]
"""(time_us, what, subscriber number, filter text)."""


class Script(Protocol):
    """The part of a client's plan that a runtime plays; see `workloads.plan.ClientPlan`."""

    @property
    def subscriptions(self) -> Sequence[tuple[int, str]]:
        """(subscriber number, filter text), issued before publishing starts."""
        ...

    @property
    def publications(self) -> Iterable[tuple[int, int, Mapping[str, Value]]]:
        """(time_us, publisher number, attributes), in order of time; may be generated as it is read."""
        ...

    @property
    def changes(self) -> Sequence[Change]:
        """Subscriptions issued and withdrawn while others publish, in order of time."""
        ...


def subscribers_of(script: Script | None, wanted: str) -> list[int]:
    """Which subscribers of the script want that (a `subscription_text`) all the time."""
    if script is None:
        return []
    changing = {subscriber for _, _, subscriber, _ in script.changes}
    return [
        subscriber
        for subscriber, text in script.subscriptions
        if subscriber not in changing and (text == wanted or subscription_text(parse_subscription(text)) == wanted)
    ]


def _filters_of(subscriptions: Iterable[tuple[int, str]]) -> list[tuple[int, Filter]]:
    """(subscriber, filter) of each filter that is asked for."""
    return [(subscriber, wanted) for subscriber, text in subscriptions for wanted in parse_subscription(text)]


class ScriptedCommand(NamedTuple):
    """A command of a script. `ordinal` counts the script's subscriptions and withdrawals, the first ones included, so
    that one which is issued again after a restart is known for the same (0 for a publication)."""

    command: Command
    ordinal: int = 0


def _one_by_one(changes: Iterable[Change]) -> Iterator[tuple[int, Command]]:
    """The time of each change and its command: a change of several filters is several."""
    for time_us, what, subscriber, text in changes:
        kind = Subscribe if what == "subscribe" else Unsubscribe
        for wanted in parse_subscription(text):
            yield time_us, kind(subscriber, wanted)


class Player:
    """Walks through a script in order of time; a change comes before a publication of the same time.

    Numbers the events of each publisher from 0, by their place in the script: a number is never used twice, however
    often a node is restarted. `next_us` is when the next command is due (None: no more).
    """

    def __init__(self, script: Script) -> None:
        self._sequences: dict[int, int] = {}
        self._subscriptions = [
            ScriptedCommand(Subscribe(subscriber, wanted), ordinal)
            for ordinal, (subscriber, wanted) in enumerate(_filters_of(script.subscriptions))
        ]
        self._publications: Iterator[tuple[int, int, Mapping[str, Value]]] = iter(script.publications)
        self._changes = _one_by_one(script.changes)
        self._publication = next(self._publications, None)
        self._change = next(self._changes, None)
        self._ordinal = len(self._subscriptions)

    def subscriptions(self) -> list[ScriptedCommand]:
        """The commands issued before publishing starts."""
        return list(self._subscriptions)

    def catch_up(self, elapsed_us: int) -> list[ScriptedCommand]:
        """Skip to `elapsed_us` after the start of publishing, for a node that was down until then: its subscriptions
        and changes of mind so far, to be issued (again) in order. What it should have published never is."""
        commands = self.subscriptions()
        while (due_us := self.next_us) is not None and due_us < elapsed_us:
            scripted = self.take(due_us)
            if type(scripted.command) is not Publish:
                commands.append(scripted)
        return commands

    @property
    def next_us(self) -> int | None:
        """When the next command is due, from the start of publishing."""
        if self._change is not None and (self._publication is None or self._change[0] <= self._publication[0]):
            return self._change[0]
        return None if self._publication is None else self._publication[0]

    def take(self, now_us: int) -> ScriptedCommand:
        """The next command, issued at emulated time `now_us`. Raises IndexError if there is none."""
        change, publication = self._change, self._publication
        if change is not None and (publication is None or change[0] <= publication[0]):
            self._change = next(self._changes, None)
            ordinal, self._ordinal = self._ordinal, self._ordinal + 1
            return ScriptedCommand(change[1], ordinal)
        if publication is None:
            raise IndexError("the script is over")
        self._publication = next(self._publications, None)
        _, publisher, attributes = publication
        sequence = self._sequences.get(publisher, 0)
        self._sequences[publisher] = sequence + 1
        return ScriptedCommand(Publish(Event(publisher, sequence, now_us, attributes)))


class CommandSteps:
    """The steps of a plan that clients carry out, as commands. It remembers what each node has subscribed to by them,
    and withdrawn.

    Events of a publisher that only steps have are numbered from 0, in the order in which they are asked for.
    Subscriptions and withdrawals have ordinals after those of the node's script.
    """

    def __init__(self, scripts: Mapping[NodeName, Script]) -> None:
        self._scripts = scripts
        self._sequences: dict[int, int] = {}
        self._changed: dict[NodeName, list[ScriptedCommand]] = {}

    def commands(self, fault: Fault, now_us: int) -> list[ScriptedCommand]:
        """What the step has its node do, at emulated time `now_us`."""
        (name,) = fault.nodes
        if fault.kind is FaultKind.PUBLISH:
            sequence = self._sequences.get(fault.issuer, 0)
            self._sequences[fault.issuer] = sequence + 1
            return [ScriptedCommand(Publish(Event(fault.issuer, sequence, now_us, dict(fault.attributes))))]
        before = self._changed.setdefault(name, [])
        script = self._scripts.get(name)
        first = len(before)
        if script is not None:
            first += len(_filters_of(script.subscriptions)) + len(list(_one_by_one(script.changes)))
        kind = Subscribe if fault.kind is FaultKind.SUBSCRIBE else Unsubscribe
        filters = parse_subscription(fault.wanted)
        commands = [ScriptedCommand(kind(fault.issuer, wanted), at) for at, wanted in enumerate(filters, first)]
        before += commands
        return commands

    def again(self, name: NodeName) -> list[ScriptedCommand]:
        """What a node that was started again has to subscribe to, and to withdraw, once more."""
        return list(self._changed.get(name, ()))
