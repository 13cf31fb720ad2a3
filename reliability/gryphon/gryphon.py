"""Exactly-once delivery in publisher order: one broker's part of the knowledge and curiosity streams.

Theory of operation (Bhola et al., DSN 2002). Only the publishers' broker (PHB) stores messages, once, before they are
sent; all other brokers hold soft state. Each pubend there is an ordered stream; `reliability.gryphon.streams` carries
it down a tree and carries nacks and acknowledgements up, `reliability.gryphon.subend` delivers it. This module gives
messages, timers and links to the part that they concern, and decides when what gathers is sent: acknowledgements after
`ack_delay`, silence after SIT, AckExpected after AET.

It keeps still when there is nothing to do: a pubend announces its silence once after its last message, and expects
acknowledgements until it has them.
"""

from collections.abc import Callable, Iterable, Sequence, Set
from typing import Any, get_args

from murmur_pubsub.event import Event
from murmur_pubsub.fingerprint import Fact, state_of
from murmur_pubsub.machine import (
    Effect,
    Input,
    LinkDown,
    LinkUp,
    NodeContext,
    NodeName,
    Received,
    Send,
    SetTimer,
    Start,
    Stored,
    TimerFired,
)
from reliability.gryphon.ack_expected import AckExpectations
from reliability.gryphon.acknowledging import acknowledge, speaks_for_all
from reliability.gryphon.giving_up import GivenUp
from reliability.gryphon.knowledge import DataTick, KnowledgeStream
from reliability.gryphon.looking_back import begin_subend, look_back, look_back_after
from reliability.gryphon.merge import Merge
from reliability.gryphon.messages import (
    Accepted,
    AckExpected,
    Acks,
    BetweenBrokers,
    Data,
    Handed,
    HandedBack,
    MembersAcks,
    Nack,
    Silence,
    Submission,
)  # fmt: skip
from reliability.gryphon.parameters import GryphonParameters
from reliability.gryphon.pubend import Pubend
from reliability.gryphon.pubend_log import PubendLog
from reliability.gryphon.publishing import Publishing
from reliability.gryphon.round_trip import RoundTrip
from reliability.gryphon.sessions import Sessions
from reliability.gryphon.streams import BrokerStream, stream_timer
from reliability.gryphon.subend import Subend
from reliability.layer import BrokerServices, Reliability
from routing.router import StreamObserver

_ACCEPT_DELAY_US = 50_000


