"""A node in real time: carries out its machine's effects on an asyncio loop, with TCP links to its peers.

The counterpart in virtual time is `murmur_virtual.virtual_node`; a machine cannot tell which of the two carries
it. Nothing here calls Ray: `actors.node_actor` is the actor around it.
"""

import asyncio
import random
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from actors.actor_settings import ActorSettings
from actors.clock import Clock
from actors.connection import Connection
from actors.counters import Counters
from actors.entrance import Entrance
from actors.gate import Gate
from actors.handshake import Party, Purpose
from actors.live_links import LiveLinks
from actors.log_keeper import LogKeeper
from actors.workbench import Workbench
from murmur_pubsub.codec import Codec
from murmur_pubsub.contract import DELAY_MAX_US, said
from murmur_pubsub.deployment import NodeSpec
from murmur_pubsub.errors import DiskError, InputError, RunError, WireError
from murmur_pubsub.journal import DropReason, Refusal, RowKind
from murmur_pubsub.links import HARD_LIMIT_FACTOR, Link, LinkSpec
from murmur_pubsub.machine import (
    Answer,
    CancelTimer,
    Deliver,
    Effect,
    Input,
    LinkDown,
    LinkUp,
    Machine,
    NodeName,
    Persist,
    Received,
    Record,
    Send,
    SetTimer,
    Start,
    TimerFired,
    TimerKey,
    Truncate,
)
from murmur_pubsub.protocol_error import ProtocolError, frames_below, overdue_error, protocol_error
from murmur_pubsub.recorder import Recorder
from murmur_pubsub.run_manifest import LATE_US

_new = tuple.__new__
"""Makes a NamedTuple of its fields without its constructor: for what is made for each message."""
_READ_BUFFER = memoryview(bytearray(256 * 1024))
"""All connections of the process read into it: what is read is taken at once, on one loop."""


