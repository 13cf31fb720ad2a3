"""One connection between two actors: TCP that carries frames.

Both sides of a link show the run's random token in their first frame, the dialling side first; whoever cannot is cut
off and journaled. A link is made once both have: a peer whose process is stopped accepts a connection (its kernel
does) and never answers. Connections for datagrams are one-way, dialled when there is something to say, and nobody
answers. Messages gather in an outbox and leave as one frame when the node has worked off what it was doing. A link
model that delays messages keeps them here until their emulated time has come. An empty frame is a heartbeat.
"""

import asyncio
import heapq
import hmac
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import msgpack

from pubsub.codec import FRAME_HEADER, FrameReader, frame
from pubsub.errors import WireError
from pubsub.links import Link
from pubsub.machine import NodeName

if TYPE_CHECKING:
    from actors.live_node import LiveNode

HELLO_KIND = 0
WIRE_VERSION = 2
_HELLO_BYTES_MAX = 1024
_WRITE_BUFFER_BYTES = 256 * 1024


_HEARTBEAT = frame([])


class Purpose(IntEnum):
    """What a connection is for."""

    LINK = 0
    DATAGRAMS = 1


def hello(token: str, name: NodeName, incarnation: int, purpose: Purpose = Purpose.LINK) -> bytes:
    """The first frame of either side of a connection."""
    return frame([msgpack.packb((HELLO_KIND, WIRE_VERSION, token, name, incarnation, int(purpose)))])


class Connection(asyncio.Protocol):
    """A connection with one peer; `peer` is None until the other side has said who it is, when it has dialled us.

    `link` is this direction's link model, set by the node when the connection becomes a link. `backlog`:
    messages that had arrived when the node stopped taking input, for it to take up again. `severed`: a fault lets
    nothing through. `settled` is done when it is decided whether the connection becomes what it was dialled for.
    """

    def __init__(self, node: "LiveNode", peer: NodeName | None, purpose: Purpose = Purpose.LINK) -> None:
        self.peer = peer
        self.purpose = purpose
        self.peer_incarnation = 0
        self.control_sent = 0
        self.control_received = 0
        self.severed = False
        self.heard_us = 0
        self.settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._dialled = peer is not None
        self._introduced = False
        self.link: Link | None = None
        self.outbox: list[bytes] = []
        self.backlog: list[Any] = []
        self.writable = True
        self._node = node
        self._transport: asyncio.Transport | None = None
        self._reader = FrameReader()
        self._delayed: list[tuple[int, int, bytes]] = []
        self._delayed_count = 0
        self._release: asyncio.TimerHandle | None = None
        self._release_us = 0

    # ------------------------------------------------------------------------------ asyncio.Protocol
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=_WRITE_BUFFER_BYTES)
        self.heard_us = self._node.clock.now_us()
        if self._dialled:
            self._introduce()
            if self.purpose is Purpose.DATAGRAMS:
                self._settle()
                self.flush()

    def data_received(self, data: bytes) -> None:
        self.heard_us = self._node.clock.now_us()
        if self.severed:
            return
        try:
            if not self._introduced:
                self._check_hello_size(data)
            bodies = self._reader.feed(data)
            if not self._introduced and bodies:
                self._accept(bodies.pop(0))
        except WireError as error:
            self._node.cut_off(self, str(error))
            return
        if bodies:
            self._node.take_messages(self, bodies)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._release is not None:
            self._release.cancel()
        self._settle()
        self._node.connection_lost(self, "closed by the peer" if exc is None else str(exc))

    def pause_writing(self) -> None:
        self.writable = False

    def resume_writing(self) -> None:
        self.writable = True
        self.flush()
        self._node.room_again()

    # ------------------------------------------------------------------------------------- sending
    @property
    def unsent(self) -> int:
        """Messages that are still here: lost, if the connection is."""
        return len(self.outbox) + len(self._delayed)

    @property
    def waiting(self) -> int:
        """Messages that wait because the peer does not take them."""
        return 0 if self.writable else len(self.outbox)

    def flush(self) -> None:
        """Write the outbox as one frame, unless the peer is behind."""
        if self.outbox and self.writable and self._transport is not None:
            self._transport.write(frame(self.outbox))
            self.outbox.clear()

    def delay(self, data: bytes, release_us: int) -> None:
        """Keep the message until its emulated time."""
        self._delayed_count += 1
        heapq.heappush(self._delayed, (release_us, self._delayed_count, data))
        if self._release is None or release_us < self._release_us:
            self._arm()

    def beat(self) -> None:
        """Let the peer know that this node lives."""
        if self._transport is not None and self.writable and not self.severed:
            self._transport.write(_HEARTBEAT)

    @property
    def listens(self) -> bool:
        """Does the node read what the peer sends?"""
        return self._transport is not None and self._transport.is_reading()

    def close(self) -> None:
        """Close the connection once what is buffered has been written."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close the connection at once: what is buffered is lost."""
        if self._transport is not None:
            self._transport.abort()

    def pause_reading(self, paused: bool) -> None:
        """Stop or go on reading from the peer: its own writes will fill up and slow it down in turn."""
        if self._transport is None or self._transport.is_closing():
            return
        if paused and self._transport.is_reading():
            self._transport.pause_reading()
        elif not paused and not self._transport.is_reading():
            self._transport.resume_reading()

    def _arm(self) -> None:
        if self._release is not None:
            self._release.cancel()
        self._release_us = self._delayed[0][0]
        self._release = self._node.call_at(self._release_us, self._release_due)

    def _release_due(self) -> None:
        self._release = None
        now_us = self._node.clock.now_us()
        self._node.note_lag(now_us - self._release_us)
        delayed = self._delayed
        while delayed and delayed[0][0] <= now_us:
            self.outbox.append(heapq.heappop(delayed)[2])
        self.flush()
        if delayed:
            self._arm()

    # ------------------------------------------------------------------------------------ receiving
    def _check_hello_size(self, data: bytes) -> None:
        if len(data) >= FRAME_HEADER.size and FRAME_HEADER.unpack_from(data)[0] > _HELLO_BYTES_MAX:
            raise WireError(f"a first frame of more than {_HELLO_BYTES_MAX} bytes")

    def _accept(self, body: Any) -> None:
        """The other side has introduced itself: if it may, the connection becomes what it was dialled for."""
        if type(body) is not list or len(body) != 6 or body[:2] != [HELLO_KIND, WIRE_VERSION]:
            raise WireError(f"no hello of wire version {WIRE_VERSION}")
        _, _, token, name, incarnation, purpose = body
        if type(token) is not str or not hmac.compare_digest(token.encode(), self._node.token.encode()):
            raise WireError("a hello without the token of this run")
        if type(name) is not str or type(incarnation) is not int or purpose not in tuple(Purpose):
            raise WireError("a hello without name, incarnation and purpose")
        if self._dialled and name != self.peer:
            raise WireError(f"{name}, where {self.peer} was expected")
        self.peer, self.peer_incarnation, self.purpose = name, incarnation, Purpose(purpose)
        self._introduced = True
        if self.purpose is Purpose.LINK and self._node.may_link(self):
            if not self._dialled:
                self._introduce()
            self._node.link_made(self)
        elif self.purpose is Purpose.DATAGRAMS and not self._node.peering.datagrams_from(self):
            self.abort()  # a partition is between
        self._settle()

    def _introduce(self) -> None:
        assert self._transport is not None
        self._transport.write(hello(self._node.token, self._node.spec.name, self._node.incarnation, self.purpose))

    def _settle(self) -> None:
        if not self.settled.done():
            self.settled.set_result(None)
