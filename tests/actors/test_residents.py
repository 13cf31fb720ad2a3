"""Nodes that share an actor: each dies alone, as it would with a process of its own. No Ray is needed for that."""

import asyncio
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from actors import connection
from actors.actor_settings import ActorSettings
from actors.clock import origin_now
from actors.resident import Arrival, Household, Resident
from actors.stable_storage import StableStorage
from murmur_pubsub.codec import frames
from murmur_pubsub.deployment import NodeSpec, RunSettings
from murmur_pubsub.errors import InputError
from murmur_pubsub.journal import RowKind
from murmur_pubsub.journal_format import FileState
from murmur_pubsub.journal_rows import read_segment
from murmur_pubsub.journal_sealing import seal_series
from murmur_pubsub.links import LinkSpec
from murmur_pubsub.machine import Effect, Input, Machine, NodeContext, Persist, SetTimer, Start, TimerFired
from murmur_pubsub.message import Message
from tests.actors.net import run, until
from tests.deployments import PARTS, PlainScript

NUMBERS = {"b0": 0, "b1": 1, "b2": 2, "c0": 3}
LINKS = {"b0": ["b1"], "b1": ["b0", "b2"], "b2": ["b1"]}
STARTED_WITH: list[list[bytes]] = []


class Noting(Machine):
    """Persists a record and then another one, without an end, and keeps a timer going."""

    message_types: Sequence[type[Message]] = ()

    def __init__(self) -> None:
        self.token = 0

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        if type(input) is Start:
            STARTED_WITH.append(list(input.records))
            self.token = len(input.records)
        if type(input) in (Start, TimerFired):
            self.token += 1
            return [Persist(self.token, b"%d" % self.token), SetTimer(("again",), 500)]
        return ()


def make_noting(context: NodeContext) -> Machine:
    return Noting()


