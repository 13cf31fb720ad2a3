"""Whatever a publishers' broker had done when it died, its log says at least what its clients are still owed."""

import random

import pytest

from murmur_pubsub.event import Event
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.machine import Persist, Truncate
from reliability.durable.log import DurableLog
from reliability.gryphon.pubend_log import Logged

CLIENTS = ("c", "d", "e")
FILTERS = [parse_filter(text) for text in ("x >= 0", "x > 5", "x < 3", "x = 4")]


class Play:
    """A log, and what is on the disk of it."""

    def __init__(self, seed: int) -> None:
        self.log = DurableLog("p", 4)
        self.disk: dict[int, bytes] = {}
        self._rng = random.Random(seed)
        self._tick = 9
        self._revisions = dict.fromkeys(CLIENTS, 0)

    def step(self) -> None:
        rng, record = self._rng, self.log.record
        what = rng.choice(("publish", "publish", "publish", "enlist", "release", "give up", "cut"))
        client = rng.choice(CLIENTS)
        if what == "publish":
            self._tick += 1
            event = Event(3, self._tick, 0, {"x": rng.randrange(10)})
            self._store(self.log.append(Logged(0, self._tick, event))[1])
        elif what == "enlist":
            self._revisions[client] += 1
            wanted = [(subscriber, rng.choice(FILTERS)) for subscriber in (1, 2) if rng.random() < 0.8]
            self._store(self.log.enlist(client, self._revisions[client], wanted, {0: self._tick})[1])
        elif client in record.registrations and what != "cut":
            tick = rng.randint(9, self._tick)
            record.release(client, 0, tick) if what == "release" else record.give_up(client, 0, tick)
        else:
            for effect in self.log.cut({0: self._tick}):
                assert isinstance(effect, Persist)
                self._store(effect)
        record.check_invariants()

    def _store(self, effect: Persist) -> None:
        self.disk[effect.token] = effect.record
        for cut in self.log.stored(effect.token):
            assert isinstance(cut, Truncate)
            self.disk = {token: record for token, record in self.disk.items() if token >= cut.before}


def owed(log: DurableLog, client: str) -> dict[int, list[int]]:
    return {tick: sorted(subscribers) for tick, _, subscribers in log.record.after(client, 0, -1, 1_000)}


@pytest.mark.parametrize("seed", range(60))
def test_a_log_that_is_read_again_owes_nobody_less(seed: int) -> None:
    """What a client has, or lost, since the last checkpoint is in no record: that alone may be more."""
    play = Play(seed)
    for _ in range(80):
        play.step()
        again = DurableLog("p", 4)
        again.recover(list(play.disk.values()))
        again.record.check_invariants()
        assert again.record.registrations.keys() == play.log.record.registrations.keys()
        for client, known in play.log.record.registrations.items():
            read, still = again.record.registrations[client], owed(play.log, client)
            assert (read.revision, read.wanted) == (known.revision, known.wanted)
            assert read.has.get(0, -1) <= known.has.get(0, -1)
            assert {tick: each for tick, each in owed(again, client).items() if tick in still} == still
            assert all(tick <= known.done_up(0) for tick in owed(again, client).keys() - still.keys())


def test_a_log_that_is_read_again_holds_no_refusals_that_their_publisher_has_heard_of() -> None:
    """Later records of its messages say nothing of them. Else the publisher would be told of them once more."""
    log, records = DurableLog("p", 4), []
    log.refused = {3: [7]}
    for tick, heard in ((10, False), (11, True)):
        if heard:
            del log.refused[3]
        records.append(log.append(Logged(0, tick, Event(3, tick, 0, {"x": 1})))[1].record)
    for count, refused in ((1, {3: [7]}), (2, {})):
        again = DurableLog("p", 4)
        again.recover(records[:count])
        assert again.refused == refused
