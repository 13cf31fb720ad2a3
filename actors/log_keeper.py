"""Carries out a machine's `Persist` and `Truncate`: group commit beside the node's loop.

While one sync waits for the disk in a thread, the loop goes on and the next batch gathers; `Stored` follows, in
order, once the disk has a record.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

from actors.stable_storage import StableStorage
from murmur_pubsub.contract import next_token
from murmur_pubsub.machine import Input, NodeName, Persist, Stored, Truncate


class LogKeeper:
    """The stable log of one node. The file is made with the first record, so that nodes without one leave none."""

    def __init__(self, path: Path, node: NodeName) -> None:
        self._path = path
        self._node = node
        self._storage: StableStorage | None = StableStorage(path, node) if path.exists() else None
        self._unsynced: list[int] = []
        self._token = -1
        self._dirty = False
        self._syncing: asyncio.Task[None] | None = None
        self._take_input: Callable[[Input], None]
        self._fail: Callable[[Exception], None]

    def attach(self, take_input: Callable[[Input], None], fail: Callable[[Exception], None]) -> None:
        """`take_input` is called with each `Stored`, `fail` when the disk failed."""
        self._take_input, self._fail = take_input, fail

    def records(self) -> list[bytes]:
        """What earlier incarnations left, oldest first."""
        kept = [] if self._storage is None else list(self._storage.read_from(0))
        self._token = kept[-1][0] if kept else -1
        return [record for _, record in kept]

    def persist(self, effect: Persist) -> None:
        """Append the record; `Stored` follows. Raises `ContractError` for what is no record under a new token."""
        self._token = next_token(self._token, effect)
        self._opened().append(effect.token, effect.record)
        self._unsynced.append(effect.token)
        self._sync_soon()

    def truncate(self, effect: Truncate) -> None:
        """Forget old records with the next sync."""
        self._opened().truncate(effect.before)
        self._sync_soon()

    def close(self) -> None:
        """Close the file; nothing may be persisted afterwards."""
        if self._syncing is not None:
            self._syncing.cancel()
        if self._storage is not None:
            self._storage.close()

    async def abandon(self) -> None:
        """Lose what was not synced, as if the process were gone. A sync that is under way ends first: of a process that
        dies, too, the disk may have what nobody was told of."""
        if self._syncing is not None:
            self._syncing.cancel()
        if self._storage is not None:
            await asyncio.to_thread(self._storage.close)

    def _opened(self) -> StableStorage:
        if self._storage is None:
            self._path.parent.mkdir(exist_ok=True)
            self._storage = StableStorage(self._path, self._node)
        return self._storage

    def _sync_soon(self) -> None:
        self._dirty = True
        if self._syncing is None:
            self._syncing = asyncio.get_running_loop().create_task(self._sync())

    async def _sync(self) -> None:
        storage = self._opened()
        try:
            while self._dirty:
                # What is appended while the thread syncs has a list of its own and makes this dirty again, so it is
                # said to be stored only after a commit that began later. No await lies between the last look at
                # `_dirty` and the end, so nothing is appended unseen.
                self._dirty = False
                tokens, self._unsynced = self._unsynced, []
                await asyncio.to_thread(storage.sync)
                for token in tokens:
                    self._take_input(Stored(token))
        except Exception as error:
            self._fail(error)
        finally:
            self._syncing = None
