"""How one of the two brokers of a redundant pubend comes to serve, and how it ceases to: message by message."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from murmur_pubsub.machine import Persist, Record, Send
from reliability.end_to_end.candidate import SERVES, Begins, Candidate, Ceases, Counts
from reliability.end_to_end.redundant_messages import Beat, Claim, Has, Install, Lacks, Renew, Ship, Stands, Unknown
from reliability.end_to_end.twin_disk import Note, Standing, TwinDisk

SECOND_US = 1_000_000


class ACandidate:
    """One of the two, with what it has said; its disk is as quick as the test says."""

    def __init__(self, name: str = "b0", disk: Sequence[Persist] = (), incarnation: int = 0, now_us: int = 0) -> None:
        self.name = name
        self.disk = TwinDisk(name)
        self.disk.recover([each.record for each in disk])
        self.kept = list(disk)
        other = "b1" if name == "b0" else "b0"
        self.machine = Candidate(name, other, "b2", 0, incarnation, SECOND_US, self.disk)
        self.now_us = now_us
        self.machine.start(now_us)
        self.said: list[Any] = []
        """Claims and words about who serves without their incarnations and tickets."""
        self.tickets: list[int] = []
        self.rows: list[int] = []
        self._on_way: list[Persist] = []
        self._gather()

    def _gather(self) -> None:
        for effect in self.machine.effects:
            if type(effect) is Send:
                self.said.append(self._noted(effect.message))
            elif type(effect) is Persist:
                self._on_way.append(effect)
            elif type(effect) is Record:
                assert effect.topic == SERVES
                self.rows.append(effect.value)
        self.machine.effects = []

    def _noted(self, message: Any) -> Any:
        if type(message) in (Claim, Stands):
            self.tickets.append(message.ticket)
            return message._replace(incarnation=0, ticket=-1)
        return message

    def hear(self, message: Any, sync: bool = True) -> list[Any]:
        """The message comes; what is said then."""
        self.said.clear()
        self.machine.received(message, self.now_us)
        self._gather()
        return self.sync() if sync else [*self.said]

    def sync(self) -> list[Any]:
        """All that was written is on the disk; what was said since the last message."""
        while self._on_way:
            persist = self._on_way.pop(0)
            self.kept.append(persist)
            safe, effects = self.disk.stored(persist.token)
            self._on_way += [each for each in effects if type(each) is Persist]
            if safe is not None:
                self.machine.safe(safe, persist.token, self.now_us)
            self._gather()
        return [*self.said]

    def beat(self, after_us: int) -> list[Any]:
        """Time passes; what is said then."""
        self.said.clear()
        self.now_us += after_us
        self.machine.beat(self.now_us)
        self._gather()
        return [*self.said]

    def turns(self) -> list[Any]:
        """What has become of it since."""
        turns, self.machine.turns = self.machine.turns, []
        return turns

    def log(self, *tokens: int) -> list[Any]:
        """It logs records with these tokens; what is said then."""
        self.said.clear()
        for token in tokens:
            self.machine.persist(token, b"%d" % token)
        self._gather()
        return [*self.said]


def stands(to: str, epoch: int, host: str, paired: bool = False, incarnation: int = 0, ticket: int = -1) -> Stands:
    return Stands(to, 0, epoch, host, paired, incarnation, ticket)


def claim(by: str, epoch: int, paired: bool = False) -> Claim:
    return Claim("b2", by, 0, epoch, by, paired, 0, -1)


def alone() -> ACandidate:
    """b0, which serves alone."""
    host = ACandidate()
    host.hear(stands("b0", 0, "b0"))
    assert claim("b0", 1) in host.said
    host.hear(stands("b0", 1, "b0"))
    assert host.turns() == [Begins()]
    return host


def in_a_pair() -> ACandidate:
    """b0, which serves in a pair."""
    host = alone()
    assert Beat("b1", "b0", 0, 1, False, 1, 1) in host.hear(Has("b0", 0, 0, 0, -1))
    assert claim("b0", 2, paired=True) in host.hear(Has("b0", 0, 0, 1, 0))
    host.hear(stands("b0", 2, "b0", True))
    assert host.rows == [2, 1]
    return host


def test_alone_what_is_on_the_own_disk_counts() -> None:
    host = alone()
    host.log(1)
    assert host.turns() == []
    host.sync()
    assert host.turns() == [Counts(1)]


def test_what_the_log_of_the_one_that_serves_needs_no_more_is_cut_off_at_both() -> None:
    host = in_a_pair()
    host.log(1, 2, 3)
    host.machine.truncate(3)
    assert list(host.disk.log) == [3]
    assert host.log()[-1] == Ship("b1", 0, 1, 4, 3, b"")
    host.hear(Beat("b0", "b1", 0, 9, False, 0, 0))
    assert not host.machine.serves
    host.machine.truncate(4)
    assert list(host.disk.log) == [3], "its log is what the other one says"


def test_in_a_pair_only_what_is_on_both_disks_counts_and_in_order() -> None:
    host = in_a_pair()
    assert host.log(1, 2) == [Ship("b1", 0, 1, 1, 1, b"1"), Ship("b1", 0, 1, 2, 2, b"2")]
    host.sync()
    assert host.turns() == [], "the other disk has nothing of it"
    host.hear(Has("b0", 0, 0, 1, 1))
    assert host.turns() == [Counts(1)]
    host.log(3)
    host.hear(Has("b0", 0, 0, 1, 3), sync=False)
    assert host.turns() == [Counts(2)], "the own disk has no 3 yet"
    host.sync()
    assert host.turns() == [Counts(3)]


def test_from_its_claim_to_be_a_pair_on_both_disks_are_waited_for() -> None:
    """The witness may have granted it, and the answer be lost: then the other one may take over."""
    host = alone()
    host.hear(Has("b0", 0, 0, 0, -1))
    assert claim("b0", 2, paired=True) in host.hear(Has("b0", 0, 0, 1, 0))
    host.log(1)
    host.sync()
    assert host.turns() == []
    assert claim("b0", 2, paired=True) in host.beat(100_000), "it asks until it hears"
    assert claim("b0", 2) not in host.beat(5 * SECOND_US)


def test_one_that_is_cut_off_counts_nothing_until_the_witness_lets_it_go_on_alone() -> None:
    host = in_a_pair()
    host.log(1)
    host.sync()
    assert claim("b0", 3) not in host.beat(SECOND_US // 2)
    assert claim("b0", 3) in host.beat(SECOND_US)
    assert host.turns() == []
    host.hear(stands("b0", 3, "b0"))
    assert host.turns() == [Counts(1)]
    assert host.rows == [2, 1, 2]


def test_one_that_learns_of_a_later_epoch_ceases_and_what_was_not_on_both_disks_never_counts() -> None:
    host = in_a_pair()
    host.log(1)
    host.sync()
    host.hear(stands("b0", 3, "b1"))
    assert host.turns() == [Ceases()]
    host.hear(Has("b0", 0, 0, 1, 1))
    assert host.turns() == []
    assert host.log(2) == []
    assert host.rows == [2, 1, 0]


def test_one_that_was_started_again_serves_alone_only_by_a_claim_of_its_own() -> None:
    """An earlier incarnation may have asked to be a pair, and the grant be on its way."""
    again = ACandidate(disk=alone().kept, incarnation=1)
    assert again.turns() == []
    assert again.said == [claim("b0", 2), Beat("b1", "b0", 0, 1, False, 0, 0)]
    again.hear(stands("b0", 2, "b0", True))
    assert again.turns() == [], "that was the earlier one's: now the two are a pair"
    again.hear(Has("b0", 0, 0, 0, -1))
    again.hear(Has("b0", 0, 0, (1 << 32) + 1, 0))
    assert again.turns() == [Begins()]


def test_one_that_was_started_again_in_a_pair_serves_when_the_other_one_has_its_whole_log() -> None:
    host = in_a_pair()
    host.log(1, 2)
    host.sync()
    again = ACandidate(disk=host.kept, incarnation=1)
    stream = (1 << 32) + 1
    assert Beat("b1", "b0", 0, 2, True, stream, 3) in again.hear(Has("b0", 0, 0, 0, -1))
    again.hear(Has("b0", 0, 0, stream, 1))
    assert again.turns() == []
    again.hear(Has("b0", 0, 0, stream, 2))
    assert again.turns() == [Begins()]


def backup(*records: int, paired: bool = True) -> ACandidate:
    """b1, which has a whole log of these tokens."""
    other = ACandidate("b1")
    other.hear(stands("b1", 0, "b0"))
    other.hear(Beat("b1", "b0", 0, 1, False, 1, len(records) + 1))
    other.hear(Ship("b1", 0, 1, 0, 0, b""))
    for number, token in enumerate(records, 1):
        other.hear(Ship("b1", 0, 1, number, token, b"%d" % token))
    if paired:
        other.hear(Beat("b1", "b0", 0, 2, True, 1, len(records) + 1))
    return other


def test_a_backup_answers_for_the_last_of_the_log_when_that_is_its_log() -> None:
    other = ACandidate("b1")
    other.hear(stands("b1", 0, "b0"))
    other.hear(Beat("b1", "b0", 0, 1, False, 1, 2))
    other.hear(Ship("b1", 0, 1, 0, 0, b""))
    assert other.hear(Ship("b1", 0, 1, 1, 7, b"7"), sync=False) == [Has("b0", 0, 0, 1, 0)]
    assert other.sync()[-1] == Has("b0", 0, 0, 1, 1)
    found = TwinDisk("b1")
    found.recover([each.record for each in other.kept])
    assert found.log == {7: b"7"}
    assert found.note == Note(1, True, Standing(1, "b0", False))


def test_a_backup_takes_over_when_it_hears_nothing_and_the_witness_grants_it() -> None:
    other = backup(7)
    assert claim("b1", 3) not in other.beat(SECOND_US), "the one that serves asks first"
    assert claim("b1", 3) in other.beat(SECOND_US)
    assert other.turns() == []
    other.hear(Ship("b1", 0, 1, 2, 8, b"8"))
    assert other.said[-1] == Has("b0", 0, 0, 1, 2), "it has not taken over yet"
    other.hear(stands("b1", 3, "b1"))
    assert other.turns() == [Begins()]
    assert other.disk.log == {7: b"7", 8: b"8"}
    assert other.hear(Ship("b1", 0, 1, 3, 9, b"9")) == [], "now it answers for nothing of the former one's"
    assert other.hear(Beat("b1", "b0", 0, 2, True, 1, 2)) == [stands("b0", 3, "b1")]


@pytest.mark.parametrize("paired", [False, True])
def test_a_backup_that_is_behind_or_has_no_whole_log_only_asks_how_it_stands(paired: bool) -> None:
    other = backup(7, paired=False)
    if paired:
        other = ACandidate("b1")
        other.hear(stands("b1", 2, "b0", True))
    assert other.beat(3 * SECOND_US) == [claim("b1", 0)]


def test_a_backup_that_dies_while_its_log_is_coming_anew_has_the_one_before() -> None:
    other = backup(7)
    other.hear(Beat("b1", "b0", 0, 2, True, 9, 3))
    other.hear(Ship("b1", 0, 9, 0, 0, b""))
    other.hear(Ship("b1", 0, 9, 1, 7, b"7"))
    again = ACandidate("b1", disk=other.kept, incarnation=1)
    assert again.disk.log == {7: b"7"}
    assert again.disk.note.whole
    assert claim("b1", 3) in again.beat(2 * SECOND_US)


@pytest.mark.parametrize("name", ["b0", "b1"])
def test_one_that_has_lost_its_disk_waits_for_the_log_of_the_other(name: str) -> None:
    wiped = ACandidate(name, incarnation=1)
    assert wiped.said == [claim(name, 0)]
    wiped.hear(stands(name, 4, "b0", True, incarnation=1))
    assert wiped.turns() == []
    assert claim(name, 5) not in wiped.beat(5 * SECOND_US), "it has nothing to serve by"


def test_one_that_served_alone_and_has_lost_its_disk_begins_anew() -> None:
    wiped = ACandidate(incarnation=1)
    assert claim("b0", 5) in wiped.hear(stands("b0", 4, "b0", incarnation=1))
    wiped.hear(stands("b0", 5, "b0"))
    assert wiped.turns() == [Begins()]


def test_one_that_has_lost_its_disk_believes_no_answer_to_an_earlier_incarnation() -> None:
    """By an older word it would serve alone, with an empty log, in a pair of which the other one has all."""
    wiped = ACandidate(incarnation=1)
    for asked in (-1, 0):
        assert wiped.hear(stands("b0", 1, "b0", incarnation=asked)) == []
    wiped.hear(stands("b0", 2, "b0", True, incarnation=1))
    assert not wiped.disk.note.whole


def test_one_that_has_lost_its_disk_begins_anew_if_the_word_that_it_was_alone_comes_second() -> None:
    wiped = ACandidate(incarnation=1)
    wiped.hear(stands("b0", 2, "b0", True, incarnation=1))
    assert claim("b0", 4) in wiped.hear(stands("b0", 3, "b0"))
    wiped.hear(stands("b0", 4, "b0"))
    assert wiped.turns() == [Begins()]


def test_who_still_wants_what_was_claimed_claims_it_again_with_the_next_ticket_and_once_a_beat() -> None:
    other = backup(7)
    assert claim("b1", 3) in other.beat(2 * SECOND_US)
    assert other.tickets[-1] == -1
    for ticket in (70, 71):
        word = stands("b1", 2, "b0", True, ticket=ticket)
        assert other.hear(word) == ([claim("b1", 3)] if ticket == 70 else [])
    assert other.tickets[-1] == 70
    other.beat(SECOND_US)
    assert other.tickets[-1] == 71
    other.hear(stands("b1", 2, "b0", True, ticket=5))
    assert other.tickets[-1] == 5, "the clock of the witness was put back"
    other.beat(SECOND_US)
    other.hear(Beat("b1", "b0", 0, 2, True, 1, 2))
    assert other.hear(stands("b1", 2, "b0", True, ticket=72)) == [], "the other one is there again"


def test_a_pair_of_which_both_have_lost_their_disks_begins_anew() -> None:
    host, other = ACandidate("b0", incarnation=1), ACandidate("b1", incarnation=1)
    host.hear(stands("b0", 4, "b0", True, incarnation=1))
    other.hear(stands("b1", 4, "b0", True, incarnation=1))
    assert host.beat(SECOND_US // 10) == [Lacks("b1", 0, 4, 1)]
    assert other.hear(Lacks("b1", 0, 4, 1)) == [Lacks("b0", 0, 4, 1)]
    assert backup(7).hear(Lacks("b1", 0, 2, 1)) == [], "one that has a log says nothing"
    for late in (Lacks("b0", 0, 3, 1), Lacks("b0", 0, 4, 0)):
        host.hear(late)
        assert not host.disk.note.whole, "that was before"
    host.hear(Lacks("b0", 0, 4, 1))
    assert Beat("b1", "b0", 0, 4, True, 0, 0) in host.beat(SECOND_US // 10)


def test_one_that_has_lost_its_disk_believes_no_beat_before_the_witness_has_spoken() -> None:
    """The other one may have been away since an earlier epoch."""
    wiped = ACandidate("b1", incarnation=1)
    assert wiped.hear(Beat("b1", "b0", 0, 2, True, 5, 1)) == []
    wiped.hear(stands("b1", 7, "b1", incarnation=1))
    assert wiped.hear(Beat("b1", "b0", 0, 2, True, 5, 1)) == [stands("b0", 7, "b1")]


def test_a_stream_is_begun_anew_for_a_backup_that_was_started_again() -> None:
    host = in_a_pair()
    host.log(1)
    host.hear(Has("b0", 0, 0, 1, 1))
    assert host.turns() == [Counts(1)]
    host.log(2)
    said = host.hear(Has("b0", 0, 1, 0, -1))
    assert Beat("b1", "b0", 0, 2, True, 2, 3) in said
    host.hear(Has("b0", 0, 1, 2, 1))
    assert host.turns() == []
    assert host.hear(Has("b0", 0, 0, 1, 2)) == [], "what an earlier incarnation has said comes late"
    assert host.turns() == []
    host.hear(Has("b0", 0, 1, 2, 2))
    assert host.turns() == [Counts(2)]


def test_one_that_serves_alone_has_a_witness_that_lost_its_disk_know_it() -> None:
    host = alone()
    assert claim("b0", 0) in host.beat(SECOND_US), "it asks now and then"
    assert host.hear(Unknown("b0", 0, 5)) == [Install("b2", "b0", 0, 5, 1, False)]
    host.hear(Has("b0", 0, 0, 0, -1))
    host.hear(Has("b0", 0, 0, 1, 0))
    assert host.hear(Unknown("b0", 0, 5)) == [Renew("b1", 0, 1, 3)], "it has claimed to be a pair, and may be one"


def test_a_pair_agrees_on_an_epoch_that_the_lost_disk_cannot_have_granted() -> None:
    host = in_a_pair()
    assert host.hear(Unknown("b0", 0, 5)) == [Renew("b1", 0, 2, 4)]
    host.hear(stands("b0", 4, "b0", True))
    assert host.machine.serves
    assert host.hear(Unknown("b0", 0, 5)) == [Install("b2", "b0", 0, 5, 4, True)]
    assert host.hear(stands("b0", 3, "b1")) == [], "what was granted before, and comes late"
    assert host.machine.serves
    assert host.hear(Unknown("b0", 0, 6)) == [Renew("b1", 0, 4, 6)], (
        "it has lost its disk again, and may have granted 5"
    )


def test_a_backup_agrees_only_if_it_knows_of_nothing_later_and_has_the_whole_log() -> None:
    other = backup(7)
    other.hear(Renew("b1", 0, 1, 3))
    other.hear(Renew("b1", 0, 2, 5))
    assert other.machine.standing == Standing(2, "b0", True)
    other.hear(Renew("b1", 0, 2, 4))
    assert other.machine.standing == Standing(4, "b0", True)
    assert other.hear(stands("b1", 3, "b1")) == [], "what was granted before, and comes late"
    assert other.turns() == []
    assert other.hear(Beat("b1", "b0", 0, 2, True, 1, 2)) == [stands("b0", 4, "b0", True)], "so the host hears of it"
    behind = backup(7)
    behind.hear(Beat("b1", "b0", 0, 2, True, 9, 3))
    behind.hear(Renew("b1", 0, 2, 4))
    assert behind.machine.standing == Standing(2, "b0", True), "a log is coming to it"
    assert other.hear(Unknown("b1", 0, 5)) == [stands("b0", 4, "b0", True)]


def test_words_that_are_for_others_or_make_no_sense_change_nothing() -> None:
    rng = random.Random(1)
    texts, numbers = ("b0", "b1", "b2", "b9", ""), (-(2**62), -1, 0, 1, 2, 3, 2**62)
    for maker in (in_a_pair, backup):
        for _ in range(300):
            candidate = maker()
            kind: Any = rng.choice((Stands, Beat, Ship, Has, Lacks, Unknown, Renew))
            made: dict[str, Any] = {"str": texts, "int": numbers, "bool": (False, True), "bytes": (b"", b"x")}
            message = kind(*(rng.choice(made[each.__name__]) for each in kind.__annotations__.values()))
            before = candidate.machine.standing
            candidate.hear(message)
            if message.to != candidate.name or message.pubend != 0:
                assert candidate.said == []
                assert candidate.machine.standing == before
