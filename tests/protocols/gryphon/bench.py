"""Brokers of a cell overlay on a bench: every message lies in a bag until the test delivers, drops or repeats it.

Control messages, timers of routing and what goes to a broker's own subscribers are carried out at once; other timers
fire when the test lets time pass. There are no clients: subscribers and publishers are the brokers' own.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from murmur_pubsub.event import Event
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.machine import (
    Answer,
    CancelTimer,
    Deliver,
    Effect,
    Input,
    LinkDown,
    LinkUp,
    NodeContext,
    Persist,
    Publish,
    Received,
    Record,
    Send,
    SetTimer,
    Start,
    Stored,
    Subscribe,
    TimerFired,
    Truncate,
)
from murmur_pubsub.message import is_control
from murmur_pubsub.places import CellPlan
from murmuration.registry import make_broker
from reliability.broker import Broker
from reliability.gryphon.gryphon import Gryphon
from reliability.gryphon.parameters import GryphonParameters
from reliability.gryphon.streams import BrokerStream

TWO_BRANCHES = CellPlan(
    cells={"p": ("p",), "m": ("m0", "m1"), "s": ("s",), "t": ("t",)},
    edges=(("p", "m"), ("m", "s"), ("m", "t")),
    roots=("p",),
)
"""A publishers' broker, a cell of two, and two subscribers' brokers; the links of a cell's brokers are there too."""


def to_nobody(parcel: "Parcel") -> bool:
    """Of what is lost: nothing."""
    return False


def to_s(parcel: "Parcel") -> bool:
    """Of what is lost: all that goes to s."""
    return parcel.to == "s"


class Parcel(NamedTuple):
    """A message on its way."""

    source: str
    to: str
    message: Any


