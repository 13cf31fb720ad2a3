"""What the three brokers of a redundant pubend tell each other (`reliability.end_to_end.candidate`), and submissions
that are passed on to whichever of two brokers serves. All of them are datagrams."""

from typing import NamedTuple

from murmur_pubsub.event import Event
from murmur_pubsub.message import message


@message(186, datagram=True)
class Claim(NamedTuple):
    """One of the two brokers to the witness: from the epoch `epoch` on `host` serves, in a pair or alone. An epoch of
    0 claims nothing, and asks how it stands. `incarnation`: that of the broker that says so; `ticket`: the latest that
    it has from the witness (-1: none)."""

    to: str
    origin: str
    pubend: int
    epoch: int
    host: str
    paired: bool
    incarnation: int
    ticket: int


@message(187, datagram=True)
class Stands(NamedTuple):
    """How it stands, from the witness, or from one of the two to the other that is behind. Of the witness's words
    `incarnation` is that which they answer (-1: none), and `ticket` is its time in microseconds (of others: -1)."""

    to: str
    pubend: int
    epoch: int
    host: str
    paired: bool
    incarnation: int
    ticket: int


@message(188, datagram=True)
class Beat(NamedTuple):
    """The broker that serves to the other: I am here. `stream` (0: none) is what it ships; of that the first `whole`
    items are the log as it was."""

    to: str
    origin: str
    pubend: int
    epoch: int
    paired: bool
    stream: int
    whole: int


@message(189, datagram=True)
class Ship(NamedTuple):
    """An item of the stream: a record of the log with its token, or, if `record` is empty, that records below `token`
    may be forgotten."""

    to: str
    pubend: int
    stream: int
    number: int
    token: int
    record: bytes


@message(190, datagram=True)
class Has(NamedTuple):
    """The answer to both: this incarnation has on its disk all items of the stream up to `number` (-1: none)."""

    to: str
    pubend: int
    incarnation: int
    stream: int
    number: int


@message(193, datagram=True)
class Lacks(NamedTuple):
    """The one of a pair that should serve to the other: the epoch stands, and it has no log. The answer says so of the
    other, to that incarnation."""

    to: str
    pubend: int
    epoch: int
    incarnation: int


@message(194, datagram=True)
class Unknown(NamedTuple):
    """The witness to one of the two: this incarnation has lost its disk, and does not know how it stands."""

    to: str
    pubend: int
    incarnation: int


@message(195, datagram=True)
class Renew(NamedTuple):
    """The broker that serves to the other: the witness knows nothing; let the epoch `former` be followed by `epoch`, in
    which the two are a pair as they are now."""

    to: str
    pubend: int
    former: int
    epoch: int


@message(196, datagram=True)
class Install(NamedTuple):
    """The broker that serves to that incarnation of the witness: so it stands."""

    to: str
    origin: str
    pubend: int
    incarnation: int
    epoch: int
    paired: bool


@message(191, datagram=True)
class Relayed(NamedTuple):
    """A broker to the one that serves the pubend: a client here has submitted the event
    (`reliability.gryphon.messages.Submission`)."""

    to: str
    origin: str
    client: str
    event: Event
    oldest: int


@message(192, datagram=True)
class AcceptedThere(NamedTuple):
    """The answer: events of that client's publisher up to this number are in the log."""

    to: str
    client: str
    publisher: int
    sequence: int


ToWitness = Claim | Install
ToCandidate = Stands | Beat | Ship | Has | Lacks | Unknown | Renew
REDUNDANT_MESSAGES = (Claim, Stands, Beat, Ship, Has, Lacks, Unknown, Renew, Install, Relayed, AcceptedThere)
