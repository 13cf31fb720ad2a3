"""One pubend's stream at one broker: what came from upstream (istream), and what each branch was told (ostreams).

Theory of operation (sections 2 and 3). Fresh knowledge goes on at once, whatever is missing before it: a gap never
holds up what follows. At the edge to each ostream stands the filter of its branch: a message that is not wanted behind
it is silence there, and silence waits to be told with the next message, or when it has waited for SIT.

Curiosity goes the other way. What a nack asks for is answered from what is known here; the rest is noted for the branch
that asked, and asked for upstream unless that has been done already for another branch (nack consolidation). The answer
goes down only to the branches that asked. Acknowledgements are accumulated: up goes the least of what all branches, and
the local subend, have acknowledged. It goes to every broker of the next cell that can be reached: of a cell each broker
acknowledges what all behind the cell have, so the most that one of them says holds. A broker that has restarted knows
nothing and has acknowledged nothing: it says nothing until every broker below has said something again.
"""

from collections.abc import Mapping, Sequence

from murmur_pubsub.fingerprint import Fact, state_of
from murmur_pubsub.intervals import Interval
from murmur_pubsub.machine import Effect, NodeName, Record, Send, SetTimer
from reliability.gryphon.curiosity import Curiosity
from reliability.gryphon.knowledge import DataTick, KnowledgeStream
from reliability.gryphon.messages import AckExpected, BetweenBrokers, Data, Nack, Silence
from reliability.gryphon.pubend import Pubend
from reliability.gryphon.round_trip import RoundTrip
from reliability.gryphon.subend import Subend
from routing.router import StreamRouter

_new = tuple.__new__
"""Makes a NamedTuple without the Python call of its constructor, where one is made for every message."""

NACK_SENT = 152
"""Topic of the journal rows of nacks: the peer, and as value how many ticks were asked for."""


def stream_timer(what: str, number: int, delay_us: int) -> SetTimer:
    """One of a stream's own, by what it is for."""
    return SetTimer(("reliability", what, number), delay_us)


class Ostream:
    """What one branch was told and has said. `acked`: all behind it have acknowledged up to there. The run from
    `quiet_from` to `quiet_to` is silence that it was not told yet; `quiet_to` is also how far the branch is served."""

    __slots__ = ("acked", "asked", "quiet_from", "quiet_to")

    def __init__(self, acked: int = -1) -> None:
        self.acked = acked
        self.asked: dict[NodeName, Curiosity] = {}
        self.quiet_from = 0
        self.quiet_to = -1


