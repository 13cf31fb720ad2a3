"""Exactly once, in publisher order, for durable subscribers over any overlay. Ours; no paper has it.

Theory of operation. Gryphon keeps its promise hop by hop, along a tree that its brokers know. Here the promise is kept
by the two ends alone, and routing is believed in nothing: it may lose an event, bring it twice, late, or where nobody
wants it. It need only bring most of them to most of those that want them, for what it loses is carried once more.

The *publishers' end* (`reliability.durable.keeper`, as under `durable`) has on its disk who subscribes to what, and of
each message of its log whom it matched. A message goes out by routing with the list of those clients, and for each the
tick of the message before it that was for the client. The *subscribers' end* (`reliability.end_to_end.holders`) takes
of that what follows without a gap, and asks the pubend's broker for the rest, straight: by the link between the two if
there is one, as a datagram otherwise.

Why that is right. A message is accepted when it is in the log with whom it is for, and stays there until each of them
has recorded that it has it. A step of a chain is true for ever (`reliability.end_to_end.chain`), so a client gets what
it was matched with, in order, once, whatever comes by whatever way. And it gets all of it: a broker asks as long as
its client is there, so one question and its answer that come through bring it further.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, get_args

from murmur_pubsub.errors import InputError
from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
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
from murmur_pubsub.measure import Measure
from murmur_pubsub.promise import GIVEN_UP, PUBLISHERS_WAIT, Promise, Survival
from reliability.durable.client import RESUMED_ELSEWHERE, DurableClient
from reliability.durable.keeper import Keeper
from reliability.durable.log import DurableLog
from reliability.durable.messages import (
    BetweenDurables,
    CatchUp,
    Caught,
    CaughtUp,
    Enlist,
    Enlisted,
    GivenUp,
    Release,
    Released,
    Resume,
    ToClient,
)
from reliability.end_to_end.candidate import SERVES, Begins, Counts
from reliability.end_to_end.holders import NEVER_US, Holders
from reliability.end_to_end.messages import Carried, Reminder
from reliability.end_to_end.parameters import EndToEndParameters, entrances
from reliability.end_to_end.redundancy import redundancy_of
from reliability.end_to_end.redundant_messages import REDUNDANT_MESSAGES, AcceptedThere, Relayed
from reliability.end_to_end.relays import Relays
from reliability.end_to_end.reminders import LOOKS, Reminders
from reliability.end_to_end.whereabouts import Whereabouts
from reliability.gryphon.knowledge import KnowledgeStream
from reliability.gryphon.messages import Accepted, Handed, HandedBack, Submission
from reliability.gryphon.pubend import Pubend
from reliability.gryphon.publishing import Publishing
from reliability.gryphon.sessions import Sessions
from reliability.layer import BrokerServices, Reliability
from reliability.protocol import ReliabilityProtocol
from routing.protocol import OverlayTraits, RoutingProtocol

_QUESTIONS = (Enlist, CatchUp, Release)
_ACCEPT_DELAY_US = 50_000
_REVISION_BITS = 40
"""Of the revisions of a broker's own subscribers: above them is the broker's incarnation."""


class EndToEnd(Reliability):
    """One broker's part; also a `reliability.layer.ClientWatcher` and `OwnWatcher`."""

    persists = True
    message_types: tuple[type, ...] = (
        *(Carried, Reminder),
        *(Submission, Accepted, Handed, HandedBack, Resume),
        *get_args(ToClient),
        *get_args(BetweenDurables),
    )

    def __init__(self, context: NodeContext, parameters: EndToEndParameters, services: BrokerServices) -> None:
        self._services = services
        self._name = context.name
        self._incarnation = context.incarnation
        self._parameters = parameters
        self._leased_us = parameters.limits.lease_us
        self._brokers: Sequence[NodeName] = context.parameters["brokers"]
        roots: Sequence[NodeName] = context.parameters["entrances"]
        self._redundancy = redundancy_of(context, parameters, roots)
        hosted = context.name if self._redundancy is None else self._redundancy.hosted
        self._number = roots.index(hosted) if hosted in roots else None
        self._begin_end()
        self._where = Whereabouts(parameters.redundant, parameters.answer * 1_000)
        self._relays = Relays(parameters.resend * 1_000)
        if parameters.redundant:
            self.message_types = (*self.message_types, *REDUNDANT_MESSAGES)
        self.sessions = Sessions(context.incarnation, parameters.window)
        self.holders = Holders(context.name, roots, self.sessions, parameters, self._post)
        self._to_self: deque[BetweenDurables | Reminder] = deque()
        self._timers: dict[str, None] = {}
        self._look_us = NEVER_US
        self._now_us = 0
        self._messages: Mapping[type, Callable[[NodeName, Any], Sequence[Effect]]] = {
            Carried: self._pass_on,
            Submission: self._on_submission,
            HandedBack: self._on_handed_back,
            Resume: self._on_resume,
            Relayed: self._on_relayed,
            AcceptedThere: self._on_accepted_there,
        }
        self._answers: Mapping[type, Callable[[Any], Sequence[Effect]]] = {
            Enlist: self._on_enlist,
            CatchUp: self._on_catch_up,
            Release: self._on_release,
            Enlisted: lambda message: self.holders.enlisted(message, self._now_us),
            Caught: lambda message: self.holders.step(message, self._now_us),
            CaughtUp: lambda message: self.holders.step(message, self._now_us),
            GivenUp: lambda message: self.holders.step(message, self._now_us),
            Released: lambda message: self.holders.released(message, self._now_us),
            Reminder: lambda message: self.holders.remind(message, self._now_us),
        }

    def _begin_end(self) -> None:
        """The publishers' end, with nothing in its log."""
        self._log = DurableLog(self._name, self._parameters.checkpoint)
        self._publishing = Publishing(self._name, self._log, self._parameters.log_most)
        self._pubend = None if self._number is None else Pubend(self._number, KnowledgeStream())
        own = {} if self._pubend is None else {self._pubend.number: self._pubend}
        self._publishing.pubends += own.values()
        self._keeper = Keeper(self._log, own, self._post_answer, self._leased_us)
        self._reminders = Reminders(self._keeper, self._brokers, self._parameters, self._post)
        self._owes = False

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        self._now_us = now_us
        return self._and_later(self._take(input))

    def publish(self, event: Event, now_us: int) -> Sequence[Effect]:
        self._now_us = now_us
        if not self._serves:
            return ()  # publishers are clients where there are backups: nobody of these publishes so
        return self._and_later(self._publishing.publish(event, now_us))

    def client_up(self, client: NodeName, now_us: int) -> Sequence[Effect]:
        """See `reliability.layer.ClientWatcher`."""
        self.holders.of.pop(client, None)
        self.sessions.begin(client)
        return ()

    def client_down(self, client: NodeName, now_us: int) -> Sequence[Effect]:
        """See `reliability.layer.ClientWatcher`."""
        self.holders.of.pop(client, None)
        self.sessions.end(client)
        self._publishing.client_gone(client)
        return ()

    def own_changed(self, wanted: Sequence[tuple[int, Filter]], now_us: int) -> Sequence[Effect]:
        """See `reliability.layer.OwnWatcher`."""
        self._now_us = now_us
        known = self.holders.of.get(self._name)
        first = (self._incarnation << _REVISION_BITS) + 1
        revision = first if known is None else known.revision + 1
        resume = Resume(revision, [each for each, _ in wanted], [each for _, each in wanted], [])
        return self._and_later(self.holders.resume(self._name, resume, now_us))

    @property
    def settling(self) -> bool:
        """Is there a subscription here that some publishers' broker has not recorded, or a change of who serves?"""
        return self.holders.settling or (self._redundancy is not None and self._redundancy.settling(self._now_us))

    @property
    def waiting(self) -> bool:
        """Is something kept here for a client that is there, missing here, or not handed back?"""
        owes = self._owes or self.holders.waiting or self.sessions.any_outstanding
        return owes or self._publishing.holds_from(self._relays.heard)

    def fingerprint(self) -> Set[Fact]:
        chains = [chain for holder in self.holders.of.values() for chain in holder.chains.values()]
        redundant = [] if self._redundancy is None else [self._redundancy.fingerprint()]
        return {
            *redundant,
            state_of("publishers' end", owes=self._owes, keeps=self._log.record.keeps_any, logs=len(self._log)),
            state_of(
                "subscribers' end",
                gap=any(chain.has_gap for chain in chains),
                asks=any(chain.left for chain in chains),
                unsettled=self.settling,
                clients_owe=self.sessions.any_outstanding,
            ),
        }

    def check_invariants(self) -> None:
        self._log.record.check_invariants()
        self.holders.check_invariants()

    def _take(self, input: Input) -> list[Effect]:
        if type(input) is Received:
            message: Any = input.message
            if type(message) in self._answers:
                if message.to != self._name:
                    return []
                self._note_who_answers(input.source, message)
                return [*self._answers[type(message)](message)]
            if type(message) in self._messages:
                return [*self._messages[type(message)](input.source, message)]
            return self._on_redundant(input)
        if type(input) is TimerFired:
            return self._on_timer(input.key[1])
        if type(input) is Stored:
            return self._on_stored(input.token) if self._redundancy is None else self._on_redundant(input)
        if type(input) is Start:
            return self._recover(input.records) if self._redundancy is None else self._start(input.records)
        if type(input) in (LinkUp, LinkDown):
            return []  # what was lost with a link is asked for as anything else that is lost
        raise TypeError(f"delivery from end to end takes no {input!r}")

    def _post(self, message: BetweenDurables | Reminder) -> list[Effect]:
        """Send the message straight to the broker that it is for; a question to that of a pubend to whoever serves."""
        if type(message) in _QUESTIONS:
            asked = self._where.ask(message.to, self._now_us)
            return [effect for to in asked for effect in self._post_to(to, message)]
        return self._post_to(message.to, message)

    def _post_answer(self, message: BetweenDurables) -> list[Effect]:
        """Send what the keeper says; with the word that a client is on record goes what is kept for it."""
        effects = self._post(message)
        if type(message) is Enlisted and message.revision >= 0:
            effects += self._reminders.with_recorded(message.client, message.to)
        return effects

    def _post_to(self, to: NodeName, message: BetweenDurables | Reminder) -> list[Effect]:
        if to != message.to:
            message = message._replace(to=to)
        if to == self._name:
            self._to_self.append(message)
            return []
        return [Send(to, message._replace(hops=1) if type(message) is Caught else message)]

    def _and_later(self, effects: list[Effect]) -> list[Effect]:
        """With what this broker has told itself, and the timers of what is to be done later."""
        while self._to_self:
            message = self._to_self.popleft()
            self._note_who_answers(self._name, message)
            effects += self._answers[type(message)](message)
        if self.holders.due_us < self._look_us:
            self._look_us = self.holders.due_us
            effects.append(SetTimer(("reliability", "look"), max(0, self._look_us - self._now_us)))
        if self._publishing.must_accept:
            effects += self._set_once("accept", _ACCEPT_DELAY_US)
        if self.sessions.any_outstanding:
            effects += self._set_once("sessions", self._parameters.resend * 1_000)
        return effects if self._redundancy is None else self._redundancy.carried_out(effects)

    def _set_once(self, what: str, delay_us: int) -> list[Effect]:
        if what in self._timers:
            return []
        self._timers[what] = None
        return [SetTimer(("reliability", what), delay_us)]

    def _on_timer(self, what: Any) -> list[Effect]:
        if what == "look":
            self._look_us = NEVER_US
            return self.holders.look(self._now_us)
        del self._timers[what]
        if what == "accept":
            return [self._relays.sent_back(effect) for effect in self._publishing.accept()]
        if what == "beat":
            return self._beat()
        if what == "sessions":
            return self.sessions.repeat()
        if what == "lease":
            again_us = self._keeper.give_up(self._now_us)
            effects = [] if again_us is None else self._set_once("lease", again_us - self._now_us)
            return [*effects, *self._publishing.cut_log(self._now_us)]
        assert what == "owes"
        since_us = self._now_us - self._there_us
        self._owes = self._keeper.owes(since_us)
        return [*self._reminders.look(since_us, self._now_us), *self._look_whether_owing()]

    # ---------------------------------------------------------------------------------------------- publishers' end
    @property
    def _there_us(self) -> int:
        """A client of which nothing was heard for so long is taken to be away: the broker of one that is there answers
        reminders. Of ten in a row one arrives, where half of all messages are lost; of three none, once in eight
        times."""
        return 10_000 * self._parameters.rest_most

    def _look_whether_owing(self) -> list[Effect]:
        """Something may be kept for a client that is there: until it has that, the run is not over."""
        if not self._owes and not self._reminders.asks_all:
            return []
        leases = [] if self._leased_us is None else self._set_once("lease", self._leased_us)
        return [*self._set_once("owes", self._parameters.rest * 1_000 // LOOKS), *leases]

    def _on_submission(self, source: NodeName, message: Submission) -> Sequence[Effect]:
        if self._redundancy is not None and not self._redundancy.serves:
            served_by = self._redundancy.served_by
            if served_by in (None, self._name):
                return ()  # nobody serves that it knows of: the client will repeat it
            return [Send(served_by, Relayed(served_by, self._name, source, *message))]
        self._relays.is_here(source)
        return self._publishing.submit(source, message, self._now_us)

    def _on_stored(self, token: int) -> list[Effect]:
        effects = self._keeper.stored(token)
        if effects is not None:
            return self._forgetting(effects)
        effects, known = self._publishing.stored(token)
        if known is None or known.event is None:
            return effects
        known.pubend.knowledge.finalize(known.tick)  # the log alone keeps messages
        found = list(self._log.record.chained(known.pubend.number, known.tick))
        if not found:
            return [*effects, *self._publishing.cut_log(self._now_us)]
        lists = zip(*((each.client, each.after, list(each.subscribers)) for each in found), strict=True)
        clients, afters, subscribers = map(list, lists)
        message = Carried(known.event, known.pubend.number, known.tick, clients, afters, subscribers, 0, ())
        self._owes = True
        return [*effects, *self._pass_on(None, message), *self._look_whether_owing()]

    def _recover(self, records: Sequence[bytes]) -> list[Effect]:
        self._publishing.recover(records)
        self._keeper.begin(self._name, self._now_us)
        if self._pubend is not None:
            self._pubend.knowledge.finalize(self._pubend.knowledge.newest)
        self._owes = self._log.record.keeps_any
        has_lost_its_disk = self._incarnation > 0 and not records
        asked = self._reminders.all_is_lost(self._publishing.pubends, self._now_us) if has_lost_its_disk else []
        done = self._publishing.forget_done(self._now_us)  # what is for nobody, of which nobody will ever speak
        return [*asked, *done, *self._look_whether_owing()]

    def _on_catch_up(self, message: CatchUp) -> Sequence[Effect]:
        if not self._serves:
            return ()
        self._reminders.heard(message.client, message.origin, self._now_us)
        return [*self._keeper.catch_up(message, self._now_us), *self._publishing.cut_log(self._now_us)]

    def _on_enlist(self, message: Enlist) -> Sequence[Effect]:
        if not self._serves:
            return ()
        self._reminders.heard(message.client, message.origin, self._now_us)
        effects: list[Effect] = []
        known = self._log.record.registrations.get(message.client)
        incarnation = message.revision >> _REVISION_BITS
        if message.client == message.origin and known is not None and known.revision >> _REVISION_BITS < incarnation:
            # Own subscribers of a broker that was restarted: nothing is owed to what was before.
            nothing = message._replace(revision=incarnation << _REVISION_BITS, subscribers=[], filters=[])
            effects += self._keeper.enlist(nothing, self._now_us)
        effects += self._keeper.enlist(message, self._now_us)
        self._owes = self._owes or self._keeper.owes(self._now_us)
        return [*self._forgetting(effects), *self._look_whether_owing()]

    def _forgetting(self, effects: list[Effect]) -> list[Effect]:
        return [*effects, *self._publishing.forget_done(self._now_us)]  # what was withdrawn, and what the client has

    def _on_release(self, message: Release) -> Sequence[Effect]:
        if not self._serves:
            return ()
        self._reminders.heard(message.client, message.origin, self._now_us)
        return [*self._keeper.release(message, self._now_us), *self._publishing.cut_log(self._now_us)]

    # ------------------------------------------------------------------------------------------------ redundant ends
    @property
    def _serves(self) -> bool:
        return self._redundancy is None or self._redundancy.serves

    def _start(self, records: Sequence[bytes]) -> list[Effect]:
        assert self._redundancy is not None
        self._redundancy.start(records, self._now_us)
        beats = [] if self._redundancy.candidate is None else self._set_once("beat", self._parameters.beat * 1_000)
        return [*self._take_turns(), *beats]

    def _beat(self) -> list[Effect]:
        assert self._redundancy is not None
        self._redundancy.beat(self._now_us)
        for client in self._relays.silent(self._now_us):
            self._publishing.client_gone(client)
        return [*self._take_turns(), *self._set_once("beat", self._parameters.beat * 1_000)]

    def _on_redundant(self, input: Received | Stored) -> list[Effect]:
        if self._redundancy is None:
            return []
        self._redundancy.take(input, self._now_us)
        return self._take_turns()

    def _take_turns(self) -> list[Effect]:
        """This broker begins to serve, or ceases; or something that was logged counts."""
        assert self._redundancy is not None
        effects: list[Effect] = []
        for turn in self._redundancy.turns():
            if type(turn) is Counts:
                effects += self._on_stored(turn.token)
                continue
            self._begin_end()
            if type(turn) is Begins:
                effects += self._recover([*self._redundancy.disk.log.values()])
        return effects

    def _note_who_answers(self, source: NodeName, message: BetweenDurables | Reminder) -> None:
        if type(message) not in _QUESTIONS:
            root = self._where.answered(source)
            if root is not None:
                self.holders.is_served_anew(root, self._now_us)

    def _on_relayed(self, source: NodeName, message: Relayed) -> Sequence[Effect]:
        if not self._serves or self._pubend is None:
            return ()
        self._relays.relayed(message.client, source, self._now_us)
        return self._publishing.submit(message.client, Submission(message.event, message.oldest), self._now_us)

    def _on_accepted_there(self, source: NodeName, message: AcceptedThere) -> Sequence[Effect]:
        there = self.sessions.of(message.client) is not None
        return [Send(message.client, Accepted(message.publisher, message.sequence))] if there else ()

    # --------------------------------------------------------------------------------------------------- on the way
    def _pass_on(self, came_from: NodeName | None, message: Carried) -> list[Effect]:
        """For the clients here, and for whomever routing names: this broker need not be on anybody's way."""
        event, header = message.event, message.header
        self._services.is_relay(event, header)  # asked once; whom the event is for, it says itself
        effects = self.holders.carried(message, self._now_us)
        onward: Carried | None = None
        for peer, its_header in self._services.next_hops(event, came_from, header):
            if onward is None or onward.header != its_header:
                onward = message._replace(hops=message.hops + 1, header=its_header)
            effects.append(Send(peer, onward))
        return effects

    # --------------------------------------------------------------------------------------------- subscribers' end
    def _on_resume(self, source: NodeName, message: Resume) -> Sequence[Effect]:
        if self.sessions.of(source) is None:
            return ()  # sent before its link broke here
        return self.holders.resume(source, message, self._now_us)

    def _on_handed_back(self, source: NodeName, message: HandedBack) -> Sequence[Effect]:
        done = self.sessions.handed_back(source, message)
        if source not in self.holders.of or not done:
            return ()
        self.holders.has(source, done, self._now_us)
        return self.holders.go_on(source, self._now_us)


def _check(parameters: EndToEndParameters, traits: OverlayTraits, routing: RoutingProtocol[Any]) -> None:
    if not traits.has_datagrams:
        raise InputError(
            "datagrams",
            "nothing",
            "a delay, such as 'datagrams: {delay: 1 ms}': the two ends of an event's way talk straight to each other",
        )


END_TO_END = ReliabilityProtocol(
    name="end_to_end",
    make=EndToEnd,
    parameters=EndToEndParameters,
    guarantee=Promise("exactly_once", survives=Survival(any_path=True, any_links=True), durable=True),
    limits=lambda parameters: parameters.limits,
    end_to_end=True,
    client=DurableClient,
    clients_roam=True,
    entrances=entrances,
    redundant=lambda parameters: parameters.redundant,
    measures=(
        Measure(PUBLISHERS_WAIT, "publishers have to wait", "level"),
        Measure(RESUMED_ELSEWHERE, "clients resumed at another tick", "rows"),
        Measure(SERVES, "serves a redundant pubend: 1 in a pair, 2 alone, 0 no more", "level"),
        Measure(GIVEN_UP, "publishers of whose events some were given up for a client", "rows"),
    ),
    tried={
        "gap": ("20 ms", "500 ms"),
        "rest": ("200 ms",),
        "ack_delay": ("20 ms",),
        "window": (5,),
        "catch_up": (1, 5, 20),
        "checkpoint": (5,),
        "lease": ("10 s",),
    },
    tried_seldom={
        "log_most": (3, 10, 30),
        "resend": ("100 ms",),
        "idle": ("5 s",),
        "answer": ("50 ms",),
        "answer_least": ("5 ms", "100 ms"),
        "rest_most": ("1 s",),
    },
    check=_check,
)