class LiveNode:
    """One incarnation of a node. `link_specs` says which peers may have a link here and what it is like,
    `brokers` which of them are brokers; both may grow. `failure`: why it is of no use any more. `keeper` has the
    node's stable log. `clock`: where its times come from.
    """

    def __init__(
        self,
        spec: NodeSpec,
        incarnation: int,
        machine: Machine,
        recorder: Recorder,
        settings: ActorSettings,
        clock: Clock,
        keeper: LogKeeper | None = None,
    ) -> None:
        self.spec = spec
        self.machine = machine
        self.party = Party(spec.name, incarnation)
        self.token = settings.token
        self.clock = clock
        self.gate = Gate()
        self._workbench = Workbench(self)
        self.counters = Counters()
        self.connections: dict[NodeName, Connection] = {}
        self.link_specs: dict[NodeName, LinkSpec] = {}
        self.brokers: frozenset[NodeName] = frozenset()
        self.failure: Exception | None = None
        self._recorder = recorder
        self._seed = settings.run.seed
        self.links = LiveLinks(self, self.connections, settings.run)
        self.entrance = Entrance(lambda reason, count: recorder.refused(self.clock.now_us(), reason, count), self.gate)
        self.read_buffer = _READ_BUFFER
        self._links_made = 0
        self._codec = Codec(machine.message_types)
        self._read, self._read_client = self._codec.heard_by(spec.role)
        self._control = self._codec.control
        self._encoders = self._codec.encoders
        self._datagrams = self._codec.datagrams if self.links.has_datagrams else frozenset()
        self._timers: dict[TimerKey, asyncio.TimerHandle] = {}
        self._dirty: dict[Connection, None] = {}
        self._encoded_message: Any = None
        self._encoded = b""
        self._paused_for: NodeName | None = None
        self._lag_noted_us = 0
        self._hears_resets = machine.hears_resets
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._interpreters: Mapping[type, Callable[[Any, int], None]] = {
            Deliver: self._deliver,
            SetTimer: self._set_timer,
            CancelTimer: self._cancel_timer,
            Record: lambda effect, now_us: self._recorder.protocol(now_us, effect),
            Answer: lambda effect, now_us: self._recorder.answered(now_us, effect),
        }
        if keeper is not None:
            keeper.attach(lambda stored: self.gate.enter(lambda: self.take_input(stored)), self._lose_log)
            self._interpreters = {
                **self._interpreters,
                Persist: lambda effect, now_us: keeper.persist(effect),
                Truncate: lambda effect, now_us: keeper.truncate(effect),
            }

    def start(self, records: Sequence[bytes] = ()) -> None:
        """Give the machine its first input."""
        now_us = self.clock.now_us()
        self._recorder.plain(now_us, RowKind.START, self.party.incarnation)
        self.take_input(Start(records))

    def crash(self) -> None:
        """Be gone at once, as if the process were: the machine hears and the journal gets nothing more, and peers see
        their connections break."""
        self.failure = RunError(f"{self.party.name} was killed")
        self._recorder.fall_silent()
        self.gate.abandon()
        for timer in self._timers.values():
            timer.cancel()
        self.links.abandon()
        self.connections.clear()  # so that no connection is taken for a link that broke, and dialled again
        self._dirty.clear()

    def take_input(self, input: Input) -> None:
        """Hand the machine an input, carry out what follows, and let the frames go."""
        self.take(input)
        self.flush()

    def take(self, input: Input) -> None:
        """The same, but the frames wait for `flush`: many inputs at once make few frames."""
        if self.failure is not None:
            return
        now_us = self.clock.now_us()
        effects: Sequence[Effect] = ()
        try:
            effects = self.machine.handle(input, now_us)
            self.perform(effects, now_us)
        except (Exception, SystemExit) as error:
            self._fail(input, now_us, error, effects)

    def take_messages(self, connection: Connection, bodies: list[Any]) -> None:
        """A frame has arrived; called by the connection."""
        if self._workbench.occupied:
            self._workbench.put(connection, bodies)
        else:
            self.take_now(connection, bodies)

    def take_now(self, connection: Connection, bodies: list[Any]) -> None:
        """The same, whatever it costs."""
        source = connection.peer
        assert source is not None
        if connection.purpose is Purpose.LINK and self.connections.get(source) is not connection:
            return  # they waited here while it broke
        handle, control = self.machine.handle, self._control
        read = self._read if source in self.brokers else self._read_client
        recorder, counters = self._recorder, self.counters
        now_us = self.clock.now_us()
        for number, body in enumerate(bodies):
            if self.failure is not None:
                break
            if self._paused_for is not None and self.holds_back(connection):
                connection.backlog += bodies[number:]
                break
            taken: Received | None = None
            effects: Sequence[Effect] = ()
            try:
                message = read(body)
                if recorder.hops:
                    recorder.received(now_us, message, source)
                taken = _new(Received, (source, message))
                effects = handle(taken, now_us)
                counters.received += 1
                if type(message) in control:
                    counters.control_received += 1
                    connection.control_received += 1
                self.perform(effects, now_us)
            except WireError:
                self._note_malformed(source)
            except (Exception, SystemExit) as error:
                self._fail(taken, now_us, error, effects)
        self.flush()

    def holds_back(self, connection: Connection) -> bool:
        """Does it take nothing from that link now, because a queue to another peer is full?"""
        return self._paused_for not in (None, connection.peer) and connection.purpose is Purpose.LINK

    def slow_down(self, work_us: int) -> int:
        """From now on each message costs so much more; the cost that is in force."""
        self._workbench.slow_down(work_us)
        return self._workbench.work_us

    def says(self, question: str) -> int:
        """What the machine says of itself, such as whether it is `waiting`."""
        try:
            return said(question, getattr(self.machine, question))
        except Exception as error:
            self._fail(f"the question whether it is {question}", self.clock.now_us(), error)
            return False

    def check_invariants(self) -> None:
        """Those of the machine; raises `ProtocolError`."""
        try:
            self.machine.check_invariants()
        except Exception as error:
            now_us = self.clock.now_us()
            raise protocol_error(*self.party, now_us, "a look at its invariants", error) from error

    def at_work(self, waited: str) -> tuple[tuple[int, ...], ProtocolError] | None:
        """What the machine is at, asked from another thread because the node's own does not answer: numbers that differ
        from input to input, and what to say if it never comes back. None: it is at nothing."""
        frames = frames_below(sys._current_frames()[self._thread], _MACHINE_CODES)
        if not frames:
            return None
        known = frames[0].f_locals
        whose: object = known["self"]
        if whose is not self:
            return None  # it is another node of the same actor that keeps the thread
        taken, now_us = known.get("taken", known.get("input")), known.get("now_us", 0)
        error = overdue_error(*self.party, now_us, taken, waited, frames)
        return (id(frames[0]), known.get("number", 0), now_us), error

    def _fail(self, input: object, now_us: int, error: BaseException, effects: object = ()) -> None:
        """The machine raised, or handed back what cannot be carried out. An `InputError` says that it was told what it
        cannot do, a `DiskError` that the disk is full: it can mend neither."""
        if isinstance(error, InputError | DiskError):
            self._fall_silent(error)
        else:
            self._fall_silent(protocol_error(*self.party, now_us, input, error, effects))

    def _fall_silent(self, failure: Exception) -> None:
        """Keep the first reason for the driver and be silent from now on, as a crashed node is.

        asyncio would only log it, and a run would go on with a node whose state cannot be trusted."""
        if self.failure is None:
            self.failure = failure
        for connection in list(self.connections.values()):
            connection.close()

    def _lose_log(self, error: Exception) -> None:
        self._fall_silent(RunError(f"the stable log of {self.party.name} failed: {error!r}"))

    def perform(self, effects: Sequence[Effect], now_us: int) -> None:
        """Carry out the effects in order. Raises for what is none; what is wrong with it, `protocol_error` finds."""
        if type(effects) is not list and type(effects) is not tuple:
            raise TypeError("no effects")
        for effect in effects:
            if type(effect) is Send:
                to, message = effect
                self._send(to, message, now_us)
            elif type(effect) in self._interpreters:
                self._interpreters[type(effect)](effect, now_us)
            else:
                raise TypeError(f"the live runtime does not carry out {effect!r:.80}")

    def flush(self) -> None:
        """Write what has gathered for each peer as one frame."""
        for connection in self._dirty:
            connection.flush()
        self._dirty.clear()

    # ----------------------------------------------------------------------------------------- links
    def admits(self, connection: Connection) -> bool:
        """The other side has proven itself: may it have the link, or send the datagrams, that it was dialled for?"""
        if connection.purpose is Purpose.DATAGRAMS:
            return self.links.admits_datagrams(connection)
        if connection.peer not in self.link_specs:
            self.entrance.turn_away(connection, Refusal.NO_LINK)
            return False
        return connection.peer not in self.links.severed  # if it is, it will try again until the link has healed

    def link_made(self, connection: Connection) -> None:
        """Both ends have proven themselves: this connection is the link now, whatever was before."""
        peer = connection.peer
        assert peer is not None
        former = self.connections.get(peer)
        if former is not None:
            self.connection_lost(former, "replaced by a new connection")
            former.abort()
        self._links_made += 1
        rng = random.Random(f"{self._seed}/{self.party.name}/{self.party.incarnation}/link/{peer}/{self._links_made}")
        connection.link = Link(self.link_specs[peer], rng)
        self.connections[peer] = connection
        if self.holds_back(connection):
            connection.pause_reading(True)
        self._recorder.plain(self.clock.now_us(), RowKind.LINK_UP, peer=peer)
        self.take_input(LinkUp(peer, peer in self.brokers))

    def connection_lost(self, connection: Connection, reason: str) -> None:
        """The connection is gone; it may never have been a link, or be one no longer."""
        peer = connection.peer
        if peer is None:
            return
        now_us = self.clock.now_us()
        self._dirty.pop(connection, None)
        if connection.purpose is Purpose.DATAGRAMS:
            self._recorder.lost(now_us, self.links.datagrams_lost(connection), peer, DropReason.UNREACHABLE)
            if self._hears_resets:
                self.take_input(LinkDown(peer, reason))
            return
        if self.connections.get(peer) is not connection:
            return
        del self.connections[peer]
        self._recorder.lost(now_us, connection.unsent, peer, DropReason.LINK_BROKEN)
        self._recorder.plain(now_us, RowKind.LINK_DOWN, peer=peer)
        self.take_input(LinkDown(peer, reason))
        self.room_again()
        self.links.dial(peer)

    def change_link(self, peer: NodeName, spec: LinkSpec) -> None:
        """From now on the link to the peer is like that."""
        self.link_specs[peer] = spec
        connection = self.connections.get(peer)
        if connection is not None and connection.link is not None:
            connection.link.change(spec, self.clock.now_us())

    def cut_off(self, connection: Connection) -> None:
        """What the peer sends is no frame, and where the next one begins is unknown."""
        self._note_malformed(connection.peer)
        connection.abort()

    def _note_malformed(self, peer: NodeName | None) -> None:
        self.counters.malformed += 1
        self._recorder.plain(self.clock.now_us(), RowKind.MALFORMED, peer=peer)

    def congested(self, peer: NodeName) -> bool:
        """Is the queue to the peer full? Not if the link is down: what is sent then is lost, and waiting no use."""
        connection = self.connections.get(peer)
        if connection is None or connection.link is None:
            return False
        is_behind = connection.waiting >= connection.link.spec.queue_messages
        return is_behind or connection.full_until_us(self.clock.now_us()) is not None

    def room_again(self) -> None:
        """A peer takes messages again, or is gone: go on reading if no queue is full any more."""
        if self._paused_for is None:
            return
        if self.congested(self._paused_for):
            until_us = self.connections[self._paused_for].full_until_us(self.clock.now_us())
            if until_us is not None:  # a timer has filled the queue again, and nobody else would look once it is empty
                self.call_at(until_us, self.room_again)
            return
        self._recorder.plain(self.clock.now_us(), RowKind.PAUSE, 0, self._paused_for)
        self._paused_for = None
        for connection in list(self.connections.values()):
            backlog, connection.backlog = connection.backlog, []
            if backlog:
                self.take_messages(connection, backlog)  # which may fill a queue again
        if self._paused_for is None:
            for connection in self.connections.values():
                connection.pause_reading(False)

    def call_at(self, time_us: int, action: Callable[[], None]) -> asyncio.TimerHandle:
        """Have the action called at an emulated time."""
        return self.gate.call_later(self.clock.wall_s(time_us - self.clock.now_us()), action)

    def note_lag(self, lag_us: int) -> None:
        """Something happened later than it was due, by the lag; the journal gets the worst of each second."""
        self.counters.due += 1
        self.counters.late += lag_us > LATE_US
        if lag_us > self.counters.lag_us_max:
            self.counters.lag_us_max = lag_us
            now_us = self.clock.now_us()
            if now_us - self._lag_noted_us > 1_000_000:
                self._lag_noted_us = now_us
                self._recorder.plain(now_us, RowKind.LAG, lag_us)

    def forget_lag(self) -> None:
        """What was late so far delayed no event: count from now on."""
        self.counters.due = self.counters.late = self.counters.lag_us_max = 0

    # --------------------------------------------------------------------------------------- effects
    def _send(self, to: NodeName, message: Any, now_us: int) -> None:
        connection = self.connections.get(to)
        if connection is None or type(message) in self._datagrams:
            other = self.links.datagram_connection(to)
            if isinstance(other, DropReason):
                if type(to) is not str:
                    raise TypeError("no name")
                # Of no node at all, perhaps: a peer may have told the machine of it, and that must not end this node.
                self._recorder.dropped(now_us, message, to, other)
                return
            connection = other
        if connection.severed:
            self._recorder.dropped(now_us, message, to, DropReason.LINK_BROKEN)
            return
        if message is self._encoded_message:
            data = self._encoded
        else:
            data = self._encoded = self._encoders[type(message)](message)
            self._encoded_message = message
        link = connection.link
        assert link is not None
        control = type(message) in self._control
        if not connection.writable and self._overflows(connection, link.spec, message, control, now_us):
            return
        if self._recorder.hops:
            self._recorder.sent(now_us, message, to, len(data))
        copies = 1
        if link.perfect:
            connection.outbox.append(data)
            self._dirty[connection] = None
        else:
            arrivals_us, drop = link.transmit(len(data), now_us, control)
            copies = len(arrivals_us)
            for arrival_us in arrivals_us:
                connection.delay(data, arrival_us)
            if drop is not None:
                self._recorder.dropped(now_us, message, to, drop)
            elif copies > 1:
                self._recorder.duplicated(now_us, message, to)
            until_us = link.congested_until_us(now_us)
            if until_us is not None and connection.purpose is Purpose.LINK and self._pause_for(to):
                self.call_at(until_us, self.room_again)
        self.counters.sent += copies
        if control:
            self.counters.control_sent += copies
            connection.control_sent += copies

    def _overflows(self, connection: Connection, spec: LinkSpec, message: Any, control: bool, now_us: int) -> bool:
        """The peer is behind: obey the link's policy; True if the message is dropped."""
        waiting = connection.waiting
        if waiting < spec.queue_messages:
            return False
        assert connection.peer is not None
        if spec.on_overflow == "slow" and connection.purpose is Purpose.LINK:
            self._pause_for(connection.peer)
            if waiting < spec.queue_messages * HARD_LIMIT_FACTOR:
                return False
        if control:
            return False
        self._recorder.dropped(now_us, message, connection.peer, DropReason.OVERFLOW)
        return True

    def _pause_for(self, peer: NodeName) -> bool:
        """Stop taking messages from all but the peer whose queue is full; False if that is so already. In a tree
        nothing goes back to where it came from, so what the peer itself sends cannot fill its queue further,
        and no two wait for each other."""
        if self._paused_for is not None or self.spec.role == "client":
            return False
        self._paused_for = peer
        self._recorder.plain(self.clock.now_us(), RowKind.PAUSE, 1, peer)
        for name, connection in self.connections.items():
            if name != peer:
                connection.pause_reading(True)
        return True

    def _deliver(self, effect: Deliver, now_us: int) -> None:
        event, hops, subscribers = effect
        self._recorder.delivered(now_us, event, hops, subscribers)
        self.counters.delivered += len(subscribers)

    def _set_timer(self, effect: SetTimer, now_us: int) -> None:
        key, delay_us = effect
        if type(delay_us) is not int or not 0 <= delay_us <= DELAY_MAX_US or type(key) is not tuple:
            raise TypeError("no timer")
        running = self._timers.pop(key, None)
        if running is not None:
            running.cancel()
        due_us = now_us + delay_us

        def fire() -> None:
            del self._timers[key]
            self.note_lag(self.clock.now_us() - due_us)
            self.take_input(TimerFired(key))

        self._timers[key] = self.call_at(due_us, fire)

    def _cancel_timer(self, effect: CancelTimer, now_us: int) -> None:
        running = self._timers.pop(effect.key, None)
        if running is not None:
            running.cancel()


_MACHINE_CODES = frozenset(each.__code__ for each in (LiveNode.take, LiveNode.take_now))
"""What the node's thread runs while its machine is at work."""
