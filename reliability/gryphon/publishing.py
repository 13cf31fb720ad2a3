"""The publishers' side of a broker: its pubends, their log, and what its publishers submit.

Theory of operation (section 3). What is submitted gets a tick and goes into the log; when the log has it, the publisher
hears that it is accepted and the message is known to the stream. After a restart the log says what was promised.

The log holds `log_most` messages that are not acknowledged by all. When it is full, nothing is put into it until it is
half empty: publications wait where they are, in order, and clients keep what they have not seen accepted.
"""

from collections import deque
from collections.abc import Collection, Sequence
from typing import NamedTuple

from murmur_pubsub.errors import InputError
from murmur_pubsub.event import Event
from murmur_pubsub.machine import Effect, NodeName, Record, Send
from murmur_pubsub.promise import PUBLISHERS_WAIT
from reliability.gryphon.messages import Accepted, Submission
from reliability.gryphon.pubend import Pubend
from reliability.gryphon.pubend_log import Logged, PubendLog
from reliability.gryphon.submissions import Submissions


class Known(NamedTuple):
    """What is known of a pubend, now that the log has it: silence from `start` on, and the event on `tick`, or (None)
    silence on it too."""

    pubend: Pubend
    start: int
    tick: int
    event: Event | None


class Publishing:
    """The pubends of one broker (none, at most brokers). `must_accept`: a publisher waits to hear something."""

    def __init__(self, broker: NodeName, log: PubendLog, log_most: int) -> None:
        self.pubends: list[Pubend] = []
        self._broker = broker
        self._log = log
        self._log_most = log_most
        self._full = False
        self._own: deque[Event] = deque()  # of publishers of this broker's own
        self._submissions = Submissions(self._log.sequences)
        self._being_logged: dict[int, tuple[Pubend, NodeName | None]] = {}  # token of the log to pubend and client
        self._accepted: dict[int, int] = {}
        self._to_accept: dict[int, NodeName] = {}

    def recover(self, records: Sequence[bytes]) -> None:
        """Take up what earlier incarnations logged; raises `InputError` for a log that is not this broker's."""
        place = f"the stable log of {self._broker}"
        known = {pubend.number: pubend for pubend in self.pubends}
        if records and not known:
            raise InputError(place, f"{len(records)} records", "none: it has no pubends")
        for logged in self._log.recover(records):
            if logged.pubend not in known:
                allowed = f"those of this broker: {', '.join(map(str, known))}"
                raise InputError(place, f"a message of pubend {logged.pubend}", allowed)
            known[logged.pubend].recover(logged)
        self._accepted = dict(self._log.sequences)
        for pubend in self.pubends:
            pubend.recover_silence(self._log.ticks.get(pubend.number, -1))

    def submit(self, client: NodeName, message: Submission, now_us: int) -> list[Effect]:
        """A client submits an event, perhaps not for the first time."""
        event, oldest = message
        if self._submissions.is_old(event):
            if event.sequence <= self._accepted.get(event.source, -1):
                self._to_accept[event.source] = client
            return []
        self._submissions.put(event, oldest, client)
        return self.go_on(now_us)

    def client_gone(self, client: NodeName) -> None:
        """The client's link is gone."""
        self._submissions.client_gone(client)

    def holds_from(self, clients: Collection[NodeName]) -> bool:
        """Does something wait here that one of these clients has submitted?"""
        return self._submissions.holds_from(clients)

    def publish(self, event: Event, now_us: int) -> list[Effect]:
        """A publisher of this broker's own publishes an event."""
        self._own.append(event)
        return self.go_on(now_us)

    def go_on(self, now_us: int) -> list[Effect]:
        """Put into the log what waits for that, as far as there is room."""
        effects: list[Effect] = []
        if self._full and len(self._log) <= self._log_most // 2:
            self._full = False
            effects.append(Record(PUBLISHERS_WAIT, 0))
        while not self._full:
            if len(self._log) >= self._log_most:
                self._full = True
                effects.append(Record(PUBLISHERS_WAIT, 1))
                break
            following = self._following()
            if following is None:
                break
            effects.append(self._append(*following, now_us))
        return effects

    def _following(self) -> tuple[Event, NodeName | None] | None:
        """What is to be put into the log next, and its client."""
        return (self._own.popleft(), None) if self._own else self._submissions.take()

    def _append(self, event: Event, client: NodeName | None, now_us: int) -> Effect:
        """Put the event on a tick and into the log."""
        if not self.pubends:
            place = f"broker {self._broker}"
            raise InputError(place, f"a publication ({event!r})", "publishers at brokers with pubends")
        pubend = self.pubends[event.source % len(self.pubends)]
        logged = Logged(pubend.number, pubend.next_tick(now_us), event)
        token, persist = self._log.append(logged)
        self._being_logged[token] = pubend, client
        pubend.being_logged(token, logged.tick, logged)
        return persist

    def log_silence(self, pubend: Pubend, now_us: int) -> list[Effect]:
        """Have it logged that there is silence up to just before now, unless more is in use already, or on its way into
        the log: then it may be told."""
        tick = now_us // 1000 - 1
        if pubend.is_being_logged or tick <= pubend.last:
            return []
        token, persist = self._log.append_silence(pubend.number, tick)
        self._being_logged[token] = pubend, None
        pubend.being_logged(token, tick, None)
        return [persist]

    def note_behind(self, tick: int, behind: dict[int, None]) -> bool:
        """Add the pubends that have used no tick as late as that one; are there any?"""
        found = [pubend.number for pubend in self.pubends if pubend.last < tick]
        behind |= dict.fromkeys(found)
        return bool(found)

    def stored(self, token: int) -> tuple[list[Effect], Known | None]:
        """A record is safe: effects of that, and what is known now, unless it was a checkpoint."""
        effects = self._log.stored(token)
        if token not in self._being_logged:
            return effects, None
        pubend, client = self._being_logged.pop(token)
        start, tick, logged = pubend.stored(token)
        if logged is None:
            return effects, Known(pubend, start, tick, None)
        source, sequence = logged.event.id
        self._accepted[source] = sequence
        if client is not None:
            self._to_accept[source] = client
        return effects, Known(pubend, start, tick, logged.event)

    @property
    def must_accept(self) -> bool:
        """Does a publisher wait to hear that something is in the log?"""
        return bool(self._to_accept)

    def accept(self) -> list[Effect]:
        """Tell publishers what is in the log."""
        to_accept, self._to_accept = self._to_accept, {}
        return [Send(client, Accepted(each, self._accepted[each])) for each, client in to_accept.items()]

    def cut_log(self, now_us: int) -> list[Effect]:
        """Cut off what all brokers have acknowledged, if that is worth it, and go on if there is room again."""
        if not self.pubends:
            return []
        return [*self._log.cut(self._final), *self.go_on(now_us)]

    def forget_done(self, now_us: int) -> list[Effect]:
        """Forget what nobody lacks any more, and go on if there is room again. Nothing is given up for that."""
        self._log.forget_done(self._final)
        return self.go_on(now_us)

    @property
    def _final(self) -> dict[int, int]:
        """Of each pubend the tick up to which all brokers have acknowledged it."""
        return {each.number: each.knowledge.final for each in self.pubends}
