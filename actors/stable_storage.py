"""Stable storage of one node: an append-only log in an SQLite database of its own, in WAL mode.

Appended records gather in memory; `sync` writes all of them in one transaction and returns when the disk has them
(group commit: while one sync runs, the next batch gathers). A crash loses what was not synced and nothing else.
`murmur_virtual.storage` is the counterpart in virtual time.
"""

import sqlite3
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

from murmur_pubsub.errors import InputError

_APPLICATION_ID = 0x6D75726D
_SCHEMA_VERSION = 1


def discard(path: Path) -> None:
    """Remove the database at the path, if there is one, as if its disk were lost. Nobody has it open."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


class StableStorage:
    """The log of `node` in the file `path`; made if the file is not there.

    Raises `InputError` naming the file if it is damaged, no log of ours, or another node's: it is never silently
    started anew.
    """

    def __init__(self, path: Path, node: str) -> None:
        self.path = path
        self._unsynced: list[tuple[int, bytes, int]] = []
        self._truncate_before: int | None = None
        self._lock = threading.Lock()
        """Held by who uses the database."""
        self._gathering = threading.Lock()
        """Held for a moment by who adds to the batch, or takes it: a sync runs beside the loop that appends."""
        try:
            self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            if self._is_new():
                self._create(node)
            else:
                self._check(node)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = FULL")
        except sqlite3.DatabaseError as error:
            raise InputError(str(path), f"no readable database ({error})", "a stable log of this node") from error

    def append(self, token: int, record: bytes) -> None:
        """Add a record; it is safe after the next `sync`. Tokens grow."""
        entry = (token, record, zlib.crc32(record, token & 0xFFFFFFFF))  # other threads run while a long one is summed
        with self._gathering:
            self._unsynced.append(entry)

    def truncate(self, before: int) -> None:
        """Forget the records with tokens below `before`, with the next `sync`."""
        with self._gathering:
            self._truncate_before = max(before, self._truncate_before or before)

    def sync(self) -> None:
        """Write what was appended and return when it is on the disk; may run in a thread of its own."""
        with self._lock:
            with self._gathering:
                batch, self._unsynced = self._unsynced, []
                before, self._truncate_before = self._truncate_before, None
            self._database.execute("BEGIN IMMEDIATE")
            try:
                self._database.executemany("INSERT INTO log VALUES (?, ?, ?)", batch)
                if before is not None:
                    self._database.execute("DELETE FROM log WHERE token < ?", (before,))
                self._database.execute("COMMIT")
            except BaseException:
                self._database.execute("ROLLBACK")
                raise

    def read_from(self, token: int) -> Iterator[tuple[int, bytes]]:
        """The safe records from that token on, oldest first; raises `InputError` at one that is damaged."""
        query = "SELECT token, record, checksum FROM log WHERE token >= ? ORDER BY token"
        try:
            for number, record, checksum in self._database.execute(query, (token,)):
                if zlib.crc32(record, number & 0xFFFFFFFF) != checksum:
                    raise InputError(
                        f"{self.path}, record {number}", "a damaged record", "records as they were written"
                    )
                yield number, record
        except sqlite3.DatabaseError as error:
            raise InputError(str(self.path), f"a damaged database ({error})", "a stable log of this node") from error

    def close(self) -> None:
        """Close the file, after a sync that is under way; what was not synced is lost."""
        with self._lock:
            self._database.close()

    def _is_new(self) -> bool:
        """Is nothing in the database? Also where its process was killed while making it."""
        (application,) = self._database.execute("PRAGMA application_id").fetchone()
        (tables,) = self._database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return bool(application == 0 and tables == 0)

    def _create(self, node: str) -> None:
        self._database.execute("BEGIN IMMEDIATE")
        self._database.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        self._database.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
        self._database.execute("CREATE TABLE owner (node TEXT NOT NULL)")
        self._database.execute("INSERT INTO owner VALUES (?)", (node,))
        self._database.execute(
            "CREATE TABLE log (token INTEGER PRIMARY KEY, record BLOB NOT NULL, checksum INTEGER NOT NULL)"
        )
        self._database.execute("COMMIT")

    def _check(self, node: str) -> None:
        if self._database.execute("PRAGMA application_id").fetchone() != (_APPLICATION_ID,):
            raise InputError(str(self.path), "a database of something else", "a stable log of this node")
        (version,) = self._database.execute("PRAGMA user_version").fetchone()
        if version != _SCHEMA_VERSION:
            raise InputError(str(self.path), f"a log of version {version}", f"version {_SCHEMA_VERSION}")
        owner = self._database.execute("SELECT node FROM owner").fetchone()
        if owner != (node,):
            raise InputError(str(self.path), f"the log of {owner and owner[0]!r}", f"the log of {node!r}")
        (result,) = self._database.execute("PRAGMA quick_check").fetchone()
        if result != "ok":
            raise InputError(str(self.path), f"a damaged database ({result})", "a stable log of this node")
