"""A model test of the streams: any interleaving of messages, losses, repetitions, reorderings and crashes."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.protocols.gryphon.bench import Bench

TICKS_PER_STEP = 40
SUBSCRIBERS = {1: "s", 2: "t"}


class Streams(RuleBasedStateMachine):
    """One pubend at p; subscriber 1 at s wants everything, subscriber 2 at t the events with even x."""

    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench(cache=10_000, aet=1_000, aet_most=2_000)
        self.bench.subscribe("s", 1)
        self.bench.subscribe("t", 2, "x IN (0, 2)")
        self.published = 0
        self.known: dict[str, dict[int, tuple[int, int] | None]] = {}
        self.final: dict[str, int] = {}

    @rule(parity=st.integers(0, 1))
    def publish(self, parity: int) -> None:
        self.bench.publish("p", 7, self.published, parity)
        self.published += 1

    @precondition(lambda self: self.bench.bag)
    @rule(place=st.integers(0, 99))
    def arrive(self, place: int) -> None:
        self.bench.deliver(self.bench.bag[place % len(self.bench.bag)])

    @precondition(lambda self: self.bench.bag)
    @rule(place=st.integers(0, 99))
    def lose(self, place: int) -> None:
        del self.bench.bag[place % len(self.bench.bag)]

    @precondition(lambda self: self.bench.bag)
    @rule(place=st.integers(0, 99))
    def repeat(self, place: int) -> None:
        self.bench.bag.append(self.bench.bag[place % len(self.bench.bag)])

    @rule()
    def wait(self) -> None:
        self.bench.now_us += TICKS_PER_STEP * 1_000
        due = self.bench.next_timer()
        if due is not None and due[0] <= self.bench.now_us:
            self.bench.fire(due)

    @rule(name=st.sampled_from(["m0", "m1", "p"]))
    def restart(self, name: str) -> None:
        self.bench.crash(name)
        self.known.pop(name, None)
        self.final.pop(name, None)
        self.bench.start(name)
        for peer in self.bench.peers(name):
            if peer in self.bench.brokers:
                self.bench.link(name, peer)

    @invariant()
    def knowledge_is_never_taken_back(self) -> None:
        for name in self.bench.brokers:
            knowledge = self.bench.stream(name).knowledge
            final = knowledge.final
            assert final >= self.final.get(name, -1)
            now = {
                tick: None if tick not in knowledge.messages else tuple(knowledge.messages[tick].event.id)
                for first, last in knowledge.known
                for tick in range(first, last + 1)
            }
            for tick, what in self.known.get(name, {}).items():
                assert tick <= final or now.get(tick, "Q") == what
            self.known[name], self.final[name] = now, final  # type: ignore[assignment]

    @invariant()
    def silence_and_messages_never_meet(self) -> None:
        truth = self.bench.stream("p").knowledge
        for name in ("m0", "m1", "s", "t"):
            knowledge = self.bench.stream(name).knowledge
            for tick, message in knowledge.messages.items():
                assert tick not in truth.known or truth.messages[tick].event.id == message.event.id
            for first, last in knowledge.known:
                for tick in truth.ticks(first, last):
                    hidden = tick not in knowledge.messages
                    assert not hidden or (name == "t" and truth.messages[tick].event.attributes["x"] % 2 == 1)

    @invariant()
    def subscribers_have_a_prefix(self) -> None:
        for got in self.bench.delivered.values():
            assert got == sorted(set(got)), "once, and in order"

    def teardown(self) -> None:
        self.bench.deliver_all()
        for _ in range(60):
            self.bench.pass_time(1_000)
        assert self.bench.delivered[1] == [(7, sequence) for sequence in range(self.published)]
        last = self.bench.stream("p").pubend
        assert last is not None
        for name in self.bench.brokers:
            if name in ("p", "s", "t"):
                assert self.bench.stream(name).knowledge.final >= last.last_message, f"{name} still holds something"
            self.bench.brokers[name].check_invariants()


Streams.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
test_streams = Streams.TestCase
