"""Stable storage in virtual time: what a crash of its node leaves, and nothing else.

A record is safe a stated time after it was appended, as with a disk whose commits are gathered; a node that crashes
before that has lost it. `actors.stable_storage` is the real one.
"""


class VirtualStorage:
    """The safe records of one node, over all its incarnations."""

    __slots__ = ("_records", "last_token")

    def __init__(self) -> None:
        self.last_token = -1
        """The token of the record that became safe last, though it may be truncated since."""
        self._records: dict[int, bytes] = {}

    def keep(self, token: int, record: bytes) -> None:
        """The record is safe now. Tokens grow."""
        self._records[token] = record
        self.last_token = token

    def truncate(self, before: int) -> None:
        """Forget the records with tokens below `before`."""
        for token in list(self._records):
            if token >= before:
                break
            del self._records[token]

    def records(self) -> list[bytes]:
        """What a machine is started with, oldest first."""
        return list(self._records.values())

    def __len__(self) -> int:
        return len(self._records)
