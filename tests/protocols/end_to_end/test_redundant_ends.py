"""The parts of redundant publishers' brokers, one by one: the witness, the disk, the stream between the two, whom
subscribers' brokers ask, and what is refused."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from murmur_pubsub.codec import Codec
from murmur_pubsub.contract import what_is_wrong
from murmur_pubsub.deployment import NodeSpec, make_machine
from murmur_pubsub.errors import InputError
from murmur_pubsub.machine import (
    Effect,
    Input,
    LinkUp,
    NodeContext,
    Persist,
    Received,
    Send,
    SetTimer,
    Start,
    Stored,
    TimerFired,
    Truncate,
)
from murmur_pubsub.promise import RedundantEnd
from murmur_virtual.storage import VirtualStorage
from murmuration.hunt.memory import kept_by
from reliability.end_to_end.candidate import GIVES_UP
from reliability.end_to_end.parameters import EndToEndParameters, entrances
from reliability.end_to_end.redundancy import Redundancy
from reliability.end_to_end.redundant_messages import Claim, Install, Stands, Unknown
from reliability.end_to_end.shipping import Intake, Item, Shipping
from reliability.end_to_end.twin_disk import Standing, TwinDisk
from reliability.end_to_end.whereabouts import Whereabouts
from reliability.end_to_end.witness import Witness
from tests.conformance.test_senseless_messages import overlay_of, senseless

END = RedundantEnd("b0", "b1", "b2", 2_000_000, 100)
PATIENCE_US = 1_000_000


# ------------------------------------------------------------------------------------------------------- the witness
class AWitness:
    """A witness whose disk is as quick as the test says."""

    def __init__(self, incarnation: int = 0) -> None:
        self.disk = TwinDisk("b2")
        self.witness = Witness({0: END}, self.disk, incarnation, PATIENCE_US)
        self.now_us = 0
        self.on_way = [each for each in self.witness.start() if type(each) is Persist]

    def sync(self) -> list[tuple[str, Standing]]:
        """All that was written is on the disk; whom that is told, and what."""
        told: list[Effect] = []
        while self.on_way:
            safe, _ = self.disk.stored(self.on_way.pop(0).token)
            if safe is not None and safe.note is not None:
                told += self.witness.safe(safe.note, self.now_us)
        return heard(told)

    def claim(
        self, epoch: int, host: str, paired: bool = False, ticket: int | None = None
    ) -> list[tuple[str, Standing]]:
        """A claim comes, with a ticket of now or that one; whom is told at once, and what."""
        about = (0, epoch, host, paired, 0, self.now_us if ticket is None else ticket)
        effects = self.witness.claim(Claim("b2", host, *about), self.now_us)
        self.on_way += [each for each in effects if type(each) is Persist]
        return heard(effects)


def heard(effects: Sequence[Effect]) -> list[tuple[str, Standing]]:
    messages: list[Any] = [each.message for each in effects if type(each) is Send]
    return [(each.to, Standing(each.epoch, each.host, each.paired)) for each in messages]


def test_the_first_claim_of_an_epoch_is_granted_and_told_once_it_is_on_the_disk() -> None:
    witness = AWitness()
    witness.sync()
    assert witness.claim(1, "b0") == []
    assert witness.sync() == [("b0", Standing(1, "b0", False)), ("b1", Standing(1, "b0", False))]
    witness.claim(2, "b0", paired=True)
    witness.sync()
    assert witness.claim(3, "b1") == []
    assert witness.claim(3, "b0") == [], "the second claim of the epoch waits to hear of the first"
    assert witness.sync() == [("b0", Standing(3, "b1", False)), ("b1", Standing(3, "b1", False))]
    assert witness.claim(3, "b0") == [("b0", Standing(3, "b1", False))]


@pytest.mark.parametrize(
    ("epoch", "host", "paired"), [(2, "b1", False), (2, "b1", True), (1, "b0", True), (3, "b0", True)]
)
def test_while_one_serves_alone_only_that_one_may_claim_and_only_the_next_epoch(
    epoch: int, host: str, paired: bool
) -> None:
    witness = AWitness()
    witness.claim(1, "b0")
    witness.sync()
    assert witness.claim(epoch, host, paired) == [(host, Standing(1, "b0", False))]
    assert witness.on_way == []


def test_a_claim_that_waited_for_long_is_not_granted_and_its_answer_is_a_ticket() -> None:
    witness = AWitness()
    witness.sync()
    witness.now_us = 8_000_000
    for old in (-1, 0, witness.now_us - PATIENCE_US - 1, witness.now_us + 1):
        effects = witness.witness.claim(Claim("b2", "b0", 0, 1, "b0", False, 3, old), witness.now_us)
        assert effects == [Send("b0", Stands("b0", 0, 0, "b0", False, 3, witness.now_us))]
    assert witness.claim(1, "b0", ticket=witness.now_us - PATIENCE_US) == []
    assert witness.sync()[0] == ("b0", Standing(1, "b0", False))


def test_who_is_neither_of_the_two_may_claim_nothing() -> None:
    witness = AWitness()
    witness.sync()
    assert witness.claim(1, "b7") == []
    assert witness.on_way == []


def test_a_witness_that_has_lost_its_disk_grants_nothing_before_it_is_told_how_it_stands() -> None:
    witness = AWitness(incarnation=3)
    assert not witness.witness.knows_all
    for asked in (Claim("b2", "b0", 0, 1, "b0", False, 0, 0), Claim("b2", "b1", 0, 0, "b1", False, 0, 0)):
        assert witness.witness.claim(asked, 0) == [Send(asked.origin, Unknown(asked.origin, 0, 3))]
    assert witness.on_way == []
    for wrong in (
        Install("b2", "b0", 0, 2, 8, True),
        Install("b2", "b9", 0, 3, 8, True),
        Install("b2", "b0", 1, 3, 8, True),
    ):
        assert witness.witness.install(wrong) == [], "of an earlier time, of another broker, or of another pubend"
    witness.on_way += [
        each for each in witness.witness.install(Install("b2", "b0", 0, 3, 8, True)) if type(each) is Persist
    ]
    assert witness.sync() == [("b0", Standing(8, "b0", True)), ("b1", Standing(8, "b0", True))]
    assert witness.witness.knows_all
    assert witness.witness.install(Install("b2", "b1", 0, 3, 10, True)) == [], "now it knows"
    assert witness.claim(9, "b1") == []
    assert witness.sync()[0] == ("b0", Standing(9, "b1", False))


# ---------------------------------------------------------------------------------------------------------- the disk
class ADisk:
    """A disk, and what its log must be if its broker dies now: `safe`. `log` is what it is in memory."""

    def __init__(self) -> None:
        self._storage = VirtualStorage()
        self._disk = TwinDisk("b1")
        self._on_way: list[tuple[Persist, dict[int, bytes] | None]] = []
        self._coming: dict[int, bytes] | None = None
        self._token = 0
        self.log: dict[int, bytes] = {}
        self.safe: dict[int, bytes] = {}

    def step(self, what: str) -> None:
        """Do one thing, if it can be done now."""
        disk, coming = self._disk, self._coming
        self._token += 1
        if what == "append":
            self.log = {**self.log, self._token: b"%d" % self._token}
            self._do([disk.append(self._token, self.log[self._token])], self.log)
        elif what == "begin":
            self._coming = {}
            disk.begin_generation()
        elif what == "coming" and coming is not None:
            coming[self._token] = b"%d" % self._token
            self._do([disk.append_coming(self._token, coming[self._token])], None)
        elif what == "switch" and coming is not None:
            self.log, self._coming = coming, None
            self._do([disk.switch(Standing(1, "b0", False))], self.log)
        elif what == "cut" and len(self.log) > 3 and not self._on_way:
            before = sorted(self.log)[2]
            self.log = self.safe = {each: record for each, record in self.log.items() if each >= before}
            self._do(disk.cut(before), None)
        elif what == "sync" and self._on_way:
            persist, then = self._on_way.pop(0)
            self._storage.keep(*persist)
            self.safe = self.safe if then is None else then
            self._do(disk.stored(persist.token)[1], None)

    def die(self) -> dict[int, bytes]:
        """Its broker dies and starts again; the log that it finds, but for what was cut off."""
        self._on_way.clear()
        self._disk = TwinDisk("b1")
        self._disk.recover(self._storage.records())
        self.log, self._coming = dict(self._disk.log), None
        return {each: record for each, record in self.log.items() if not self.safe or each >= min(self.safe)}

    def __len__(self) -> int:
        return len(self._storage)

    def _do(self, effects: Sequence[Effect], then: dict[int, bytes] | None) -> None:
        for effect in effects:
            if type(effect) is Persist:
                self._on_way.append((effect, then))
            elif type(effect) is Truncate:
                self._storage.truncate(effect.before)


def test_a_disk_has_the_log_that_was_last_whole_whenever_its_broker_dies() -> None:
    kinds = ("append", "append", "coming", "coming", "begin", "switch", "cut", "sync", "sync", "sync", "die")
    for seed in range(200):
        rng, disk = random.Random(seed), ADisk()
        for _ in range(150):
            kind = rng.choice(kinds)
            if kind != "die":
                disk.step(kind)
            elif rng.random() < 0.3:
                assert disk.die() == disk.safe, f"seed {seed}"


def test_a_disk_does_not_grow_while_its_log_is_cut() -> None:
    disk = ADisk()
    for kind in ("begin", "switch", "sync"):
        disk.step(kind)
    for _ in range(500):
        for kind in ("append", "sync", "cut", "sync", "sync"):
            disk.step(kind)
    assert len(disk) < 10


def test_the_disk_of_a_witness_does_not_grow_with_claims() -> None:
    parameters = EndToEndParameters(backups={"b0": ["b1", "b2"]})
    witness, storage = Redundancy(NodeContext("b2", 1), parameters, ["b0"]), VirtualStorage()
    witness.start([], 0)
    for epoch in range(1, 100):
        witness.take(Received("b0", Claim("b2", "b0", 0, epoch, "b0", False, 0, 0)), 0)
        waiting = witness.carried_out([])
        while waiting:
            effect = waiting.pop(0)
            if type(effect) is Persist:
                storage.keep(*effect)
                witness.take(Stored(effect.token), 0)
                waiting += witness.carried_out([])
            elif type(effect) is Truncate:
                storage.truncate(effect.before)
    assert witness.disk.note.registers[0] == Standing(99, "b0", False)
    assert len(storage) < 10


def test_a_witness_without_its_disk_is_waited_for_so_long_from_when_it_began_again() -> None:
    parameters = EndToEndParameters(backups={"b0": ["b1", "b2"]}, silence=1_000)
    for began_us in (0, 3_600_000_000):
        witness = Redundancy(NodeContext("b2", 1, incarnation=1), parameters, ["b0"])
        witness.start([], began_us)
        longest_us = GIVES_UP * 1_000_000
        assert [witness.settling(began_us + after_us) for after_us in (0, longest_us, longest_us + 1)] == [
            True,
            True,
            False,
        ]


def test_a_disk_with_what_is_no_log_of_ours_is_refused_with_its_place() -> None:
    with pytest.raises(InputError, match="the stable log of b1, record 1: found b'x'"):
        TwinDisk("b1").recover([b"x"])


# --------------------------------------------------------------------------------------------------------- the stream
def test_a_stream_comes_whole_and_in_order_whatever_is_lost_doubled_or_overtaken() -> None:
    for seed in range(100):
        rng = random.Random(seed)
        begun = [(token, b"%d" % token) for token in range(1, rng.randint(1, 300))]
        shipping, place = Shipping(1, 0, begun), 0
        intake, taken = Intake(1, shipping.whole), []
        on_way, on_disk = list(shipping.to_send()), []
        for token in range(400, 450):
            shipping.append(token, b"%d" % token)
        for _ in range(5_000):
            if shipping.in_step:
                break
            if on_way:
                item = on_way.pop(rng.randrange(len(on_way)))
                for _ in range(rng.choice((0, 1, 1, 2))):
                    for each in intake.put(item):
                        taken.append(each.token)
                        place += 1
                        intake.waits_for(each.number, place)
                        on_disk.append(place)
            if on_disk and rng.random() < 0.7:
                intake.safe(on_disk.pop(0))
            if rng.random() < 0.5:
                shipping.has(intake.has)
                on_way += shipping.to_send()
            if not on_way:
                on_way += shipping.to_repeat()
        assert shipping.in_step, f"seed {seed}"
        assert taken == [0, *(token for token, _ in begun), *range(400, 450)]


def test_other_records_of_the_broker_that_are_safe_are_not_remembered() -> None:
    """Hunt of vinifera/end_to_end/crossed, seed 60: a backup that is a witness, too, kept the places of its notes."""
    intake = Intake(1, 1)
    intake.put(Item(0, 5, b"5"))
    intake.waits_for(0, 3)
    for place in range(60):
        assert intake.has == (-1 if place < 4 else 0)
        intake.safe(place)
    assert not kept_by(intake)


def test_nothing_counts_as_on_both_disks_before_the_log_is_whole_on_the_other_one() -> None:
    shipping = Shipping(1, 0, [(7, b"7"), (8, b"8")])
    shipping.to_send()
    shipping.has(1)
    assert not shipping.both_have(7), "the other one has a log without 8, and would serve by its old one"
    shipping.has(2)
    assert shipping.both_have(7)
    shipping.append(9, b"9")
    assert not shipping.both_have(9)
    shipping.has(9)
    assert not shipping.both_have(9), "so many were never shipped"


# -------------------------------------------------------------------------------------------------- whom one asks
def test_the_one_that_answered_last_is_asked_and_both_while_an_answer_is_overdue() -> None:
    where = Whereabouts([END], 500_000)
    assert where.ask("b5", 0) == ("b5",)
    assert where.ask("b0", 0) == ("b0",)
    assert where.ask("b0", 499_999) == ("b0",)
    assert where.ask("b0", 500_000) == ("b0", "b1")
    assert where.answered("b1") == "b0", "another one serves"
    assert where.answered("b1") is None
    assert where.ask("b0", 600_000) == ("b1",)
    assert where.answered("b5") is None


# --------------------------------------------------------------------------------------------- whatever a peer may say
@pytest.mark.parametrize("name", ["b0", "b1", "b2"])
def test_a_message_that_makes_no_sense_ends_none_of_the_three(name: str) -> None:
    for seed in range(40):
        rng = random.Random(f"{seed}/senseless")
        spec = overlay_of("flooding", "end_to_end", seed).nodes[0]
        parameters = EndToEndParameters(backups={"b0": ["b1", "b2"]})
        given = {**spec.parameters, "reliability_parameters": parameters, "entrances": ("b0", "b2", "b3")}
        machine = make_machine(NodeSpec(name, "broker", spec.factory, given), 1)
        codec, now_us = Codec(machine.message_types), 1_000
        inputs: list[Input] = [Start(), *(LinkUp(peer, True) for peer in ("b0", "b1", "b2") if peer != name)]
        for received in [*senseless(machine, codec, rng), *senseless(machine, codec, rng)]:
            inputs.append(received)
            while inputs:
                now_us += 20_000
                effects = machine.handle(inputs.pop(0), now_us)
                assert what_is_wrong(effects) is None
                inputs += [Stored(each.token) for each in effects if type(each) is Persist]
                timers = [each.key for each in effects if type(each) is SetTimer]
                inputs += [TimerFired(key) for key in timers if rng.random() < 0.3]
                for each in effects:
                    if type(each) is Send:
                        codec.encode(each.message)
        machine.check_invariants()


# ------------------------------------------------------------------------------------------------------- parameters
@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"backups": {"b0": ["b1"]}}, "backups.b0: found ['b1']; allowed: two brokers: the backup and the witness"),
        ({"backups": {"b0": ["b0", "b2"]}}, "backups.b0: found ['b0', 'b2']; allowed: two other brokers than b0"),
        ({"backups": {"b0": ["b1", "b1"]}}, "backups.b0: found ['b1', 'b1']; allowed: two other brokers"),
        ({"backups": {"b0": ["b1", "b2"], "b1": ["b3", "b2"]}}, "backups.b0: found the backup 'b1'"),
        ({"pubends": ["b0", "b1"], "backups": {"b0": ["b1", "b2"]}}, "backups.b0: found the backup 'b1'"),
        ({"backups": {"b0": ["b1", "b2"], "b3": ["b1", "b2"]}}, "backups.b3: found 'b1', the backup of b0 too"),
        ({"pubends": ["b3"], "backups": {"b0": ["b1", "b2"]}}, "found a backup of what is not in `pubends`"),
        ({"silence": 250, "beat": 100}, "silence: found silence 250 ms with beat 100 ms"),
    ],
)  # fmt: skip
def test_backups_that_make_no_sense_are_refused_with_their_place(given: dict[str, Any], found: str) -> None:
    with pytest.raises(InputError) as refused:
        EndToEndParameters(**given)
    assert found in str(refused.value)


@pytest.mark.parametrize("others", [["b9", "b2"], ["b1", "b9"]])
def test_a_backup_or_witness_that_is_unknown_is_refused(others: list[str]) -> None:
    parameters = EndToEndParameters(backups={"b0": others})
    with pytest.raises(InputError, match=r"backups\.b0: found 'b9'"):
        entrances(parameters, ["b0", "b1", "b2", "b3"])


def test_who_names_no_entrance_is_told_of_ten_that_there_are() -> None:
    with pytest.raises(InputError, match=r"pubends: found 'b9'.*b0, .*, c9"):
        entrances(EndToEndParameters(pubends=["b9"]), ["b0", *(f"c{number}" for number in range(1, 10))])


def test_a_backup_is_no_entrance_of_its_own() -> None:
    parameters = EndToEndParameters(backups={"b0": ["b1", "b2"]})
    assert entrances(parameters, ["b0", "b1", "b2", "b3"]) == ["b0", "b2", "b3"]