class BrokerStream:
    """The stream of pubend `number`, whose broker is `root`; here is the root if `pubend` is given."""

    def __init__(
        self,
        number: int,
        root: NodeName,
        router: StreamRouter,
        knowledge: KnowledgeStream,
        pubend: Pubend | None,
        nack_chunk: int,
        round_trip: RoundTrip,
        given_up: Mapping[str, None],
    ) -> None:
        self.number = number
        self.root = root
        self.knowledge = knowledge
        self.pubend = pubend
        self.subend: Subend | None = None
        self.watching_gap = False
        self.acked_up = -1
        self.asked_up = Curiosity()
        self.came_by = router.branch_of(root)
        self.ostreams = {branch: Ostream() for branch in router.branches if branch != self.came_by}
        self._router = router
        self.round_trip = round_trip
        self._given_up = given_up
        self.forgetting = False
        """Does a timer run, to forget what was asked for?"""
        self._nack_chunk = nack_chunk
        self._asking = False

    @property
    def has_new_branch(self) -> bool:
        """Is there a branch that was not there when this was last followed?"""
        return any(branch not in self.ostreams for branch in self._router.branches if branch != self.came_by)

    def follow_tree(self) -> None:
        """Branches have come or gone. What is final nobody behind a new one wants."""
        before = self.ostreams
        self.ostreams = {
            branch: before.get(branch) or Ostream(self.knowledge.final)
            for branch in self._router.branches
            if branch != self.came_by
        }

    # ---------------------------------------------------------------------------------------- knowledge
    def publish(self, start: int, tick: int, message: DataTick) -> list[Effect]:
        """The pubend here knows of a message, and of silence from `start` to before it."""
        return self._pass_on(start, tick, message)

    def take_data(self, data: Data, now_us: int) -> list[Effect]:
        """Knowledge from upstream: note it and tell the branches that are to know."""
        knowledge = self.knowledge
        start, tick = data.start, data.tick
        message = _new(DataTick, (data.event, data.hops, data.stamp))
        known = False
        if not knowledge.go_on(start, tick, message):
            # Asked before `learn`, after which every tick is known: what had come before was passed on then.
            known = tick <= knowledge.final or tick in knowledge.known
            knowledge.silence(start, tick - 1)
            knowledge.learn(tick, message)
        self._heard(start, tick, data.answer, now_us)
        effects = [] if data.answer or known or not self.ostreams else self._pass_on(start, tick, message)
        if self._asking:
            effects += self._answer_askers(start, tick, message)
        return effects

    def take_silence(self, silence: Silence, now_us: int) -> list[Effect]:
        """The same for silence alone."""
        first, last = silence.first, silence.last
        news = self.knowledge.unknown(first, last)
        self.knowledge.silence(first, last)
        self._heard(first, last, silence.answer, now_us)
        effects = self.be_silent(first, last) if news and not silence.answer else []
        if self._asking:
            effects += self._answer_askers(first, last, None)
        return effects

    def _heard(self, first: int, last: int, answer: int, now_us: int) -> None:
        if self.asked_up:
            # What a full cache drops again has to be asked for again at once when a branch asks.
            self.asked_up.answer(first, last)
        self.round_trip.heard_us = now_us
        self.round_trip.answered(answer, now_us)

    def overhear(self, data: Data) -> None:
        """A sibling's message passes here on its way to a branch: it is noted, and goes to no branch from here. The
        sibling's silence is that of the branch, but a message on its tick is one for all branches."""
        self.knowledge.learn(data.tick, DataTick(data.event, data.hops, data.stamp))

    def be_silent(self, first: int, last: int) -> list[Effect]:
        """Nothing is for any branch from `first` to `last`: to be told in good time."""
        effects: list[Effect] = []
        for branch, ostream in self.ostreams.items():
            if last <= ostream.quiet_to:
                # It fills a gap before what the branch was served: only the run at the end can wait.
                effects += self._send(branch, Silence(self.number, first, last, 0, []))
                continue
            if first > ostream.quiet_to + 1:
                # A gap between: one run over both would call the unknown ticks in it silence.
                effects += self._tell_silence(branch, ostream)
                ostream.quiet_from = first
            ostream.quiet_to = last
        return effects

    def tell_silence(self) -> list[Effect]:
        """Tell every branch the silence that it was not told yet."""
        effects: list[Effect] = []
        for branch, ostream in self.ostreams.items():
            effects += self._tell_silence(branch, ostream)
        return effects

    @property
    def has_silence_to_tell(self) -> bool:
        """Is there any?"""
        return any(ostream.quiet_from <= ostream.quiet_to for ostream in self.ostreams.values())

    def _tell_silence(self, branch: str, ostream: Ostream) -> list[Effect]:
        if ostream.quiet_from > ostream.quiet_to:
            return []
        first, ostream.quiet_from = ostream.quiet_from, ostream.quiet_to + 1
        return self._send(branch, Silence(self.number, first, ostream.quiet_to, 0, []))

    def _pass_on(self, start: int, tick: int, message: DataTick) -> list[Effect]:
        effects: list[Effect] = []
        event, hops, stamp = message
        wanted = self._router.wanted(event, self.root, stamp, self.came_by)
        data: Data | None = None
        for branch, ostream in self.ostreams.items():
            first = start
            late = tick <= ostream.quiet_to
            # A late message fills a gap and leaves the run at the end as it is.
            if not late:
                if start <= ostream.quiet_to + 1:
                    first = ostream.quiet_from  # the silence that waits has no gap to this: the message tells it too
                else:
                    effects += self._tell_silence(branch, ostream)
                ostream.quiet_from = first
                ostream.quiet_to = tick
            if branch in wanted:
                if not late:
                    ostream.quiet_from = tick + 1  # else the tick stays in the run: to this branch it is silence
                epoch = self._router.stamp(branch) if self.pubend is not None else stamp
                if data is None or data.start != first or data.stamp != epoch:
                    data = _new(Data, (self.number, first, tick, event, hops + 1, epoch, 0, []))
                effects += self._send(branch, data)
            elif late:
                effects += self._send(branch, Silence(self.number, start, tick, 0, []))
        return effects

    def _send(self, branch: str, message: Data | Silence | AckExpected) -> list[Effect]:
        return self.send_by(self._router.way(branch, self.number), message)

    def send_by(self, path: Sequence[NodeName], message: BetweenBrokers) -> list[Effect]:
        """Send the message to the last broker of the path (an empty one: there is no way, and nothing is sent)."""
        if len(path) > 1:
            message = message._replace(route=[self._router.me, *path])
        return [_new(Send, (path[0], message))] if path else []

    # ---------------------------------------------------------------------------------------- curiosity
    def take_nack(self, source: NodeName, nack: Nack, now_us: int) -> list[Effect]:
        """Answer what is known, and ask upstream for the rest, unless it has been asked for."""
        branch = self._router.branch_of(source)
        if branch is None or branch not in self.ostreams:
            return []  # from a sibling or from upstream: the tree is not what the peer thinks it is
        effects = self._answer(source, branch, nack)
        if self.pubend is not None:
            return effects  # what is unknown here has not happened yet
        curiosity = self.ostreams[branch].asked.setdefault(source, Curiosity())
        curiosity.asked = nack.asked
        for part in self.knowledge.unknown(nack.first, nack.last):
            curiosity.ask(*part)
            self._asking = True
            for news in self.asked_up.ask(*part):  # without what was asked for already: nack consolidation
                effects += self._nack_up(*news, now_us)
        return effects

    def ask(self, ranges: Sequence[Interval], now_us: int) -> list[Effect]:
        """The subend here wants to know of these ticks, whether or not a branch has asked."""
        effects: list[Effect] = []
        for first, last in ranges:
            self.asked_up.ask(first, last)
            effects += self._nack_up(first, last, now_us)
        return effects

    def forget_curiosity(self) -> bool:
        """Forget what was asked for a while ago; True if something is left."""
        left = False
        for ostream in self.ostreams.values():
            for peer, curiosity in list(ostream.asked.items()):
                curiosity.grow_old()
                if curiosity:
                    left = True
                else:
                    del ostream.asked[peer]
        self._asking = left
        self.asked_up.grow_old()
        return left or bool(self.asked_up)

    @property
    def curious(self) -> bool:
        """Has anything been asked for lately?"""
        return self._asking or bool(self.asked_up)

    def _nack_up(self, first: int, last: int, now_us: int) -> list[Effect]:
        assert self.came_by is not None
        way = self._router.way(self.came_by, self.number)
        effects: list[Effect] = []
        if not way:
            return effects
        for begin in range(first, last + 1, self._nack_chunk):
            end = min(last, begin + self._nack_chunk - 1)
            effects += self.send_by(way, Nack(self.number, begin, end, max(1, now_us // 1_000), []))
            effects.append(Record(NACK_SENT, end - begin + 1, way[-1]))
        return effects

    def _answer(self, peer: NodeName, branch: str, nack: Nack) -> list[Effect]:
        knowledge = self.knowledge
        path = self._router.path(peer)
        _, first, last, asked, _ = nack
        effects: list[Effect] = []
        if first <= knowledge.final:
            effects += self.send_by(path, Silence(self.number, first, min(last, knowledge.final), asked, []))
        for begin, end in knowledge.known.within(first, last):
            at = begin
            for tick in knowledge.ticks(begin, end):
                message = knowledge.messages[tick]
                if self._wanted_by(branch, message):
                    effects += self.send_by(path, self._answer_with(branch, at, tick, message, asked))
                    at = tick + 1
            if at <= end:
                effects += self.send_by(path, Silence(self.number, at, end, asked, []))
        return effects

    def _answer_askers(self, first: int, last: int, message: DataTick | None) -> list[Effect]:
        """Tell the branches that asked for something between `first` and `last`: silence, but for a message at the
        end."""
        effects: list[Effect] = []
        for branch, ostream in self.ostreams.items():
            for peer, curiosity in ostream.asked.items():
                if not curiosity.answer(first, last):
                    continue
                answer: Data | Silence = Silence(self.number, first, last, curiosity.asked, [])
                if message is not None and self._wanted_by(branch, message):
                    answer = self._answer_with(branch, first, last, message, curiosity.asked)
                effects += self.send_by(self._router.path(peer), answer)
        return effects

    def _wanted_by(self, branch: str, message: DataTick) -> bool:
        return branch in self._router.wanted(message.event, self.root, message.stamp, self.came_by)

    def _answer_with(self, branch: str, start: int, tick: int, message: DataTick, asked: int) -> Data:
        stamp = message.stamp if self.pubend is None else self._router.stamp(branch)
        return Data(self.number, start, tick, message.event, message.hops + 1, stamp, asked, [])

    # ------------------------------------------------------------------------------------------- acks
    def take_ack(self, source: NodeName, tick: int) -> None:
        """All behind the source have acknowledged up to the tick."""
        branch = self._router.branch_of(source)
        if branch is not None and branch in self.ostreams:
            ostream = self.ostreams[branch]
            ostream.acked = max(ostream.acked, tick)

    def accumulate(self) -> int:
        """Up to where the subend here and all branches have acknowledged: that becomes F."""
        acked = [ostream.acked for branch, ostream in self.ostreams.items() if branch not in self._given_up]
        if self.subend is not None:
            acked.append(self.subend.next - 1)
        # A broker without subscribers and branches wants nothing, and may forget all it hears of.
        self.knowledge.finalize(min(acked) if acked else self.knowledge.newest)
        for branch in self._given_up:
            if branch in self.ostreams:
                self.ostreams[branch].acked = max(self.ostreams[branch].acked, self.knowledge.final)
        return self.knowledge.final

    def owing(self, tick: int) -> list[str]:
        """The branches that have not acknowledged up to the tick, and are waited for."""
        return [
            branch for branch, ostream in self.ostreams.items() if ostream.acked < tick and branch not in self._given_up
        ]

    @property
    def can_be_acknowledged(self) -> bool:
        """Are messages kept for branches alone, all of which can be asked whether they have them?"""
        owing = self.owing(self.knowledge.last_message)
        return bool(owing) and all(self._router.way(branch, self.number) for branch in owing)

    def expect_ack(self, tick: int) -> list[Effect]:
        """An acknowledgement is expected up to the tick: remind the branches that owe it."""
        effects: list[Effect] = []
        for branch in self.owing(tick):
            effects += self._send(branch, AckExpected(self.number, tick, []))
        if self.subend is None and all(branch in self._given_up for branch in self.ostreams):
            self.knowledge.finalize(tick)
        return effects

    def state(self, blocked: bool) -> Fact:
        """For a fingerprint; `blocked`: does the subend wait for a client?"""
        knowledge = self.knowledge
        where = "at its pubend" if self.pubend is not None else "at a subend" if self.subend is not None else "passing"
        return state_of(
            f"stream {where}",
            gap=self.watching_gap,
            blocked=blocked,
            asked_from_below=self._asking,
            asked_above=self.asked_up,
            full=knowledge.room is not None and len(knowledge.messages) >= knowledge.room,
            owed=bool(self.owing(knowledge.newest)),
            unheard_of=any(ostream.acked < 0 for ostream in self.ostreams.values()),
            cut_off=self.came_by is not None and not self._router.way(self.came_by, self.number),
        )

    def check_invariants(self) -> None:
        """Nothing is F that a branch may still ask for."""
        self.knowledge.check_invariants()
        for ostream in self.ostreams.values():
            assert self.knowledge.final <= ostream.acked
            assert ostream.quiet_from <= ostream.quiet_to + 1
        if self.subend is not None:
            assert self.knowledge.final < self.subend.next
