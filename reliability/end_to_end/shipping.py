"""A log on its way from the broker that serves a pubend to the other one: both ends of the stream.

Theory of operation. A stream begins with the whole log as it is, and goes on with each record and each cut of it, item
by item. The other end puts items in order, writes them to its disk, and answers up to which number all are there. What
is not answered is sent again. The items of the beginning are a new generation on that disk
(`reliability.end_to_end.twin_disk`), and the last of them is answered for when that generation is the log. So until
then nothing counts as stored by both, and from then on everything that is answered for.
"""

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

_ON_THE_WAY = 200
"""Items that are sent before an answer to them has come."""
_AGAIN = 50
"""The most items that are sent again at a time: the oldest ones, which the other end waits for."""
_AHEAD_MOST = 1_000


class Item(NamedTuple):
    """See `reliability.end_to_end.redundant_messages.Ship`."""

    number: int
    token: int
    record: bytes


class Shipping:
    """The sending end. `whole`: how many items the log had at the beginning; `peer`: the incarnation of the other
    broker that the stream is for. `acked`: up to there all is on its disk."""

    def __init__(self, stream: int, peer: int, log: Iterable[tuple[int, bytes]]) -> None:
        self.stream = stream
        self.peer = peer
        self.acked = -1
        self._items: deque[Item] = deque([Item(0, 0, b"")])  # so that an empty log has a beginning too
        self._next = 1
        self._sent = 0
        self._idle = False
        self._number_of: dict[int, int] = {}
        for token, record in log:
            self.append(token, record)
        self.whole = self._next

    def append(self, token: int, record: bytes) -> None:
        """One item more; an empty record: a cut below that token."""
        if record:
            self._number_of[token] = self._next
        self._items.append(Item(self._next, token, record))
        self._next += 1

    def has(self, number: int) -> None:
        """The other end has all up to that number on its disk."""
        if not self.acked < number < self._next:
            return
        self.acked = number
        self._idle = False
        while self._items and self._items[0].number <= number:
            done = self._items.popleft()
            self._sent = max(0, self._sent - 1)
            if done.record:
                del self._number_of[done.token]

    def both_have(self, token: int) -> bool:
        """Is the record on the other disk, as part of what is the log there?"""
        return self.is_whole and token not in self._number_of

    @property
    def is_whole(self) -> bool:
        """Is what the log was at the beginning the log on the other disk?"""
        return self.acked >= self.whole - 1

    @property
    def in_step(self) -> bool:
        """Has the other end all that was ever shipped?"""
        return not self._items

    def to_send(self) -> list[Item]:
        """What may be sent for the first time."""
        until = min(len(self._items), _ON_THE_WAY)
        items = [self._items[at] for at in range(self._sent, until)]
        self._sent = max(self._sent, until)
        return items

    def to_repeat(self) -> list[Item]:
        """What to send again, if nothing was answered since this was last asked."""
        idle, self._idle = self._idle, True
        return [self._items[at] for at in range(min(self._sent, _AGAIN))] if idle else []


class Intake:
    """The receiving end. `whole` as above (0: it is not known yet)."""

    def __init__(self, stream: int, whole: int) -> None:
        self.stream = stream
        self.whole = whole
        self.has = -1
        """Up to there all is done with."""
        self._next = 0
        self._ahead: dict[int, Item] = {}
        self._open: deque[tuple[int, int | None]] = deque()
        """Items that were taken and are not done with, and the place on the disk that each waits for."""
        self._waited_for: set[int] = set()
        """The places in it that are not safe. Other records of the broker are on the same disk."""

    def put(self, item: Item) -> list[Item]:
        """An item has come; those that are taken now, in order."""
        if item.number >= self._next and len(self._ahead) < _AHEAD_MOST:
            self._ahead[item.number] = item
        taken = []
        while (following := self._ahead.pop(self._next, None)) is not None:
            taken.append(following)
            self._next += 1
        return taken

    def waits_for(self, number: int, place: int | None) -> None:
        """The item is done with when the record at that place is safe (None: when those before it are)."""
        self._open.append((number, place))
        if place is not None:
            self._waited_for.add(place)
        self._go_on()

    def safe(self, place: int) -> None:
        """The record at that place of the disk is safe."""
        self._waited_for.discard(place)
        self._go_on()

    def _go_on(self) -> None:
        while self._open and self._open[0][1] not in self._waited_for:
            self.has, _ = self._open.popleft()
