"""One connection between two actors: TCP that carries frames.

Both sides prove that they know the run's random token (`actors.handshake`); a side that cannot is cut off and
journaled. Until then nothing else is read or written, and no more than a greeting's size is kept. A link is made once
both have proven themselves: a peer whose process is stopped accepts a connection (its kernel does) and never answers.
Connections for datagrams are one-way, dialled when there is something to say. Messages gather in an outbox and leave as
one frame when the node has worked off what it was doing. A link model that delays messages keeps them here until their
emulated time has come. An empty frame is a heartbeat.
"""

import asyncio
import heapq
import socket
from collections.abc import Callable
from typing import Any, Protocol

from actors.clock import Clock
from actors.entrance import Entrance
from actors.gate import Gate
from actors.handshake import GREETING_BYTES_MAX, WELCOME, Acceptor, Address, Dialler, Party, Purpose, Refused
from murmur_pubsub.codec import FRAME_HEADER, FrameReader, frame, frames
from murmur_pubsub.errors import WireError
from murmur_pubsub.journal import Refusal
from murmur_pubsub.links import Link
from murmur_pubsub.machine import NodeName

_WRITE_BUFFER_BYTES = 256 * 1024


_HEARTBEAT = frame([])


class ConnectionOwner(Protocol):
    """What a connection asks of the node that it belongs to, and what it tells it."""

    party: Party
    token: str
    clock: Clock
    entrance: Entrance
    gate: Gate
    read_buffer: memoryview
    """What is read goes here first: one buffer for all connections of the node."""

    def admits(self, connection: "Connection") -> bool:
        """The other side has proven itself: may the connection become what it was dialled for?"""

    def link_made(self, connection: "Connection") -> None:
        """The connection is the link with its peer from now on."""

    def take_messages(self, connection: "Connection", bodies: list[Any]) -> None:
        """A frame has arrived."""

    def cut_off(self, connection: "Connection") -> None:
        """What arrived is no frame."""

    def connection_lost(self, connection: "Connection", reason: str) -> None:
        """The connection is gone; it may never have become what it was dialled for."""

    def room_again(self) -> None:
        """The peer takes messages again."""

    def call_at(self, time_us: int, action: Callable[[], None]) -> asyncio.TimerHandle:
        """Have the action called at an emulated time."""

    def note_lag(self, lag_us: int) -> None:
        """Something happened this much later than it was due."""