class Gryphon(Reliability, StreamObserver):
    """One broker's part; also a `reliability.layer.ClientWatcher`."""

    message_types: tuple[type, ...] = (*get_args(BetweenBrokers), Submission, Accepted, Handed, HandedBack)
    persists = True
    between_brokers: frozenset[type] = frozenset(get_args(BetweenBrokers))

    def __init__(self, context: NodeContext, parameters: GryphonParameters, services: BrokerServices) -> None:
        self._parameters = parameters
        self._services = services
        self._name = context.name
        self._router = services.stream_router()
        self._router.connect(self)
        self._took_part = self._router.takes_part
        self._given_up = GivenUp(self._router, parameters.give_up_after)
        self._publishing = self._make_publishing()
        self.streams: dict[int, BrokerStream] = {}
        self._numbers_of: dict[NodeName, list[int]] = {}
        for number, root in parameters.numbered(self._router.brokers, self._router.roots):
            self.streams[number] = self._make_stream(number, root)
            self._numbers_of.setdefault(root, []).append(number)
        self.sessions = Sessions(context.incarnation, parameters.window)
        self._merge = Merge(self.streams, self._router, self._hand) if parameters.order == "total" else None
        self._newest_tick = -1
        self._blocked: dict[int, None] = {}
        self._unacked: dict[int, None] = {}
        self._in_effect: dict[NodeName, int] = dict.fromkeys(self._numbers_of, 0)
        self._unsilenced: dict[int, None] = {}
        self._timers: dict[str, None] = {}
        self._expectations = AckExpectations(parameters, self._router)
        self._now_us = 0
        self._messages: dict[type, Callable[[NodeName, Any], Sequence[Effect]]] = {
            Data: self._on_knowledge,
            Silence: self._on_knowledge,
            Nack: self._on_nack,
            Acks: self._on_acks,
            MembersAcks: self._on_acks,
            AckExpected: self._on_ack_expected,
            Submission: self._on_submission,
            HandedBack: self._on_handed_back,
        }
        self._stream_timers: dict[str, Callable[[BrokerStream], list[Effect]]] = {
            "gap": self._look_for_gap,
            "expect": self._expect_acks,
            "remind": self._expectations.repeat,
            "kept": self._expectations.look_at_kept,
            "forget": self._forget_curiosity,
            "dct": self._look_back,
        }
        self._broker_timers: dict[str, Callable[[], list[Effect]]] = {
            "acks": self._ack_unacked,
            "silence": self._tell_silence,
            "accept": self._publishing.accept,
            "sessions": self._repeat_to_clients,
        }

    def publish(self, event: Event, now_us: int) -> Sequence[Effect]:
        return self._publishing.publish(event, now_us)

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        self._now_us = now_us
        if type(input) is Received:
            message: Any = input.message
            if type(message) in self.between_brokers and message.route:
                return self._on_detour(message)
            return self._messages[type(message)](input.source, message)
        if type(input) is TimerFired:
            return self._on_timer(input.key)
        if type(input) is Stored:
            return self._on_stored(input.token)
        if type(input) is Start:
            return self._recover(input.records)
        if type(input) in (LinkUp, LinkDown):
            return ()  # nacks and acknowledgements take the ways that there are when they are sent
        raise TypeError(f"guaranteed delivery takes no {input!r}")

    def client_up(self, client: NodeName, now_us: int) -> Sequence[Effect]:
        """See `reliability.layer.ClientWatcher`."""
        self.sessions.begin(client)
        return ()

    def client_down(self, client: NodeName, now_us: int) -> Sequence[Effect]:
        """See `reliability.layer.ClientWatcher`."""
        self._now_us = now_us
        self.sessions.end(client)
        self._publishing.client_gone(client)
        return self._unblock()

    @property
    def settling(self) -> bool:
        """Is there a subscription here that some pubend does not heed yet?"""
        if not self._services.has_subscribers or self._router.has_left:
            return False
        version = self._router.version
        return any(known < version and not self._router.is_forgotten(root) for root, known in self._in_effect.items())

    @property
    def waiting(self) -> bool:
        """Has something been sent that is not acknowledged, or is something missing here?"""
        return (
            bool(self._expectations)
            or any(self.streams[number].can_be_acknowledged for number in self._expectations.keeping)
            or any(stream.watching_gap for stream in self.streams.values())
            or self.sessions.any_outstanding
        )

    @property
    def messages_kept(self) -> int:
        """How many messages this broker keeps for others to ask for, all streams together."""
        return sum(len(stream.knowledge.messages) for stream in self.streams.values())

    def fingerprint(self) -> Set[Fact]:
        streams = {stream.state(stream.number in self._blocked) for stream in self.streams.values()}
        return streams | {state_of("Gryphon", clients_owe=self.sessions.any_outstanding, unsettled=self.settling)}

    def check_invariants(self) -> None:
        for stream in self.streams.values():
            stream.check_invariants()

    # ------------------------------------------------------------------------------------------- set-up
    def _make_publishing(self) -> Publishing:
        return Publishing(self._name, PubendLog(self._name, self._parameters.checkpoint), self._parameters.log_most)

    def _make_stream(self, number: int, root: NodeName) -> BrokerStream:
        given, pubend = self._parameters, None
        if root == self._name:
            pubend = Pubend(number, KnowledgeStream())
            self._publishing.pubends.append(pubend)
            knowledge = pubend.knowledge
        elif not self._router.stands_alone:
            knowledge = KnowledgeStream(given.cache)
        else:
            knowledge = KnowledgeStream(given.receive_cache, keeps_oldest=True)
        round_trip, given_up = RoundTrip.of(given), self._given_up.branches
        return BrokerStream(number, root, self._router, knowledge, pubend, given.nack_chunk, round_trip, given_up)

    def _recover(self, records: Sequence[bytes]) -> Sequence[Effect]:
        self._publishing.recover(records)
        unacked = [pubend for pubend in self._publishing.pubends if pubend.last_message >= 0]
        return [effect for each in unacked for effect in self._expectations.begin(each.number, each.last_message)]

    # -------------------------------------------------------------------------------- publishers' broker
    def _on_submission(self, source: NodeName, message: Submission) -> Sequence[Effect]:
        return [*self._publishing.submit(source, message, self._now_us), *self._accept_later()]

    def _on_stored(self, token: int) -> Sequence[Effect]:
        effects, known = self._publishing.stored(token)
        if known is None:
            return effects
        pubend, start, tick, event = known
        stream = self.streams[pubend.number]
        if event is None:
            return [*effects, *stream.be_silent(start, tick), *stream.tell_silence(), *self._advance(stream)]
        effects += [*stream.publish(start, tick, DataTick(event, 0, 0)), *self._advance(stream)]
        effects += [*self._accept_later(), *self._note_tick(tick)]
        self._unsilenced[pubend.number] = None
        return [*effects, *self._silence_later(), *self._expectations.begin(pubend.number)]

    def _note_tick(self, tick: int) -> list[Effect]:
        """A message on that tick was seen here: in a total order it waits for the pubends here that are not so far."""
        self._newest_tick = max(self._newest_tick, tick)
        behind = self._merge is not None and self._publishing.note_behind(self._newest_tick, self._unsilenced)
        return self._silence_later() if behind else []

    def _accept_later(self) -> list[Effect]:
        return self._set_once("accept", _ACCEPT_DELAY_US) if self._publishing.must_accept else []

    def _expect_acks(self, stream: BrokerStream) -> list[Effect]:
        assert stream.pubend is not None
        effects = [*self._ack([stream]), *self._take_turns(stream.pubend.last_message)]
        return [*effects, *self._expectations.look(stream, self._now_us)]

    def _take_turns(self, tick: int) -> list[Effect]:
        """In a total order a subend acknowledges a tick when all other streams here are so far."""
        if self._merge is None:
            return []
        self._merge.expect(tick)
        return self._advance_together(self._merge)

    # ---------------------------------------------------------------------------------------- all brokers
    def _on_detour(self, message: BetweenBrokers) -> Sequence[Effect]:
        """A message with a path: it is taken as from the broker that sent it first, or passed on."""
        route = message.route
        if self._name == route[-1]:
            return self._messages[type(message)](route[0], message._replace(route=[]))
        if self._name not in route:
            return ()
        effects: list[Effect] = []
        if type(message) is Data:
            stream = self.streams.get(message.pubend)
            if stream is not None and stream.pubend is None and self._router.branch_of(route[0]) is None:
                stream.overhear(message)
                effects += self._expectations.keep(stream)
            message = message._replace(hops=message.hops + 1)
        return [*effects, Send(route[route.index(self._name) + 1], message)]

    def _on_knowledge(self, source: NodeName, message: Data | Silence) -> Sequence[Effect]:
        stream = self.streams.get(message.pubend)
        if stream is None or stream.pubend is not None:
            return ()
        if type(message) is Data:
            effects = stream.take_data(message, self._now_us)
            if not (self._router.stands_alone or stream.number in self._expectations.keeping):
                effects += self._expectations.keep(stream)
            effects += self._note_tick(message.tick) if self._merge is not None else ()
        else:
            effects = stream.take_silence(message, self._now_us)  # type: ignore[arg-type]
        if stream.subend is not None:
            effects += self._advance(stream)
        elif not stream.ostreams:
            effects += self._ack_later(stream)
        if "silence" not in self._timers and stream.ostreams and stream.has_silence_to_tell:
            effects += self._silence_later()
        return effects

    def _on_nack(self, source: NodeName, message: Nack) -> Sequence[Effect]:
        stream = self.streams.get(message.pubend)
        if stream is None or message.first > message.last:
            return ()
        effects: list[Effect] = []
        if stream.pubend is not None and message.last > stream.pubend.last:
            effects += self._publishing.log_silence(stream.pubend, self._now_us)
        effects += stream.take_nack(source, message, self._now_us)
        return [*effects, *self._forget_later(stream)]

    def _forget_later(self, stream: BrokerStream) -> list[Effect]:
        """What was asked for is forgotten when its answer is overdue: after half of NRT to the whole of it."""
        if stream.forgetting or not stream.curious:
            return []
        stream.forgetting = True
        delay_us = min(self._parameters.forgetting * 1_000, stream.round_trip.nrt_us // 2)
        return [stream_timer("forget", stream.number, delay_us)]

    def _on_acks(self, source: NodeName, message: Acks | MembersAcks) -> Sequence[Effect]:
        if not speaks_for_all(message, self._router):
            return ()
        effects: list[Effect] = []
        for number, tick in zip(message.upto[::2], message.upto[1::2], strict=False):
            stream = self.streams.get(number)
            if stream is not None:
                stream.take_ack(source, tick)
                effects += self._ack_later(stream)
        return effects

    def _on_ack_expected(self, source: NodeName, message: AckExpected) -> Sequence[Effect]:
        stream = self.streams.get(message.pubend)
        if stream is None or stream.pubend is not None:
            return ()
        effects = self._expectations.pass_on(stream, message.tick)
        stream.acked_up = -1  # what was acknowledged may have been lost
        effects += self._ack([stream])
        if stream.subend is not None:
            stream.subend.expect(message.tick)
            effects += [*self._look_for_gap(stream), *self._take_turns(message.tick)]
        return effects

    def _ack_later(self, stream: BrokerStream) -> list[Effect]:
        self._unacked[stream.number] = None
        return self._set_once("acks", self._parameters.ack_delay * 1_000)

    def _ack(self, streams: Iterable[BrokerStream]) -> list[Effect]:
        """Accumulate, and tell upstream what is new; where the pubend is here, the log has had its use of it."""
        return [*acknowledge(streams, self._router), *self._publishing.cut_log(self._now_us)]

    # -------------------------------------------------------------------------------- subscribers' broker
    def marks(self) -> list[int]:
        """See `routing.router.StreamObserver`: the first tick of each pubend here that is still free."""
        return [pubend.last + 1 for pubend in self._publishing.pubends]

    @property
    def _heeded(self) -> bool:
        """Does it matter to somebody here from when on this broker's filters are heeded?"""
        return self._services.has_subscribers

    def on_in_effect(self, root: NodeName, version: int, marks: Sequence[int]) -> Sequence[Effect]:
        """See `routing.router.StreamObserver`: from these ticks on, the pubends there heed this broker's filters."""
        effects: list[Effect] = []
        self._in_effect[root] = version
        if not self._heeded:
            return effects
        for number, mark in zip(self._numbers_of.get(root, ()), marks, strict=False):
            effects += begin_subend(self.streams[number], version, mark, self._parameters)
            effects += self._advance(self.streams[number])
        return effects

    def on_ways_changed(self) -> Sequence[Effect]:
        """See `routing.router.StreamObserver`."""
        return [*self._given_up.ways_changed(), *self._wait_for_less()]

    def on_tree_changed(self) -> Sequence[Effect]:
        """See `routing.router.StreamObserver`. What this broker has acknowledged for others it has not for a branch
        that is new. So one in whose place others stand begins its streams anew, as after a restart. Where one stands
        alone nothing reaches that branch by another: nothing that is final can be wanted there."""
        changed, self._took_part = self._took_part != self._router.takes_part, self._router.takes_part
        for number, stream in self.streams.items():
            anew = changed or (stream.has_new_branch and not self._router.stands_alone)
            if anew and stream.pubend is None:
                self.streams[number] = self._make_stream(number, stream.root)
            else:
                stream.follow_tree()
        self._blocked = {} if changed else self._blocked
        return [effect for stream in self.streams.values() for effect in self._ack_later(stream)]

    def _wait_for_less(self) -> list[Effect]:
        """Branches may have been given up: what is acknowledged by all others is final."""
        streams = self.streams.values() if self._given_up.branches else ()
        return [effect for stream in streams for effect in self._ack_later(stream)]

    def _advance(self, stream: BrokerStream) -> list[Effect]:
        """Deliver what the doubt horizon passes."""
        subend = stream.subend
        if subend is None:
            return self._ack_later(stream) if stream.pubend is not None and not stream.ostreams else []
        if self._merge is not None:
            return self._advance_together(self._merge)
        effects: list[Effect] = []
        knowledge = stream.knowledge
        begin, horizon = subend.next, knowledge.horizon(subend.next)
        if horizon > begin:
            for tick in knowledge.ticks(begin, horizon - 1):
                if not self._hand(stream.number, tick, knowledge.messages[tick], subend.reach(tick), effects):
                    self._blocked[stream.number] = None
                    break
                subend.next = tick + 1
            else:
                subend.next = horizon
            if subend.next > begin:
                self._passed(stream, subend, effects)
        if not stream.watching_gap and stream.number not in self._blocked and subend.has_gap(knowledge):
            self._watch_gap(stream, subend, effects)
        return effects

    def _passed(self, stream: BrokerStream, subend: Subend, effects: list[Effect]) -> None:
        """The subend got further, by these effects; append what else comes of it."""
        stream.knowledge.consumed = subend.next
        if "sessions" not in self._timers and self.sessions and effects:
            effects += self._set_once("sessions", self._parameters.resend * 1_000)
        dct = self._parameters.dct
        if dct is not None and effects and subend.look_back > dct:
            effects += look_back_after(stream, dct)
        self._unacked[stream.number] = None
        if "acks" not in self._timers:
            effects += self._ack_later(stream)

    def _watch_gap(self, stream: BrokerStream, subend: Subend, effects: list[Effect]) -> None:
        stream.watching_gap = True
        subend.ask(stream.knowledge, stream.round_trip, self._now_us)  # from now on it is seen
        effects.append(stream_timer("gap", stream.number, self._parameters.gct * 1_000))

    def _advance_together(self, merge: Merge) -> list[Effect]:
        """The same where subends take turns."""
        effects: list[Effect] = []
        for stream, subend in merge.advance(effects, self._blocked):
            self._passed(stream, subend, effects)
        for stream, subend in merge.behind():
            if stream.number not in self._blocked:
                self._watch_gap(stream, subend, effects)
        return effects

    def _hand(self, number: int, tick: int, message: DataTick, until: int, effects: list[Effect]) -> bool:
        """Hand a message of the pubend to its subscribers here; False if one of them has no room for it."""
        event, hops, _ = message
        return self.sessions.hand_over(event, hops, self._services.subscribers(event, until), effects)

    def _look_for_gap(self, stream: BrokerStream) -> list[Effect]:
        subend = stream.subend
        assert subend is not None
        lacks = self._merge is None or self._merge.lacks(stream, subend)
        if stream.number in self._blocked or stream.pubend is not None or not lacks:
            stream.watching_gap = False
            return [] if self._merge is None else self._advance_together(self._merge)
        nacks, again_us = subend.ask(stream.knowledge, stream.round_trip, self._now_us)
        stream.watching_gap = again_us is not None
        effects = [*stream.ask(nacks, self._now_us), *self._forget_later(stream)]
        if again_us is not None:
            effects.append(stream_timer("gap", stream.number, again_us - self._now_us))
        return effects

    def _on_handed_back(self, source: NodeName, message: HandedBack) -> Sequence[Effect]:
        self.sessions.handed_back(source, message)
        return self._unblock() if self._blocked else ()

    def _unblock(self) -> list[Effect]:
        """A client has room again, or is gone: go on where subends had to wait."""
        blocked, self._blocked = self._blocked, {}
        return [effect for number in blocked for effect in self._advance(self.streams[number])]

    # ------------------------------------------------------------------------------------------- timers
    def _on_timer(self, key: tuple[Any, ...]) -> Sequence[Effect]:
        _, what, *about = key
        if what in self._stream_timers:
            stream = self.streams[about[0]]
            if stream.subend is None and what in ("gap", "dct"):
                return ()  # it was set before this broker departed
            return self._stream_timers[what](stream)
        if what == "give up":
            self._given_up.overdue(about[0])
            return self._wait_for_less()
        del self._timers[what]
        return self._broker_timers[what]()

    def _forget_curiosity(self, stream: BrokerStream) -> list[Effect]:
        stream.forgetting = False
        stream.forget_curiosity()
        return self._forget_later(stream)

    def _ack_unacked(self) -> list[Effect]:
        unacked, self._unacked = self._unacked, {}
        return self._ack(self.streams[number] for number in unacked)

    def _repeat_to_clients(self) -> list[Effect]:
        again = self._set_once("sessions", self._parameters.resend * 1_000) if self.sessions.any_outstanding else []
        return [*self.sessions.repeat(), *again]

    def _tell_silence(self) -> list[Effect]:
        effects: list[Effect] = []
        unsilenced, self._unsilenced = self._unsilenced, {}
        for number in unsilenced:
            pubend = self.streams[number].pubend
            assert pubend is not None
            effects += self._publishing.log_silence(pubend, self._now_us)
        told = [effect for stream in self.streams.values() for effect in stream.tell_silence()]
        return [*effects, *told, *self._note_tick(self._newest_tick)]

    def _look_back(self, stream: BrokerStream) -> list[Effect]:
        lacks, again = look_back(stream, self._parameters.dct, self._now_us)
        return [*(self._look_for_gap(stream) if lacks else ()), *again]

    def _silence_later(self) -> list[Effect]:
        return self._set_once("silence", self._parameters.sit * 1_000)

    def _set_once(self, what: str, delay_us: int) -> list[Effect]:
        if what in self._timers:
            return []
        self._timers[what] = None
        return [SetTimer(("reliability", what), delay_us)]