class House:
    """Some brokers in one chain and one household."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.errors: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: self.errors.append(context))
        settings = ActorSettings(
            RunSettings(1), "token", str(folder), str(folder / "logs"), NUMBERS, origin_now(), "127.0.0.1"
        )
        self.household = Household(settings, brokers=frozenset(LINKS))

    async def add(self, name: str, incarnation: int = 0, factory: str = "murmuration.registry:make_broker") -> Resident:
        arrival = Arrival(NodeSpec(name, "broker", factory, dict(PARTS)), None, incarnation, 0)
        resident = self.household.residents[name] = Resident(arrival, self.household)
        self.household.addresses[name] = resident.listen("127.0.0.1")
        await resident.attach({peer: LinkSpec() for peer in LINKS[name]})
        await resident.dial([peer for peer in LINKS[name] if peer > name])
        return resident

    async def whole(self) -> dict[str, Resident]:
        for name in LINKS:
            await self.add(name)
        await until(lambda: all(len(self.up(name)) == len(LINKS[name]) for name in LINKS))
        return self.household.residents

    def up(self, name: str) -> list[str]:
        return sorted(self.household.residents[name]._running.connections)

    def rows(self, name: str, incarnation: int = 0) -> np.ndarray:
        paths = sorted(self.folder.glob(f"{name}-{incarnation}-*.seg"))
        return np.concatenate([read_segment(path)[1] for path in paths])

    def kinds(self, name: str) -> list[int]:
        return [int(kind) for kind in self.rows(name)["kind"]]


def test_a_crash_breaks_the_links_of_one_node_and_leaves_the_others_of_its_process(tmp_path: Path) -> None:
    async def play() -> None:
        house = House(tmp_path)
        residents = await house.whole()
        before = house.kinds("b1")
        host, port = house.household.addresses["b1"]
        await residents.pop("b1").crash()
        await until(lambda: house.up("b0") == house.up("b2") == [])
        assert RowKind.LINK_DOWN in house.kinds("b0"), "its peers see the connection break"
        with socket.socket() as stranger:
            assert stranger.connect_ex((host, port)) != 0, "nobody listens where it was"
        assert house.kinds("b1") == before, "the dead write nothing, not even that their links are gone"
        assert house.errors == []
        await house.add("b1", incarnation=1)
        await until(lambda: house.up("b1") == ["b0", "b2"])
        for each in residents.values():
            await each.leave()
        for each in residents.values():
            await each.stop()

    run(play())


def test_the_journal_of_a_crashed_node_is_open_until_somebody_seals_it(tmp_path: Path) -> None:
    async def play() -> None:
        house = House(tmp_path)
        residents = await house.whole()
        await residents.pop("b1").crash()
        (segment,) = tmp_path.glob("b1-0-*.seg")
        assert read_segment(segment)[0].state is FileState.OPEN
        seal_series(tmp_path, "b1", 0)
        assert read_segment(segment)[0].state is FileState.LAST_OF_DEAD
        for each in residents.values():
            await each.crash()

    run(play())


def test_a_crash_keeps_what_was_synced_and_a_new_incarnation_in_the_same_process_starts_from_that(
    tmp_path: Path,
) -> None:
    async def play() -> None:
        STARTED_WITH.clear()
        house = House(tmp_path)
        for incarnation in range(4):
            resident = await house.add("b0", incarnation, "tests.actors.test_residents:make_noting")
            await asyncio.sleep(0.02)  # in the middle of a sync, or between two
            await resident.crash()
        assert STARTED_WITH[0] == []
        assert [len(records) for records in STARTED_WITH] == sorted({len(records) for records in STARTED_WITH})
        for records in STARTED_WITH:
            assert records == [b"%d" % token for token in range(1, len(records) + 1)], "none is lost in between"

    run(play())


def test_a_node_that_crashes_while_it_dials_comes_up_nowhere(tmp_path: Path) -> None:
    async def play() -> None:
        house = House(tmp_path)
        residents = house.household.residents
        await house.add("b1")
        for incarnation in range(25):
            dialling = await house.add("b0", incarnation)
            for _ in range(incarnation):
                await asyncio.sleep(0)
            await residents.pop("b0").crash()
            before = len(house.rows("b0", incarnation))
            await asyncio.sleep(0.01)
            assert house.errors == [], "what is left of the dead does nothing"
            assert house.up("b1") == [], "no link to the dead"
            assert len(house.rows("b0", incarnation)) == before
            assert dialling._running.connections == {}
        await residents.pop("b1").crash()

    run(play())


def test_what_a_machine_is_at_is_said_by_the_node_whose_machine_it_is(tmp_path: Path) -> None:
    async def play() -> None:
        house = House(tmp_path)
        residents = await house.whole()
        said: dict[str, Any] = {}

        class Stuck(Noting):
            def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
                for name, resident in residents.items():
                    said[name] = resident.at_work("20 s")
                return ()

        residents["b1"]._running.machine = Stuck()
        residents["b1"]._running.take_input(TimerFired(("x",)))
        assert said["b0"] is said["b2"] is None
        assert said["b1"] is not None
        assert said["b1"][1].node == "b1"
        for each in residents.values():
            await each.crash()

    run(play())


def test_a_publisher_that_is_behind_sends_its_events_in_few_frames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A frame of its own for each event would be a call of the system for each, and as many at the broker."""
    lengths = []

    def counted(messages: Sequence[bytes]) -> list[bytes]:
        lengths.append(len(messages))
        return frames(messages)

    async def play() -> None:
        house = House(tmp_path)
        broker = await house.add("b0")
        broker._running.link_specs["c0"] = LinkSpec()
        script = PlainScript(publications=tuple((0, 0, {"x": number}) for number in range(100)))
        spec = NodeSpec("c0", "client", "murmuration.registry:make_client", {"broker": "b0"}, "b0")
        client = house.household.residents["c0"] = Resident(Arrival(spec, script, 0, 0), house.household)
        client.listen("127.0.0.1")
        await client.attach({"b0": LinkSpec()})
        await client.dial(["b0"])
        await until(lambda: house.up("c0") == ["b0"])
        monkeypatch.setattr(connection, "frames", counted)
        await client.publish(0)
        await until(lambda: broker._running.counters.received == 100)
        assert sum(lengths) == 100
        assert len(lengths) <= 3, lengths
        assert [int(number) for number in house.rows("b0")["sequence"] if number >= 0] == list(range(100))
        for each in (client, broker):
            await each.crash()

    run(play())


def test_a_node_whose_disk_was_lost_starts_without_what_had_been_stored(tmp_path: Path) -> None:
    async def play() -> None:
        house = House(tmp_path)
        (tmp_path / "logs").mkdir()
        StableStorage(tmp_path / "logs" / "b0.sqlite", "another").close()
        arrival = Arrival(NodeSpec("b0", "broker", "murmuration.registry:make_broker", dict(PARTS)), None, 1, 0)
        with pytest.raises(InputError, match="the log of 'another'"):
            Resident(arrival, house.household).listen("127.0.0.1")
        wiped = Resident(arrival._replace(incarnation=2, disk_lost=True), house.household)
        wiped.listen("127.0.0.1")
        assert list((tmp_path / "logs").iterdir()) == []
        wiped._socket.close()

    run(play())
