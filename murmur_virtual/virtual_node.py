"""A node in virtual time: carries out its machine's effects on the event queue.

The counterpart on Ray is `actors.node_actor`; a machine cannot tell which of the two carries it.
"""

import functools
import itertools
import random
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from murmur_pubsub.contract import DELAY_MAX_US, ContractError, next_token, said
from murmur_pubsub.deployment import NodeSpec
from murmur_pubsub.errors import DiskError, InputError, WireError
from murmur_pubsub.journal import DropReason, RowKind
from murmur_pubsub.links import Link
from murmur_pubsub.machine import (
    Answer,
    CancelTimer,
    Deliver,
    Effect,
    Input,
    LinkDown,
    Machine,
    NodeName,
    Persist,
    Received,
    Record,
    Send,
    SetTimer,
    Start,
    Stored,
    TimerFired,
    TimerKey,
    Truncate,
)
from murmur_pubsub.protocol_error import overdue_error, protocol_error, unsettled_error
from murmur_pubsub.recorder import Recorder
from murmur_pubsub.unpacking import unpack
from murmur_virtual.storage import VirtualStorage
from murmur_virtual.turns import Turns
from murmur_virtual.virtual_network import VirtualNetwork

EVENT_DATAGRAM, CONTROL_DATAGRAM, EVENT_MESSAGE, CONTROL_MESSAGE, TIMER, STORED, RESUME, CALL = range(-2, 6)
"""Kinds of queue entries; the first four are messages on their way. Modulo 2, and as an index of the two numbers
`in_flight`, a datagram is the same as what goes over a link."""
NEVER_US = 1 << 62
"""Later than all times."""

_new = tuple.__new__
"""Makes a NamedTuple without the Python call in its constructor: these two are made for every entry."""