class Connection(asyncio.BufferedProtocol):
    """A connection with one peer, dialled at the address; without one it was dialled by the other side, and `peer` is
    None until the peer has proven its name.

    `link` is this direction's link model, set by the node when the connection becomes a link. `backlog`:
    messages that had arrived when the node stopped taking input, for it to take up again. `severed`: a fault lets
    nothing through. `settled` is done when it is decided whether the connection becomes what it was dialled for.
    """

    def __init__(
        self,
        owner: ConnectionOwner,
        peer: NodeName | None = None,
        address: Address | None = None,
        purpose: Purpose = Purpose.LINK,
    ) -> None:
        self.peer = peer
        self.purpose = purpose
        self.peer_incarnation = 0
        self.control_sent = 0
        self.control_received = 0
        self.severed = False
        self.heard_us = 0
        self.settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.link: Link | None = None
        self.outbox: list[bytes] = []
        self.backlog: list[Any] = []
        self.writable = False
        self._dialled_at = address
        self._handshake: Dialler | Acceptor | None = None
        self._early = b""
        self._owner = owner
        self._transport: asyncio.Transport | None = None
        self._reader = FrameReader()
        self._delayed: list[tuple[int, int, bytes]] = []
        self._delayed_count = 0
        self._release: asyncio.TimerHandle | None = None
        self._release_us = 0
        self._paused = False
        self._held = False

    # ---------------------------------------------------------------------- asyncio.BufferedProtocol
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        # asyncio does this for sockets that name their protocol: those that were accepted do not. They would keep a
        # small frame until the one before is acknowledged, and a peer that has nothing to say waits 40 ms with that.
        own_socket = transport.get_extra_info("socket")
        if own_socket is not None:
            own_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        transport.set_write_buffer_limits(high=_WRITE_BUFFER_BYTES)
        self._owner.gate.watch(self)
        self._owner.gate.enter(self._begin)

    def _begin(self) -> None:
        """Say who this is, or wait for the other side to say so."""
        transport = self._transport
        assert transport is not None
        self.heard_us = self._owner.clock.now_us()
        own, token = self._owner.party, self._owner.token
        if self._dialled_at is not None:
            assert self.peer is not None
            self._handshake = Dialler(own, token, self.peer, self.purpose, self._dialled_at)
            transport.write(self._handshake.hello())
        else:
            self._handshake = Acceptor(own, token, transport.get_extra_info("sockname")[:2])
            self._owner.entrance.came(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        """The node's one buffer: what is read is taken at once. A stranger's bytes beyond a greeting stay in the
        kernel, for to read them all would hold up the others."""
        buffer = self._owner.read_buffer
        return buffer if self._handshake is None else buffer[:GREETING_BYTES_MAX]

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(self._owner.read_buffer[:nbytes])

    def data_received(self, data: bytes | memoryview) -> None:
        """Bytes have come."""
        self.heard_us = self._owner.clock.now_us()
        try:
            if self._handshake is not None:
                data = self._shake_hands(self._handshake, data)
            bodies = self._reader.feed(data)
        except Refused as refused:
            self._owner.entrance.turn_away(self, refused.reason)
            return
        except WireError:
            self._owner.cut_off(self)
            return
        if bodies and not self.severed:
            self._owner.take_messages(self, bodies)

    def connection_lost(self, exc: Exception | None) -> None:
        self._owner.gate.forget(self)
        self._owner.gate.enter(lambda: self._lost("closed by the peer" if exc is None else str(exc)))

    def _lost(self, reason: str) -> None:
        if self._release is not None:
            self._release.cancel()
        self._owner.entrance.left(self)
        self._settle()
        self._owner.connection_lost(self, reason)

    def pause_writing(self) -> None:
        self.writable = False

    def resume_writing(self) -> None:
        self._owner.gate.enter(self._write_again)

    def _write_again(self) -> None:
        self.writable = True
        self.flush()
        self._owner.room_again()

    # ------------------------------------------------------------------------------------- sending
    @property
    def unsent(self) -> int:
        """Messages that are still here: lost, if the connection is."""
        return len(self.outbox) + len(self._delayed)

    @property
    def waiting(self) -> int:
        """Messages that wait because the peer does not take them, or not yet."""
        return 0 if self.writable else len(self.outbox)

    def full_until_us(self, now_us: int) -> int | None:
        """When the emulated queue of its link will have room; None: it has."""
        return None if self.link is None or self.link.perfect else self.link.congested_until_us(now_us)

    def flush(self) -> None:
        """Write the outbox, unless the peer is behind or has not proven itself yet."""
        if self.outbox and self.writable and self._transport is not None:
            for each in frames(self.outbox):
                self._transport.write(each)
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
    def dialled(self) -> bool:
        """Has this side dialled?"""
        return self._dialled_at is not None

    @property
    def made(self) -> bool:
        """Has there been a connection? Then its end is told by `connection_lost`."""
        return self._transport is not None

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
        self._paused = paused
        self._read_or_not()

    def hold(self, held: bool) -> None:
        """The same for a node that does nothing at all now (`actors.gate`)."""
        self._held = held
        self._read_or_not()

    def _read_or_not(self) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        if self._paused or self._held:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _arm(self) -> None:
        if self._release is not None:
            self._release.cancel()
        self._release_us = self._delayed[0][0]
        self._release = self._owner.call_at(self._release_us, self._release_due)

    def _release_due(self) -> None:
        self._release = None
        now_us = self._owner.clock.now_us()
        self._owner.note_lag(now_us - self._release_us)
        delayed = self._delayed
        while delayed and delayed[0][0] <= now_us:
            self.outbox.append(heapq.heappop(delayed)[2])
        self.flush()
        if delayed:
            self._arm()

    # ------------------------------------------------------------------------------------ receiving
    def _shake_hands(self, handshake: Dialler | Acceptor, data: bytes | memoryview) -> bytes:
        """Go on with the handshake; what came after its end is left. Raises `Refused`."""
        assert self._transport is not None
        early = self._early + bytes(data)
        while len(early) >= FRAME_HEADER.size:
            (size,) = FRAME_HEADER.unpack_from(early)
            end = FRAME_HEADER.size + size
            if end > GREETING_BYTES_MAX:
                raise Refused(Refusal.TOO_LARGE)
            if len(early) < end:
                break
            body, early = early[FRAME_HEADER.size : end], early[end:]
            answer = handshake.take(body)
            if answer is not None:
                self._transport.write(answer)
            if handshake.peer is not None:
                self._handshake, self._early = None, b""
                return early if self._introduced(handshake.peer, handshake.purpose) else b""
        self._early = early  # less than a greeting: or it would have been taken, or refused
        return b""

    def _introduced(self, peer: Party, purpose: Purpose) -> bool:
        """The other side has proven itself: if it may, the connection becomes what it was dialled for."""
        assert self._transport is not None
        self._owner.entrance.passed(self)
        (self.peer, self.peer_incarnation), self.purpose = peer, purpose
        welcome = self._owner.admits(self)
        if welcome:
            self.writable = True
            if not self.dialled:
                self._transport.write(WELCOME)
            if purpose is Purpose.LINK:
                self._owner.link_made(self)
            self.flush()
        else:
            self.abort()
        self._settle()
        return welcome

    def _settle(self) -> None:
        if not self.settled.done():
            self.settled.set_result(None)
