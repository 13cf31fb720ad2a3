"""Peers that a broker of a structured overlay remembers over a restart.

Theory of operation. Through which peers a broker joins is said when it is deployed; all of these may be dead, or out of
reach, when it comes back. So it stores the names of some peers that it knows, as a Pastry node remembers its last leaf
set. One of them that is there is enough to be let in, so a record is good while most of them are still known. Only when
half of them are gone, or twice as many are known, does a broker write another. That makes few records under churn, and
after a partition it soon remembers peers of its own side. A broker that knows nobody keeps what it has stored.

Those that were gone when a record was written may be across a partition. When that ends, they are the way to the other
side if the bootstrap peers are dead: a broker looks for other parts of the overlay through both, in turn. And a
partition may leave two brokers on one side that never had to know each other, with all their peers on the other side.
So a broker looks through those, too, of which it has only heard.
"""

from collections.abc import Collection, Sequence
from itertools import islice

import msgpack

from murmur_pubsub.errors import InputError
from murmur_pubsub.machine import Effect, NodeName, Persist, Truncate

REMEMBERED_MAX = 8
_HEARD_OF_MAX = 32


class RememberedPeers:
    """Those of the broker `name`; `names` is what its last record says."""

    def __init__(self, name: NodeName) -> None:
        self._name = name
        self._token = -1
        self._looks = 0
        self.names: tuple[NodeName, ...] = ()
        self._lost: list[NodeName] = []
        """Of what was stored before, those that were gone."""
        self._heard_of: dict[NodeName, None] = {}
        """Those that others have named, the one not named before last."""

    def restore(self, records: Sequence[bytes]) -> Sequence[NodeName]:
        """The names that earlier incarnations have stored. Raises `InputError` for a record that is none."""
        if not records:
            return ()
        try:
            self._token, *names = msgpack.unpackb(records[-1])
            self.names = tuple(names)
            return self.names
        except (ValueError, TypeError, msgpack.UnpackException) as error:
            allowed = "what a router of a structured overlay has stored"
            raise InputError(f"log of {self._name}", f"a record that is none ({error!r:.60})", allowed) from error

    def keep(self, known: Collection[NodeName]) -> list[Effect]:
        """These have answered and have not failed since; the first of them are stored if what is stored has aged."""
        if not known or self._is_good(known):
            return []
        self._token += 1
        self._lost = [name for name in self.names if name not in known] or self._lost
        self.names = tuple(islice(known, REMEMBERED_MAX))
        return [Persist(self._token, msgpack.packb([self._token, *self.names]))]

    def _is_good(self, known: Collection[NodeName]) -> bool:
        count = len(self.names)
        there = sum(name in known for name in self.names)
        return 2 * there > count and (count == REMEMBERED_MAX or len(known) < 2 * count)

    def stored(self, token: int) -> list[Effect]:
        """The record of that token is safe; it says all that those before it said."""
        return [Truncate(token)]

    def heard_of(self, name: NodeName) -> None:
        """Another broker has named that one."""
        if name not in self._heard_of and name != self._name:
            self._heard_of[name] = None
            if len(self._heard_of) > _HEARD_OF_MAX:
                del self._heard_of[next(iter(self._heard_of))]

    def to_look_through(self, bootstrap: Sequence[NodeName], known: Collection[NodeName]) -> list[NodeName]:
        """Who is to look now for another part of the overlay: a bootstrap peer, one that was known before, and one that
        is not among those `known` now."""
        self._looks += 1
        others = [name for name in self._heard_of if name not in known]
        found = [group[self._looks % len(group)] for group in (bootstrap, self._lost, others) if group]
        return list(dict.fromkeys(found))
