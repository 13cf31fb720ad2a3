"""The stable log on a real disk: what was synced is there, what was not is gone, nothing foreign is taken for it."""

import asyncio
import sqlite3
import subprocess
import sys
import threading
import zlib
from pathlib import Path

import pytest

from actors.log_keeper import LogKeeper
from actors.stable_storage import StableStorage, discard
from murmur_pubsub.errors import InputError
from murmur_pubsub.machine import Input, Persist, Stored, Truncate


def test_what_was_synced_is_there_and_what_was_not_is_gone(tmp_path: Path) -> None:
    storage = StableStorage(tmp_path / "b1.sqlite", "b1")
    for token in range(5):
        storage.append(token, f"record {token}".encode())
    storage.sync()
    storage.append(5, b"never synced")
    storage.close()
    again = StableStorage(tmp_path / "b1.sqlite", "b1")
    assert list(again.read_from(3)) == [(3, b"record 3"), (4, b"record 4")]
    again.truncate(2)
    again.sync()
    assert [token for token, _ in again.read_from(0)] == [2, 3, 4]


def test_a_token_used_twice_is_an_error_and_loses_nothing(tmp_path: Path) -> None:
    storage = StableStorage(tmp_path / "b1.sqlite", "b1")
    storage.append(1, b"first")
    storage.sync()
    storage.append(1, b"second")
    with pytest.raises(sqlite3.IntegrityError):
        storage.sync()
    assert list(storage.read_from(0)) == [(1, b"first")]


def test_a_record_that_is_appended_beside_a_sync_is_in_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sync begins and ends while the record's checksum is worked out, as it may where records are long."""
    storage = StableStorage(tmp_path / "b1.sqlite", "b1")
    storage.append(0, b"before")

    def crc32(record: bytes, start: int) -> int:
        monkeypatch.undo()
        beside = threading.Thread(target=storage.sync)
        beside.start()
        beside.join()
        return zlib.crc32(record, start)

    monkeypatch.setattr(zlib, "crc32", crc32)
    storage.append(1, b"beside")
    storage.sync()
    assert [token for token, _ in storage.read_from(0)] == [0, 1]


def test_what_is_said_to_be_stored_is_on_the_disk_of_long_records_too(tmp_path: Path) -> None:
    path = tmp_path / "b1.sqlite"

    async def scenario() -> set[int]:
        told: list[Input] = []
        keeper = LogKeeper(path, "b1")
        keeper.attach(told.append, lambda error: pytest.fail(str(error)))
        for token in range(400):
            keeper.persist(Persist(token, bytes(20_000)))
            if token % 4 == 0:
                await asyncio.sleep(0)
        while len(told) < 400:
            await asyncio.sleep(0.001)
        keeper.close()
        return {each.token for each in told if isinstance(each, Stored)}

    stored = asyncio.run(scenario())
    assert stored == {token for token, _ in StableStorage(path, "b1").read_from(0)}


def test_a_log_that_is_not_ours_is_refused_with_its_path(tmp_path: Path) -> None:
    path = tmp_path / "b1.sqlite"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE songs (title TEXT)")
    other.close()
    with pytest.raises(InputError, match="a database of something else") as error:
        StableStorage(path, "b1")
    assert error.value.place == str(path)


def test_another_nodes_log_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "b1.sqlite"
    StableStorage(path, "b1").close()
    with pytest.raises(InputError, match="the log of 'b1'"):
        StableStorage(path, "b2")


@pytest.mark.parametrize("where", [0, 30_000])
def test_a_damaged_log_is_refused_and_left_alone(tmp_path: Path, where: int) -> None:
    path = tmp_path / "b1.sqlite"
    storage = StableStorage(path, "b1")
    for token in range(200):
        storage.append(token, bytes(200))
    storage.sync()
    storage.close()
    data = bytearray(path.read_bytes())
    data[where : where + 3_000] = b"\xff" * 3_000
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"b1\.sqlite"):
        list(StableStorage(path, "b1").read_from(0))
    assert path.read_bytes() == data


def test_stored_follows_in_order_and_batches_gather(tmp_path: Path) -> None:
    syncs = 0

    async def scenario() -> list[Input]:
        nonlocal syncs
        inputs: list[Input] = []
        keeper = LogKeeper(tmp_path / "b1.sqlite", "b1")
        keeper.attach(inputs.append, lambda error: pytest.fail(f"the disk failed: {error}"))
        sync = StableStorage.sync

        def counted(storage: StableStorage) -> None:
            nonlocal syncs
            syncs += 1
            sync(storage)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(StableStorage, "sync", counted)
            for token in range(100):
                keeper.persist(Persist(token, b"x"))
            while len(inputs) < 100:
                await asyncio.sleep(0)
            keeper.truncate(Truncate(60))
            while keeper._syncing is not None:
                await asyncio.sleep(0)
        keeper.close()
        return inputs

    assert asyncio.run(scenario()) == [Stored(token) for token in range(100)]
    assert syncs == 2, "a hundred records in one commit, the truncation in another"
    assert len(LogKeeper(tmp_path / "b1.sqlite", "b1").records()) == 40


def test_a_node_without_records_leaves_no_file(tmp_path: Path) -> None:
    keeper = LogKeeper(tmp_path / "storage" / "b1.sqlite", "b1")
    assert keeper.records() == []
    keeper.close()
    assert not (tmp_path / "storage").exists()


ROOT = Path(__file__).parents[2]
KILLED = """
import functools, os, sqlite3, sys
from pathlib import Path
from actors import stable_storage

class Killed(sqlite3.Connection):
    left = int(sys.argv[2])

    def execute(self, *given):
        if not Killed.left:
            os._exit(9)
        Killed.left -= 1
        return super().execute(*given)

stable_storage.sqlite3.connect = functools.partial(sqlite3.connect, factory=Killed)
storage = stable_storage.StableStorage(Path(sys.argv[1]), "b0")
storage.append(1, b"first")
storage.sync()
"""


def test_a_log_whose_process_was_killed_while_making_it_is_begun_anew(tmp_path: Path) -> None:
    """Killed before each statement in turn, until one run comes to its end."""
    for statements in range(100):
        path = tmp_path / f"{statements}.sqlite"
        ended = subprocess.run([sys.executable, "-c", KILLED, str(path), str(statements)], cwd=ROOT, check=False)
        storage = StableStorage(path, "b0")
        found = list(storage.read_from(0))
        if ended.returncode == 0:
            break
        assert found == []
        storage.append(1, b"again")
        storage.sync()
        storage.close()
        assert list(StableStorage(path, "b0").read_from(0)) == [(1, b"again")]
    assert found == [(1, b"first")]
    assert statements > 8


def test_a_log_that_was_discarded_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "b0.sqlite"
    discard(path)
    storage = StableStorage(path, "b0")
    storage.append(0, b"first")
    storage.sync()
    storage.close()
    discard(path)
    assert list(tmp_path.iterdir()) == []
    assert list(StableStorage(path, "b0").read_from(0)) == []