class Bench:
    """`bag` holds what is on its way; `delivered` what subscribers got, in order; `records` the journal's rows;
    `answers` what became of orders; `timers_set` (broker, what for, after how many us) of reliability's timers."""

    routing = "cells"
    reliability = "gryphon"

    def __init__(self, plan: CellPlan = TWO_BRANCHES, **parameters: Any) -> None:
        self.plan = plan
        self.now_us = 1_000_000
        self.bag: list[Parcel] = []
        self.delivered: dict[int, list[tuple[int, int]]] = {}
        self.records: list[tuple[str, Record]] = []
        self.answers: list[Answer] = []
        self.timers_set: list[tuple[str, str, int]] = []
        self.sent: list[Parcel] = []
        self.brokers: dict[str, Broker] = {}
        self.logs: dict[str, dict[int, bytes]] = {}
        self.links: dict[str, dict[str, None]] = {}
        self._timers: dict[str, dict[tuple[Any, ...], int]] = {}
        self._incarnations: dict[str, int] = {}
        self._parameters = parameters
        self.held: dict[str, list[Persist]] = {}
        self._control: deque[Parcel] = deque()
        self._routing_timers: deque[tuple[str, tuple[Any, ...]]] = deque()
        self._linking = False
        self.hold_storage = False
        names = [name for members in plan.cells.values() for name in members]
        for name in names:
            self.start(name)
        for first, second in self._pairs(plan):
            self.link(first, second)

    # ---------------------------------------------------------------------------------------- the world
    def start(self, name: str) -> None:
        """Start a broker, or its next incarnation."""
        incarnation = self._incarnations.get(name, -1) + 1
        self._incarnations[name] = incarnation
        parameters = {
            "matching": "bitset", "routing": self.routing, "reliability": self.reliability,
            "reliability_parameters": GryphonParameters(**self._parameters),
        }  # fmt: skip
        broker = make_broker(NodeContext(name, 1, parameters, incarnation, self.plan))
        assert isinstance(broker, Broker)
        self.brokers[name] = broker
        self.links[name] = {}
        self._timers[name] = {}
        self.held[name] = []
        self.give(name, Start([record for _, record in sorted(self.logs.setdefault(name, {}).items())]))

    def crash(self, name: str) -> None:
        """The broker is gone, and with it what was on its way to and from it."""
        for peer in list(self.links[name]):
            self.unlink(name, peer)
        del self.brokers[name]

    def link(self, first: str, second: str) -> None:
        """The link between the two comes up."""
        for here, there in ((first, second), (second, first)):
            self.links[here][there] = None
        self._linking = True  # both ends know of the link before anything passes it
        self.give(first, LinkUp(second, True))
        self._linking = False
        self.give(second, LinkUp(first, True))

    def unlink(self, first: str, second: str) -> None:
        """The link between the two breaks, and loses what was on it."""
        self.bag = [parcel for parcel in self.bag if {parcel.source, parcel.to} != {first, second}]
        for here, there in ((first, second), (second, first)):
            del self.links[here][there]
            if here in self.brokers:
                self.give(here, LinkDown(there, "test"))

    def peers(self, name: str) -> list[str]:
        """The brokers that the overlay links it with."""
        return [
            first if second == name else second for first, second in self._pairs(self.plan) if name in (first, second)
        ]

    def subscribe(self, name: str, subscriber: int, text: str = "x >= 0") -> None:
        """A subscriber of the broker's own."""
        self.delivered.setdefault(subscriber, [])
        self.give(name, Subscribe(subscriber, parse_filter(text)))

    def publish(self, name: str, publisher: int, sequence: int, x: int = 1) -> None:
        """A publisher of the broker's own."""
        self.give(name, Publish(Event(publisher, sequence, self.now_us, {"x": x})))

    # ------------------------------------------------------------------------------------- what happens
    def deliver(self, parcel: Parcel) -> None:
        """A message arrives; it must be in the bag."""
        self.bag.remove(parcel)
        self.give(parcel.to, Received(parcel.source, parcel.message))

    def deliver_all(self, unless: Callable[[Parcel], bool] = lambda parcel: False) -> None:
        """Everything on its way arrives, and what follows from it, but what `unless` says is lost."""
        while self.bag:
            parcel = self.bag[0]
            if unless(parcel):
                self.bag.remove(parcel)
            else:
                self.deliver(parcel)

    def pass_time(self, milliseconds: int, unless: Callable[[Parcel], bool] = lambda parcel: False) -> None:
        """Time passes, timers fire in their order, and everything that is sent arrives (but what is lost)."""
        end_us = self.now_us + milliseconds * 1_000
        while (due := self.next_timer()) is not None and due[0] <= end_us:
            self.fire(due)
            self.deliver_all(unless)
        self.now_us = end_us

    def fire_next(self, milliseconds: int) -> None:
        """Time passes up to the next timer, which fires, or by so many milliseconds; nothing that is sent arrives."""
        due, end_us = self.next_timer(), self.now_us + milliseconds * 1_000
        if due is not None and due[0] <= end_us:
            self.fire(due)
        else:
            self.now_us = end_us

    def next_timer(self) -> tuple[int, str, tuple[Any, ...]] | None:
        """The timer that is due first: (when, broker, key)."""
        due = [
            (due_us, name, key)
            for name, timers in self._timers.items()
            for key, due_us in timers.items()
            if name in self.brokers
        ]
        return min(due, key=lambda each: (each[0], each[1], str(each[2])), default=None)

    def fire(self, due: tuple[int, str, tuple[Any, ...]]) -> None:
        """The timer runs out."""
        due_us, name, key = due
        self.now_us = max(self.now_us, due_us)
        del self._timers[name][key]
        self.give(name, TimerFired(key))

    def store(self, name: str) -> None:
        """What was held back reaches the broker's disk."""
        held, self.held[name] = self.held[name], []
        for persist in held:
            self.logs[name][persist.token] = persist.record
            self.give(name, Stored(persist.token))

    def give(self, name: str, input: Input) -> None:
        """Hand the broker an input and carry out what follows."""
        self._perform(name, self.brokers[name].handle(input, self.now_us))
        while (self._control or self._routing_timers) and not self._linking:
            if not self._control:
                waits, key = self._routing_timers.popleft()
                self._perform(waits, self.brokers[waits].handle(TimerFired(key), self.now_us))
                continue
            source, to, message = self._control.popleft()
            if to in self.links[source] and to in self.brokers:
                self._perform(to, self.brokers[to].handle(Received(source, message), self.now_us))

    def stream(self, name: str, pubend: int = 0) -> BrokerStream:
        """A broker's stream."""
        gryphon = self.brokers[name].reliability
        assert isinstance(gryphon, Gryphon)
        return gryphon.streams[pubend]

    def waits(self, name: str) -> bool:
        """Does the broker wait for something that it will ask for again?"""
        return self.brokers[name].waiting

    def sent_by(self, name: str, message_type: type) -> list[Parcel]:
        """All messages of a class that the broker has sent."""
        return [each for each in self.sent if each.source == name and type(each.message) is message_type]

    def _perform(self, name: str, effects: Sequence[Effect]) -> None:
        for effect in effects:
            if type(effect) is Send:
                if effect.to not in self.links[name] or effect.to not in self.brokers:
                    continue
                parcel = Parcel(name, effect.to, effect.message)
                self.sent.append(parcel)
                if is_control(type(effect.message)):
                    self._control.append(parcel)
                else:
                    self.bag.append(parcel)
            elif type(effect) is SetTimer and effect.key[0] == "routing":
                self._routing_timers.append((name, effect.key))
            elif type(effect) is SetTimer:
                self._timers[name][effect.key] = self.now_us + effect.delay_us
                self.timers_set.append((name, str(effect.key[1]), effect.delay_us))
            elif type(effect) is CancelTimer:
                self._timers[name].pop(effect.key, None)
            elif type(effect) is Deliver:
                for subscriber in effect.subscribers:
                    self.delivered[subscriber].append(effect.event.id)
            elif type(effect) is Persist:
                self.held[name].append(effect)
                if not self.hold_storage:
                    self.store(name)
            elif type(effect) is Truncate:
                self.logs[name] = {token: each for token, each in self.logs[name].items() if token >= effect.before}
            elif type(effect) is Record:
                self.records.append((name, effect))
            elif type(effect) is Answer:
                self.answers.append(effect)

    @staticmethod
    def _pairs(plan: CellPlan) -> list[tuple[str, str]]:
        cells = plan.cells
        pairs = [(a, b) for first, second in plan.edges for a in cells[first] for b in cells[second]]
        return pairs + [(a, b) for members in cells.values() for a in members for b in members if a < b]