class VirtualNode:
    """One incarnation of a node. Links are kept with the peer's node, looked up once."""

    __slots__ = (
        "_clients", "_codec", "_datagrams", "_encoded", "_encoded_message", "_encoders",
        "_exempt", "_held", "_hops", "_name", "_network", "_push", "_read", "_read_client", "_recorder", "_settled",
        "_severed", "_stale", "_timers", "_token", "_turns", "_uplink", "addressed", "disturbed", "down", "incarnation",
        "inputs", "links", "machine", "paused_until_us", "spec", "stalled", "stalls", "storage",
    )  # fmt: skip

    def __init__(
        self,
        network: "VirtualNetwork[VirtualNode]",
        spec: NodeSpec,
        machine: Machine,
        recorder: Recorder,
        storage: VirtualStorage,
        incarnation: int,
    ) -> None:
        self.spec = spec
        self.machine = machine
        self.links: dict[NodeName, tuple[Link, VirtualNode]] = {}
        self.storage = storage
        self.incarnation = incarnation
        self.paused_until_us = 0
        self.down = self.stalled = False
        self.inputs = self.stalls = 0
        """How many inputs its machine was given, and how often it was stalled."""
        self.disturbed = False
        """Does any of these, or a severed link, matter? An undisturbed node pays for this one test."""
        self._turns = Turns(self, network.call_at)
        self._settled = (-1, -1)
        """What the machine had been given when it was last asked up to when all has settled, and what it said."""
        self._severed: dict[NodeName, None] = {}
        self._stale: dict[tuple[NodeName, bool], tuple[int, int]] = {}
        """Of a peer's datagrams, or of what comes over its link: the newest that is to be lost, and until when."""
        self._network = network
        self._push = network.queue.push
        self._recorder = recorder
        self._hops = recorder.hops
        self._name = spec.name
        self._codec = network.codec(machine.message_types)
        self._encoders = self._codec.encoders
        self._read, self._read_client = self._codec.heard_by(spec.role)
        self._clients = network.clients
        self._timers: dict[TimerKey, int] = {}
        self._token = storage.last_token
        self._encoded_message: Any = None
        self._encoded = b""
        self._exempt: NodeName | None = None
        self._held: dict[NodeName, deque[tuple[NodeName, int, bytes]]] = {}
        """By source, the messages that wait until a full link has room."""
        self._datagrams = network.datagrams
        self.addressed: dict[NodeName, None] | None = {} if machine.hears_resets else None
        """The nodes to which it has sent datagrams, if its machine wants to hear when they are gone."""
        self._uplink = Link(spec.uplink, random.Random(f"{network.seed}/{spec.name}/uplink")) if spec.uplink else None

    def start(self, now_us: int) -> None:
        """Give the machine its first input."""
        self._recorder.plain(now_us, RowKind.START, self.incarnation)
        self.take_input(Start(self.storage.records()), now_us)

    def receive(self, source: NodeName, kind: int, data: bytes, now_us: int, again: bool = False) -> None:
        """A message has arrived, or had before (`again`); it waits while a full link keeps this node from taking it, or
        others of its source."""
        if self.disturbed and self._intercept(source, kind, data, now_us, again):
            return
        if source in self._held or (
            now_us < self.paused_until_us and source != self._exempt and kind % 2 == EVENT_MESSAGE
        ):
            self._held.setdefault(source, deque()).append((source, kind, data))
            return
        self._network.in_flight[kind] -= 1
        effects: Sequence[Effect] = ()
        taken: Received | None = None
        try:
            message = (self._read_client if source in self._clients else self._read)(unpack(data))
            if self._hops:
                self._recorder.received(now_us, message, source)
            taken = _new(Received, (source, message))
            self.inputs += 1
            effects = self.machine.handle(taken, now_us)
            self.perform(effects, now_us)
        except WireError as error:
            if taken is None:
                self._network.nodes[source].sent_unreadable(self._name, error, now_us)
            self._recorder.plain(now_us, RowKind.MALFORMED, peer=source)
        except BaseException as error:
            self._fail(taken, now_us, error, effects)

    def resume(self, now_us: int) -> None:
        """The full link has room again: take what was held, of each source in turn, until it is full once more."""
        if self.disturbed and self.must_wait(self.resume):
            return
        while self._held and now_us >= self.paused_until_us:
            if self._turns.is_at_work(now_us):
                self._turns.wait(self.resume)
                return
            source = next(iter(self._held))
            held = self._held.pop(source)
            self.receive(*held.popleft(), now_us, again=True)
            if held:
                self._held[source] = held
        if not self._held and now_us >= self.paused_until_us:
            self._recorder.plain(now_us, RowKind.PAUSE, 0, self._exempt)

    def fire(self, key: TimerKey, number: int, now_us: int) -> None:
        """A timer entry has come up; it counts only if it was not cancelled or set again since."""
        if self.disturbed and self.must_wait(self.fire, key, number):
            return
        if self._timers.get(key) == number:
            del self._timers[key]
            self.take_input(_new(TimerFired, (key,)), now_us)

    def take_input(self, input: Input, now_us: int) -> None:
        """Hand the machine an input that is no message or timer, and carry out what follows."""
        if self.disturbed and self.must_wait(self.take_input, input):
            return
        effects: Sequence[Effect] = ()
        self.inputs += 1
        try:
            effects = self.machine.handle(input, now_us)
            self.perform(effects, now_us)
        except BaseException as error:
            self._fail(input, now_us, error, effects)

    def sent_unreadable(self, to: NodeName, error: WireError, now_us: int) -> NoReturn:
        """The peer cannot read a message from here. No stranger sends anything in virtual time: the machine did it."""
        wrong = ContractError(f"a message that {to} cannot read ({error})", "fields as the message's class names them")
        self._fail("what it was sent for, before it came there", now_us, wrong, ())

    def refuse(self, kind: int, payload: Any, source: NodeName, now_us: int, wrong: ContractError) -> NoReturn:
        """Of this queue entry, which is for this node, more follows than a run can bear."""
        about: object = "what had waited, or was stored"
        if kind <= CONTROL_MESSAGE:
            about = Received(source, self._codec.decode(payload))
        elif kind == TIMER:
            about = TimerFired(payload)
        self._fail(about, now_us, wrong, ())

    def says(self, question: str) -> int:
        """What the machine says of itself, such as whether it is `waiting`."""
        try:
            return said(question, getattr(self.machine, question))
        except Exception as error:
            self._fail(f"the question whether it is {question}", self._network.now_us, error, ())

    @property
    def settled_until_us(self) -> int:
        """Up to when all has settled, as the machine knows. One that was given nothing since says the same again."""
        inputs, until_us = self._settled
        if inputs != self.inputs:
            until_us = self.says("settled_until_us") if self.says("settling") else NEVER_US
            self._settled = self.inputs, until_us
        return until_us

    def check_invariants(self) -> None:
        """Those of the machine, and what it says of itself; raises `ProtocolError`."""
        self.says("waiting")
        self.says("settling")
        try:
            self.machine.check_invariants()
        except Exception as error:
            self._fail("a look at its invariants", self._network.now_us, error, ())

    def _fail(self, input: object, now_us: int, error: BaseException, effects: object) -> NoReturn:
        """The machine raised, handed back what cannot be carried out, or was interrupted."""
        if isinstance(error, InputError | DiskError):
            raise error  # the machine was told what it cannot do, or the disk is full: it can mend neither
        if not isinstance(error, KeyboardInterrupt):
            made = protocol_error(self._name, self.incarnation, now_us, input, error, effects)
        elif self._network.overdue is None:
            raise error  # interrupted by a person
        else:
            made = overdue_error(self._name, self.incarnation, now_us, input, self._network.overdue, error)
        raise self._network.in_run(made) from error

    def refuse_unsettled(self, waited: str) -> NoReturn:
        """Its machine keeps a whole run from going on."""
        raise self._network.in_run(unsettled_error(self._name, self.incarnation, self._network.now_us, waited))

    def congested(self, peer: NodeName, now_us: int) -> int | None:
        """Until when nothing more should be sent to the peer, if its link or the peer itself is full."""
        if peer not in self.links:
            return None  # what is sent now is lost, and waiting would not help
        link, target = self.links[peer]
        until_us = link.congested_until_us(now_us)
        if until_us is None and len(target._held.get(self._name, ())) >= link.spec.queue_messages:
            until_us = max(target.paused_until_us, now_us + 1)
        return until_us

    # ------------------------------------------------------------------------------------------- faults
    def note(self, kind: RowKind, peer: NodeName) -> None:
        """Journal a row about the link to the peer."""
        self._recorder.plain(self._network.now_us, kind, peer=peer)

    def take_link(self, peer: "VirtualNode", link: Link, clear_us: int) -> None:
        """The link to the peer is there (again); until `clear_us` messages of its former connection still arrive."""
        name = peer.spec.name
        self.links[name] = (link, peer)
        self._severed.pop(name, None)
        self.disregard(name, clear_us)

    def disregard(self, peer: NodeName, clear_us: int, datagrams: bool = False) -> None:
        """Take nothing of what is on its way from the peer over the link (or as `datagrams`) now, to arrive by that
        time, or waits here."""
        if clear_us > self._network.now_us:
            self._stale[peer, datagrams] = (self._network.queue.pushed, clear_us)

        def of_these(message: tuple[NodeName, int, bytes]) -> bool:
            return message[0] == peer and (message[1] < EVENT_MESSAGE) == datagrams

        for source, kind, data in filter(of_these, self._messages_here()):
            self._network.in_flight[kind] += self.stalled
            self._lost(source, kind, data, self._network.now_us, DropReason.LINK_BROKEN)
        if left := deque(each for each in self._held.pop(peer, ()) if not of_these(each)):
            self._held[peer] = left
        self._turns.forget(lambda action, what: action == self._receive_again and of_these(what))

    def sever(self, peer: NodeName) -> None:
        """Take nothing more that comes over the link to the peer until there is a new one; datagrams are beside it."""
        self._severed[peer] = None
        self.refresh()

    def reset_by(self, peer: NodeName, now_us: int) -> None:
        """What carried datagrams to the peer was closed by its end."""
        if self.addressed is None or peer not in self.addressed:
            return
        del self.addressed[peer], self._network.addressed_by[peer][self._name]
        if not self.down:
            self.take_input(LinkDown(peer, "connection reset"), now_us)

    def forget_addressed(self) -> None:
        """The next incarnation has been made, and has sent nothing yet."""
        for peer in self.addressed or ():
            del self._network.addressed_by[peer][self._name]
        self.addressed = None

    def crash(self, now_us: int) -> None:
        """Be gone: what waits here is lost, timers and what was not synced too."""
        self.down = True
        self.refresh()
        if self.stalled:
            self._count_here(1)
        here = self._messages_here()
        self._turns.forget(lambda action, what: True)
        self._held = {}
        for source, kind, data in here:
            self._lost(source, kind, data, now_us, DropReason.NODE_DOWN)

    def stall(self) -> None:
        """Do nothing until `go_on`: all that comes waits."""
        self.stalled = True
        self.stalls += 1
        self._count_here(-1)
        self.refresh()

    def go_on(self, now_us: int) -> None:
        """Take up what has come in the meantime, in its order."""
        self.stalled = False
        self._count_here(1)
        self._turns.wake(now_us)

    def _messages_here(self) -> list[tuple[NodeName, int, bytes]]:
        """Those that have arrived and were not taken yet."""
        waiting = (arguments for action, arguments in self._turns.waiting if action == self._receive_again)
        return [*waiting, *itertools.chain.from_iterable(self._held.values())]

    def _count_here(self, sign: int) -> None:
        """Count them as in flight again, or no more: what is here does not move while the node is stalled."""
        for _, kind, _ in self._messages_here():
            self._network.in_flight[kind] += sign

    def slow_down(self, work_us: int, now_us: int) -> None:
        """Spend this time in addition on each message; 0: as before."""
        self._turns.work_us = work_us
        self.refresh()
        self._turns.wake(now_us)

    def must_wait(self, action: Callable[..., None], *arguments: Any, work: bool = False) -> bool:
        """Is the node down (then the action is dropped), stalled or busy (then it is called later, with the
        arguments and the time)? `work`: if it is called now, it keeps the node busy."""
        return self.down or self._turns.must_wait(action, arguments, self._network.now_us, work)

    def stored(self, persisted: Persist, now_us: int) -> None:
        """The record has reached the disk, if the node lived to see it."""
        if not self.down:
            self.storage.keep(persisted.token, persisted.record)
            self.take_input(Stored(persisted.token), now_us)

    def refresh(self) -> None:
        """Something has changed that may keep messages from being taken, such as what waits for its turn."""
        turns = self._turns
        self.disturbed = bool(
            self.down or self.stalled or turns.work_us or self._severed or self._stale or turns.waiting
        )
        if turns.waiting and not (self.stalled or self.down):
            self._network.busy[self._name] = None
        else:
            self._network.busy.pop(self._name, None)

    def _receive_again(self, source: NodeName, kind: int, data: bytes, now_us: int) -> None:
        self.receive(source, kind, data, now_us, again=True)

    def _intercept(self, source: NodeName, kind: int, data: bytes, now_us: int, again: bool) -> bool:
        """Does a fault keep the message from being taken now?"""
        datagram = kind < EVENT_MESSAGE
        if self.down or (source in self._severed and not datagram):
            self._lost(source, kind, data, now_us, DropReason.NODE_DOWN if self.down else DropReason.LINK_BROKEN)
            return True
        if (source, datagram) in self._stale and not again:  # what had arrived and is stale waits here no more
            newest, clear_us = self._stale[source, datagram]
            if now_us > clear_us:
                del self._stale[source, datagram]
                self.refresh()
            elif self._network.queue.number <= newest:
                self._lost(source, kind, data, now_us, DropReason.LINK_BROKEN)
                return True
        if not self.must_wait(self._receive_again, source, kind, data, work=True):
            return False
        if self.stalled:
            self._network.in_flight[kind] -= 1  # it moves no more, and may never again
        return True

    def _lost(self, source: NodeName, kind: int, data: bytes, now_us: int, reason: DropReason) -> None:
        """A message on its way ends here: a row of its sender says so."""
        self._network.in_flight[kind] -= 1
        self._network.nodes[source].lost(now_us, self._codec.decode(data), self._name, reason)

    def lost(self, now_us: int, message: Any, to: NodeName, reason: DropReason) -> None:
        """A message sent from here has not arrived."""
        self._recorder.dropped(now_us, message, to, reason)

    # ------------------------------------------------------------------------------------------ effects
    def perform(self, effects: Sequence[Effect], now_us: int) -> None:
        """Carry out the effects in order."""
        if type(effects) is not list and type(effects) is not tuple:
            raise TypeError("no effects")
        for effect in effects:
            kind = type(effect)
            if kind is Send:
                self._send(effect.to, effect.message, now_us)
            elif kind is Deliver:
                self._recorder.delivered(now_us, effect.event, effect.hops, effect.subscribers)
                self._network.deliveries += len(effect.subscribers)
            elif kind is SetTimer:
                key, delay_us = effect
                if type(delay_us) is not int or not 0 <= delay_us <= DELAY_MAX_US or type(key) is not tuple:
                    raise TypeError("no timer")
                self._timers[key] = self._push(now_us + delay_us, self, TIMER, key, None)
            elif kind is CancelTimer:
                self._timers.pop(effect.key, None)
            elif kind is Persist:
                self._token = next_token(self._token, effect)
                self._push(now_us + self._network.sync_us, self, STORED, effect, None)
            elif kind is Truncate:
                self.storage.truncate(effect.before)
            elif kind is Record:
                self._recorder.protocol(now_us, effect)
            elif kind is Answer:
                self._recorder.answered(now_us, effect)
            else:
                raise TypeError("no effect")

    def _send(self, to: NodeName, message: Any, now_us: int) -> None:
        message_type = type(message)
        if message is self._encoded_message:
            data = self._encoded
        else:
            data = self._encoded = self._encoders[message_type](message)
            self._encoded_message = message
        network = self._network
        control = message_type in self._codec.control
        if to in self.links and (self._datagrams is None or message_type not in self._codec.datagrams):
            link, target = self.links[to]
            kind = CONTROL_MESSAGE if control else EVENT_MESSAGE
        elif self._datagrams is not None and to in network.nodes:
            link, target = self._datagrams, network.nodes[to]
            kind = CONTROL_DATAGRAM if control else EVENT_DATAGRAM
            if self.addressed is not None:
                if to not in self.addressed:
                    self.addressed[to] = None
                    network.addressed_by[to][self._name] = None
                if target.down:  # no process listens there
                    network.call_at(now_us + link.draw_us(), functools.partial(self.reset_by, to))
            if network.divided(self._name, to):
                self._recorder.dropped(now_us, message, to, DropReason.LINK_BROKEN)
                return
        else:
            if type(to) is not str:
                raise TypeError("no name")
            if to not in network.numbers:
                raise ContractError(f"a Send to {to!r:.40}", f"a node of the run: {', '.join([*network.numbers][:10])}")
            self._recorder.dropped(now_us, message, to, DropReason.UNREACHABLE)
            return
        if self._hops:
            self._recorder.sent(now_us, message, to, len(data))
        if self._uplink is not None:
            departures_us, drop = self._uplink.transmit(len(data), now_us, control)
            if drop is not None:
                self._recorder.dropped(now_us, message, to, drop)
                return
            now_us = departures_us[0]
        if link.only_delays:
            network.in_flight[kind] += 1
            self._push(now_us + link.draw_us(), target, kind, data, self._name)
            return
        arrivals_us, drop = link.transmit(len(data), now_us, control)
        for arrival_us in arrivals_us:
            network.in_flight[kind] += 1
            self._push(arrival_us, target, kind, data, self._name)
        if drop is not None:
            self._recorder.dropped(now_us, message, to, drop)
        elif len(arrivals_us) > 1:
            self._recorder.duplicated(now_us, message, to)
        if (link.departures_us or self._name in target._held) and kind >= EVENT_MESSAGE and self.spec.role == "broker":
            self._pause_if_full(to, now_us)

    def _pause_if_full(self, peer: NodeName, now_us: int) -> None:
        """Stop taking what could fill the link further: everything but what the peer itself sends, since in a
        tree nothing goes back to where it came from, so that two full links never wait for each other."""
        until_us = self.congested(peer, now_us)
        if until_us is not None and until_us > self.paused_until_us:
            if now_us >= self.paused_until_us and not self._held:
                self._recorder.plain(now_us, RowKind.PAUSE, 1, peer)
            self.paused_until_us = until_us
            self._exempt = peer
            self._push(until_us, self, RESUME, None, None)


MACHINE_CODES = frozenset([VirtualNode.receive.__code__, VirtualNode.take_input.__code__])
AFTERMATH_CODES = frozenset([VirtualNode._fail.__code__])
"""What a thread runs while a machine is at work, and what below that when it is no more."""
