"""The contract between protocols and runtimes.

A protocol is a deterministic state machine without I/O: `handle(input, now_us)` is the only way in, and the
effects it returns are the only way out. A machine never reads a clock, opens a socket or draws unseeded
randomness; a runtime hands it the time as integer microseconds and carries out the effects in their order.
What depends on a `Persist` must wait for the `Stored` with its token. A crash is: throw the machine away,
keep what was stored, make a new machine and give it `Start` with those records.

Both vocabularies are closed: a runtime and a machine raise on anything else.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.fingerprint import Fact, facts_of
from murmur_pubsub.message import Message
from murmur_pubsub.places import CellPlan, RingPlace

NodeName = str
TimerKey = tuple[Hashable, ...]
"""A timer's name within its node: the first element names the layer that set it."""


# ---------------------------------------------------------------------------------------------- inputs
class Start(NamedTuple):
    """First input of every incarnation; `records` is what earlier incarnations had stored, oldest first."""

    records: Sequence[bytes] = ()


class Received(NamedTuple):
    """`message` arrived over the link from `source`."""

    source: NodeName
    message: Message


class TimerFired(NamedTuple):
    """The timer set under `key` has run out."""

    key: TimerKey


class LinkUp(NamedTuple):
    """Messages may now be sent to `peer`, a broker or a client."""

    peer: NodeName
    is_broker: bool


class LinkDown(NamedTuple):
    """The link to `peer` is gone; what was on its way may be lost. `reason` is for people."""

    peer: NodeName
    reason: str


class Stored(NamedTuple):
    """The record persisted with `token` has reached stable storage."""

    token: int


class Subscribe(NamedTuple):
    """Command: the subscriber (a number in the run) wants events that match the filter."""

    subscriber: int
    filter: Filter


class Unsubscribe(NamedTuple):
    """Command: withdraw exactly that subscription."""

    subscriber: int
    filter: Filter


class Publish(NamedTuple):
    """Command: publish this event, already numbered; the runtime has journaled it."""

    event: Event


class Order(NamedTuple):
    """From whoever runs the overlay: do what the verb says, such as "move" from one neighbour to another. One `Answer`
    follows, at once or later; none if the process ends before."""

    number: int
    """Comes back in the answer."""
    verb: str
    """One that the machine declares in `Machine.orders`."""
    arguments: Sequence[NodeName] = ()
    """As many as the verb declares."""


Command = Subscribe | Unsubscribe | Publish
Input = Start | Received | TimerFired | LinkUp | LinkDown | Stored | Command | Order


# --------------------------------------------------------------------------------------------- effects
class Send(NamedTuple):
    """Send `message` to a node by name: over the link to it, if there is one, else as a datagram, which may be lost
    without a word. Sending to a node that cannot be reached is a recorded drop."""

    to: NodeName
    message: Message


class SetTimer(NamedTuple):
    """Fire `TimerFired(key)` after `delay_us`; replaces a timer running under the same key."""

    key: TimerKey
    delay_us: int


class CancelTimer(NamedTuple):
    """Forget the timer under `key`, if there is one."""

    key: TimerKey


class Deliver(NamedTuple):
    """Hand the event to these subscribers (numbers); `hops` is how many brokers it passed after the first."""

    event: Event
    hops: int
    subscribers: Sequence[int]


class Persist(NamedTuple):
    """Append `record` to stable storage; `Stored(token)` follows once it is safe. Tokens grow, over all
    incarnations of a node: a machine finds its last one in the records it is started with."""

    token: int
    record: bytes


class Truncate(NamedTuple):
    """Forget the records persisted under tokens below `before`, whenever that is convenient."""

    before: int


class Record(NamedTuple):
    """A row of the protocol's own for the journal: `topic` is a small number the protocol documents."""

    topic: int
    value: int
    peer: NodeName | None = None
    event: Event | None = None


class Answer(NamedTuple):
    """What has become of the `Order` of that number. The journal keeps it."""

    number: int
    refusal: str = ""
    """Why it was not carried out, for people (empty: it was)."""


Effect = Send | SetTimer | CancelTimer | Deliver | Persist | Truncate | Record | Answer


# -------------------------------------------------------------------------------------------- machines
class Machine(ABC):
    """A node's protocol; what it does not say of itself is as it stands here."""

    message_types: Sequence[type] = ()
    """Every message class that it sends or understands."""
    orders: Mapping[str, Sequence[str]] = {}
    """The verb of every `Order` that it understands, with what the arguments are called, each the name of a node."""

    @abstractmethod
    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        """Take one input at emulated time `now_us`; the effects are to be carried out in order."""

    @property
    def waiting(self) -> bool:
        """Is the machine waiting for something that it will ask for again? Then a run goes on though nothing moves."""
        return False

    @property
    def settling(self) -> bool:
        """Does it know of a subscription that is not in effect everywhere, though no message about it moves? Then
        subscriptions have not settled."""
        return False

    @property
    def settled_until_us(self) -> int:
        """While it is `settling`: what was asked of it up to this time, in emulated microseconds, is in effect all the
        same (-1: it cannot tell). A machine that waits for some time after each change says so, since where somebody
        always asks for something it is always `settling`."""
        return -1

    @property
    def hears_resets(self) -> bool:
        """Is it to be told, by a `LinkDown`, when a peer to which it sends datagrams is not there, or its process is
        gone and closes its connections? The answer never changes."""
        return False

    def fingerprint(self) -> Set[Fact]:
        """What state it is in, as coarse facts: what a hunt counts as reached. A machine that knows better which of its
        states matter says so itself."""
        return facts_of(self)

    def check_invariants(self) -> None:  # noqa: B027 - a machine without state has none
        """Raise AssertionError if the state contradicts itself."""


@dataclass(frozen=True, slots=True)
class NodeContext:
    """What a factory knows when it makes a machine."""

    name: NodeName
    seed: int
    """The run's."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """What the deployment gives the factory: values that may cross a process."""
    incarnation: int = 0
    """How often the node has been restarted."""
    place: RingPlace | CellPlan | None = None
    """Where in its overlay the node is, if there is more to that than its links."""

    def random(self, part: str) -> random.Random:
        """Randomness of one part of this node, the same in every process for the same seed and incarnation."""
        node = f"{self.name}/{self.incarnation}" if self.incarnation else self.name
        return random.Random(f"{self.seed}/{node}/{part}")
