"""One stable log for the two parts of a broker, where both store something.

Theory of operation. A node has one log with tokens that grow; router and reliability part each number their own. So
the broker numbers all records anew, and says in each whose it is: [token, is it the router's, its own token, record].
A router is restored from its last record, which says all (`routing.router.Router.persists`). The log may be cut below
what the reliability part still needs and below that last record. Where the latter holds up a cut it is written once
more, and the cut is made when that is safe.
"""

from collections.abc import Sequence
from typing import ClassVar

import msgpack

from murmur_pubsub.errors import InputError
from murmur_pubsub.machine import Effect, Persist, Truncate


class SharedLog:
    """Of one broker, the node `name`."""

    remembers: ClassVar = ("_needed",)  # until the reliability part cuts its log, which it does now and then

    def __init__(self, name: str) -> None:
        self._name = name
        self._token = -1
        self._written: dict[int, tuple[bool, int] | None] = {}
        """Token of a record on its way to whose it is, and the part's token; None: the router's, once more."""
        self._needed: dict[int, int] = {}
        """The reliability part's token of each record that it needs to the log's, in order."""
        self._routers: tuple[int, bytes] | None = None
        """The router's last record, and its own token."""
        self._routers_at: int | None = None
        """Where that is safely stored (None: not yet, or it is being written once more)."""
        self._rewriting = False

    def recover(self, records: Sequence[bytes]) -> tuple[list[bytes], list[bytes]]:
        """The router's records and the reliability part's; raises `InputError` for one that is neither's."""
        parts: tuple[list[bytes], list[bytes]] = ([], [])
        for number, stored in enumerate(records):
            try:
                token, is_routers, own, record = msgpack.unpackb(stored)
                self._token = max(self._token, token)
                if is_routers:
                    self._routers, self._routers_at = (own, record), token
                    parts[0].append(record)
                else:
                    self._needed[own] = token
                    parts[1].append(record)
            except (ValueError, TypeError, msgpack.UnpackException) as error:
                place = f"the stable log of {self._name}, record {number + 1}"
                raise InputError(place, f"{stored[:40]!r} ({error})", "a log of these two protocols") from None
        return parts

    def put(self, effects: Sequence[Effect], is_routers: bool) -> list[Effect]:
        """What a part has handed back, its records and cuts translated."""
        translated: list[Effect] = []
        for effect in effects:
            if type(effect) is Persist:
                translated.append(self._append(effect, is_routers))
            elif type(effect) is Truncate:
                if not is_routers:
                    for own in [own for own in self._needed if own < effect.before]:
                        del self._needed[own]
                translated += self._cut()
            else:
                translated.append(effect)
        return translated

    def stored(self, token: int) -> tuple[tuple[bool, int] | None, list[Effect]]:
        """A record is safe: whose it is and under which token of that part (None: of no news to it), and effects."""
        whose = self._written.pop(token)
        if whose is not None and not whose[0]:
            return whose, []
        self._routers_at = token
        if whose is not None:
            return whose, []
        self._rewriting = False
        return None, self._cut()

    def _append(self, effect: Persist, is_routers: bool) -> Persist:
        self._token += 1
        self._written[self._token] = is_routers, effect.token
        if is_routers:
            self._routers = effect.token, effect.record
        else:
            self._needed[effect.token] = self._token
        return self._record(is_routers, effect.token, effect.record)

    def _record(self, is_routers: bool, own: int, record: bytes) -> Persist:
        return Persist(self._token, msgpack.packb([self._token, is_routers, own, record]))

    def _cut(self) -> list[Effect]:
        """Cut the log as far as may be; write the router's last record once more if only that is in the way."""
        oldest = next(iter(self._needed.values()), None)
        if self._routers is None:
            return [] if oldest is None else [Truncate(oldest)]
        if self._routers_at is None:
            return []  # its first record is on its way
        if oldest is None or self._routers_at >= oldest:
            return [Truncate(self._routers_at if oldest is None else oldest)]
        if self._rewriting:
            return []
        self._rewriting = True
        self._token += 1
        self._written[self._token] = None
        return [self._record(True, *self._routers)]
