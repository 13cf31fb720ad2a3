"""How the two ends of a connection prove to each other that they know the run's token, which never travels.

    dialler                                        acceptor
    HELLO    name, incarnation, purpose, nonce ->
                                               <-  ANSWER   name, incarnation, nonce, proof
    PROOF    proof                             ->
                                               <-  WELCOME

A proof is an HMAC under the token over everything that was said, the address at which the acceptor is reached, and the
end that makes it. A process that does not know the token cannot make one: not by repeating an old one (each end adds a
nonce), nor by sending an end its own (it names the end), nor by passing on what another node answers (that one is
reached at another address). The acceptor proves itself first: a process that has taken a dead node's port gets a name
and a nonce.

This is the exchange alone, without sockets: `take` is given what came, and returns what is to be sent.
"""

import hmac
import secrets
from enum import IntEnum
from typing import Any, NamedTuple

import msgpack

from murmur_pubsub.codec import FRAME_HEADER
from murmur_pubsub.journal import Refusal
from murmur_pubsub.machine import NodeName

Address = tuple[str, int]

WIRE_VERSION = 3
GREETING_BYTES_MAX = 1024
"""No frame of a handshake is longer, its header included."""
_NONCE_BYTES = 16
_HELLO, _ANSWER, _PROOF, _WELCOME = range(4)


class Purpose(IntEnum):
    """What a connection is for."""

    LINK = 0
    DATAGRAMS = 1


class Party(NamedTuple):
    """One end of a connection: an incarnation of a node, or what says that it is one."""

    name: NodeName
    incarnation: int


class Refused(Exception):
    """The other end does not belong here."""

    def __init__(self, reason: Refusal) -> None:
        super().__init__(reason.name)
        self.reason = reason


class _Terms(NamedTuple):
    """What both ends have said, in one order for both."""

    dialler: Party
    purpose: Purpose
    dialler_nonce: bytes
    acceptor: Party
    acceptor_nonce: bytes
    address: Address

    def proof(self, token: str, end: str) -> bytes:
        return hmac.digest(token.encode(), msgpack.packb((WIRE_VERSION, end, *self)), "sha256")

    def check(self, token: str, end: str, proof: Any) -> None:
        if type(proof) is not bytes or not hmac.compare_digest(proof, self.proof(token, end)):
            raise Refused(Refusal.NO_PROOF)


class Dialler:
    """The end that has dialled `wanted` at the address. `peer` is None until each has proven itself to the other."""

    def __init__(self, own: Party, token: str, wanted: NodeName, purpose: Purpose, address: Address) -> None:
        self.peer: Party | None = None
        self.purpose = purpose
        self._own = own
        self._token = token
        self._wanted = wanted
        self._address = address
        self._nonce = secrets.token_bytes(_NONCE_BYTES)
        self._answered: Party | None = None

    def hello(self) -> bytes:
        """What is sent first."""
        return _packed(_HELLO, WIRE_VERSION, *self._own, self.purpose, self._nonce)

    def take(self, body: bytes) -> bytes | None:
        """A frame has come; what is to be sent. Raises `Refused`."""
        if self._answered is not None:
            if _unpacked(body, _WELCOME, 1):
                raise Refused(Refusal.NO_GREETING)
            self.peer = self._answered
            return None
        version, name, incarnation, nonce, proof = _unpacked(body, _ANSWER, 6)
        acceptor = _party(version, name, incarnation, nonce)
        terms = _Terms(self._own, self.purpose, self._nonce, acceptor, nonce, self._address)
        terms.check(self._token, "acceptor", proof)
        if name != self._wanted:
            raise Refused(Refusal.NO_LINK)  # a node of this run has got the port of one that is gone
        self._answered = acceptor
        return _packed(_PROOF, terms.proof(self._token, "dialler"))


class Acceptor:
    """The end that was dialled, at its address. `peer` is None until the other has proven itself; then the acceptor
    decides whether it is WELCOME."""

    def __init__(self, own: Party, token: str, address: Address) -> None:
        self.peer: Party | None = None
        self.purpose = Purpose.LINK
        self._own = own
        self._token = token
        self._address = address
        self._terms: _Terms | None = None

    def take(self, body: bytes) -> bytes | None:
        """A frame has come; what is to be sent. Raises `Refused`."""
        if self._terms is not None:
            (proof,) = _unpacked(body, _PROOF, 2)
            self._terms.check(self._token, "dialler", proof)
            self.peer = self._terms.dialler
            return None
        version, name, incarnation, purpose, nonce = _unpacked(body, _HELLO, 6)
        dialler = _party(version, name, incarnation, nonce)
        if type(purpose) is not int or purpose not in tuple(Purpose):
            raise Refused(Refusal.NO_GREETING)
        self.purpose = Purpose(purpose)
        own_nonce = secrets.token_bytes(_NONCE_BYTES)
        terms = self._terms = _Terms(dialler, self.purpose, nonce, self._own, own_nonce, self._address)
        return _packed(_ANSWER, WIRE_VERSION, *self._own, own_nonce, terms.proof(self._token, "acceptor"))


def _packed(*fields: Any) -> bytes:
    body: bytes = msgpack.packb(fields)
    return FRAME_HEADER.pack(len(body)) + body


WELCOME = _packed(_WELCOME)


def _unpacked(body: bytes, kind: int, size: int) -> list[Any]:
    """The fields after the kind; raises `Refused` if their number or the kind is another."""
    try:
        fields = msgpack.unpackb(body, max_array_len=size, max_map_len=0, max_ext_len=0)
    except Exception:
        raise Refused(Refusal.NO_GREETING) from None
    if type(fields) is not list or len(fields) != size or type(fields[0]) is not int or fields[0] != kind:
        raise Refused(Refusal.NO_GREETING)
    return fields[1:]


def _party(version: Any, name: Any, incarnation: Any, nonce: Any) -> Party:
    if version != WIRE_VERSION or type(name) is not str or type(incarnation) is not int:
        raise Refused(Refusal.NO_GREETING)
    if type(nonce) is not bytes or len(nonce) != _NONCE_BYTES:
        raise Refused(Refusal.NO_GREETING)
    return Party(name, incarnation)
