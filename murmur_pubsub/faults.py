"""The fault plan: what is broken when, as plain data that both runtimes carry out.

Times count from the start of publishing, in emulated microseconds. A plan is checked against the deployment before
anything starts (`murmur_pubsub.plan_checker`).

What each kind means, on both runtimes:

- KILL: the process ends at once; volatile state is gone, what was synced to stable storage stays. The peers' side
  of each connection breaks at once (a process that dies closes its sockets). `sigkill` takes the operating system's
  SIGKILL instead of Ray's kill. `disk_lost` takes a broker's stable storage too. RESTART: a new
  machine under the old name, with the next incarnation number.
- STALL: the process is stopped and says nothing; peers find out by missing heartbeats. RESUME: it goes on. Where nodes
  share an actor, one is held alone, and so it is by SLOW.
- SLOW: each message costs the node `work_us` more; 0 ends it.
- CUT: nothing passes a link any more, in neither direction, heartbeats neither. HEAL: it may be made anew. A cut
  always breaks the connection: its ends notice when heartbeats are missed, or when it heals.
- CHANGE_LINK: the link is from now on as `link` says (None: as planned).
- PARTITION: every link between different groups is cut, and no datagram passes between them. UNITE: all heal.
- DISCONNECT: the link is taken out of the overlay; both ends hear at once that it is down, and what is on its way is
  lost. CONNECT: a new link between two brokers that have none, as `link` says.
  So a client goes from one broker to another, where the protocols have clients that do: one link goes, another comes.
- ORDER: a broker's machine is told to do something (`murmur_pubsub.machine.Order`); its answer is in the journal.
- PUBLISH, SUBSCRIBE, UNSUBSCRIBE: a client does so, beside its script. It breaks nothing, and what it asks for is owed
  as if the script had it: a client that is started again subscribes to it again.
- KILL_ACTOR: the process of an actor ends at once, and all nodes in it; RESTART_ACTOR: those that it took down, or
  that had died by themselves before it, start again, in a new process. With one node in each actor that is what KILL
  does. Where nodes share an actor, KILL throws one of them away inside the process, which goes on: its machine, its
  sockets and what it had not synced are gone.
- LOSE_HOST: a whole host with its nodes is gone at once, without a word to their peers. RETURN_HOST: its
  nodes are started again (on another host, where the lost one stays away). A host that goes away and returns by itself
  starts those that no step had ended.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum

from murmur_pubsub.errors import InputError
from murmur_pubsub.links import LinkSpec
from murmur_pubsub.machine import NodeName
from murmur_pubsub.places import CellPlan
from murmur_pubsub.values import Value


class FaultKind(IntEnum):
    """What happens; the numbers stand in the journal."""

    KILL = 1
    RESTART = 2
    STALL = 3
    RESUME = 4
    SLOW = 5
    CUT = 6
    HEAL = 7
    CHANGE_LINK = 8
    PARTITION = 9
    UNITE = 10
    LOSE_HOST = 11
    RETURN_HOST = 12
    CONNECT = 13
    DISCONNECT = 14
    ORDER = 15
    PUBLISH = 16
    SUBSCRIBE = 17
    UNSUBSCRIBE = 18
    KILL_ACTOR = 19
    RESTART_ACTOR = 20


RECONFIGURES = (FaultKind.CONNECT, FaultKind.DISCONNECT)
"""Kinds that change which links the overlay has."""
COMMANDS = (FaultKind.PUBLISH, FaultKind.SUBSCRIBE, FaultKind.UNSUBSCRIBE)
"""Kinds that a client carries out."""
DEATHS = (FaultKind.KILL, FaultKind.KILL_ACTOR, FaultKind.LOSE_HOST)
"""Kinds after which nodes are down."""
RETURNS = (FaultKind.RESTART, FaultKind.RESTART_ACTOR, FaultKind.RETURN_HOST)
"""Kinds by which nodes that are down start again, or for the first time."""
ENDS = {
    FaultKind.RESTART: FaultKind.KILL,
    FaultKind.RESUME: FaultKind.STALL,
    FaultKind.SLOW: FaultKind.SLOW,
    FaultKind.HEAL: FaultKind.CUT,
    FaultKind.CHANGE_LINK: FaultKind.CHANGE_LINK,
    FaultKind.UNITE: FaultKind.PARTITION,
    FaultKind.RETURN_HOST: FaultKind.LOSE_HOST,
    FaultKind.RESTART_ACTOR: FaultKind.KILL_ACTOR,
    FaultKind.CONNECT: FaultKind.DISCONNECT,
    FaultKind.DISCONNECT: FaultKind.CONNECT,
}
"""What a step of each of these kinds can end."""
REPAIRS = tuple(kind for kind, began in ENDS.items() if kind is not began and kind not in RECONFIGURES)
"""Kinds that end a fault and break nothing themselves."""
UNDONE_BY = {
    FaultKind.KILL: (FaultKind.RESTART, FaultKind.RETURN_HOST),
    FaultKind.KILL_ACTOR: (FaultKind.RESTART_ACTOR, FaultKind.RETURN_HOST),
    FaultKind.STALL: (FaultKind.RESUME, *DEATHS, *RETURNS),
    FaultKind.SLOW: (FaultKind.SLOW, *DEATHS, *RETURNS),
    FaultKind.CUT: (FaultKind.HEAL, FaultKind.DISCONNECT),
    FaultKind.CHANGE_LINK: (FaultKind.CHANGE_LINK, FaultKind.DISCONNECT),
    FaultKind.DISCONNECT: (FaultKind.CONNECT,),
    FaultKind.PARTITION: (FaultKind.UNITE,),
    FaultKind.LOSE_HOST: (FaultKind.RETURN_HOST,),
}
"""After a step of which kinds a fault of each of these is over: it may have been ended, or what it held up is gone, or
was gone before it and is back as a new process."""


def takes_back(kind: FaultKind, link: LinkSpec | None, work_us: int) -> bool:
    """Is it a step of a kind that breaks as well as repairs, and does it only repair? A link is as planned again, or a
    node as fast as before."""
    return (kind is FaultKind.CHANGE_LINK and link is None) or (kind is FaultKind.SLOW and not work_us)


class NewLinks(Enum):
    """Between which brokers a routing takes a link that was not there when they started."""

    ANY = "any two"
    JOINS = "a broker that has no other broker for a neighbour, and any other"
    CELLS = (
        "a broker that has not been started yet, and those of the cell that it will join and of the neighbouring ones"
    )
    NONE = "none: its brokers know their overlay beforehand"


CELL = "cell"
"""What the argument of an order is called that names a cell; all others name nodes."""


@dataclass(frozen=True, slots=True)
class PlanRules:
    """What the protocols of a run, and its clients, say of plans."""

    acyclic: bool = False
    """May the overlay have no cycle?"""
    new_links: NewLinks = NewLinks.ANY
    orders: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The verbs of their orders, each with what its arguments are called (`murmur_pubsub.machine.Machine.orders`)."""
    gives_up: Mapping[str, str] = field(default_factory=dict)
    """The verbs of orders after which nothing is promised to the subscribers at a broker, nor of what is published
    there, until its process starts again; each with the argument that names the broker ("": it is the one ordered)."""
    for_good: frozenset[str] = frozenset()
    """Those of these orders after which the broker is no part of the overlay any more, though it start again."""
    cells: CellPlan | None = None
    """Where brokers may join cells: what the overlay begins with."""
    publishers: Mapping[NodeName, int] = field(default_factory=dict)
    """The nodes at which a step may publish; each with the number of the publisher that does."""
    roaming: frozenset[NodeName] = frozenset()
    """The clients that may go from one broker to another."""
    publishing_at: Mapping[NodeName, frozenset[NodeName]] = field(default_factory=dict)
    """The clients that may do so though they publish, and between which brokers."""
    taking_clients: frozenset[NodeName] = frozenset()
    """The brokers to which they may go."""
    subscribing: frozenset[NodeName] = frozenset()
    """The nodes at which a step may subscribe."""
    subscribers_from: int = 0
    """The first number that no subscriber of a script has."""

    def given_up(self, fault: "Fault") -> tuple[NodeName, ...]:
        """The broker that the fault, if it is such an order, gives up."""
        if fault.verb not in self.gives_up:
            return ()
        called = self.gives_up[fault.verb]
        return tuple(name for each, name in fault.arguments if each == called) if called else fault.nodes


ANYTHING_GOES = PlanRules()


@dataclass(frozen=True, slots=True)
class Fault:
    """One step of a plan.

    `nodes`: the node it is about; the two ends of a link (CUT, HEAL, CHANGE_LINK, CONNECT, DISCONNECT); all that share
    the actor (KILL_ACTOR, RESTART_ACTOR); those that came with a host by itself (RETURN_HOST); none for a PARTITION,
    whose `groups` hold every node once. `work_us` is SLOW's, `disk_lost` KILL's, `link` CHANGE_LINK's and CONNECT's,
    `host` a number from 0. `verb` and `arguments` are ORDER's: each argument is what it is called, and the name of a
    node. `issuer` is the number of the publisher of a PUBLISH, or of the subscriber of a SUBSCRIBE or UNSUBSCRIBE;
    `attributes` are the event's, `wanted` is the filter's text.
    """

    time_us: int
    kind: FaultKind
    nodes: tuple[NodeName, ...] = ()
    groups: tuple[tuple[NodeName, ...], ...] = ()
    link: LinkSpec | None = None
    work_us: int = 0
    sigkill: bool = False
    host: int = 0
    verb: str = ""
    arguments: tuple[tuple[str, NodeName], ...] = ()
    issuer: int = -1
    attributes: tuple[tuple[str, Value], ...] = ()
    wanted: str = ""
    disk_lost: bool = False

    def __str__(self) -> str:
        if self.kind is FaultKind.ORDER:
            return " ".join((self.verb, *self.nodes, *itertools.chain(*self.arguments)))
        if self.kind is FaultKind.PUBLISH:
            return f"publish at {self.nodes[0]}: {', '.join(f'{name} = {value!r}' for name, value in self.attributes)}"
        what = self.kind.name.lower().replace("_", " ")
        if self.kind in (FaultKind.SUBSCRIBE, FaultKind.UNSUBSCRIBE):
            return f"{what} at {self.nodes[0]}: {self.wanted}"
        if self.kind is FaultKind.PARTITION:
            return f"{what} of {' | '.join(','.join(group) for group in self.groups)}"
        if self.kind in (FaultKind.LOSE_HOST, FaultKind.RETURN_HOST):
            return f"{what} {self.host}"
        if self.kind in (FaultKind.KILL_ACTOR, FaultKind.RESTART_ACTOR):
            return f"{what} of {some_names(self.nodes)}"
        and_disk = ", its disk lost" if self.disk_lost else ""
        return f"{what} {'-'.join(self.nodes)}".rstrip() + and_disk


@dataclass(frozen=True, slots=True)
class FailureDetection:
    """How the ends of a link notice that the other is gone without a word, in emulated microseconds.

    A heartbeat leaves every `heartbeat_us`; a peer from which nothing came for `timeout_us` is taken for dead and
    the connection closed. A lost connection is tried again after `reconnect_us`.
    """

    heartbeat_us: int = 1_000_000
    timeout_us: int = 5_000_000
    reconnect_us: int = 100_000

    def __post_init__(self) -> None:
        if min(self.heartbeat_us, self.reconnect_us) < 1:
            raise InputError("failure_detection", "a time of zero", "heartbeat and reconnect above zero")
        if self.timeout_us < 2 * self.heartbeat_us:
            found = f"timeout {self.timeout_us} us with heartbeats every {self.heartbeat_us} us"
            raise InputError("failure_detection", found, "a timeout of at least two heartbeats")


DEFAULT_DETECTION = FailureDetection()


def _none_scripted(name: NodeName, wanted: str) -> Sequence[int]:
    return ()


@dataclass(frozen=True, slots=True)
class FaultTargets:
    """What a plan is checked against: the nodes' names, the links between them, which node is on which host, which
    nodes are not there at first, which nodes are brokers, what the protocols say, whether brokers without a link talk
    by datagrams, which subscribers of a client want a filter by its script, all the time, and which nodes share an
    actor."""

    nodes: Sequence[NodeName]
    links: Iterable[tuple[NodeName, NodeName]]
    hosts: Mapping[NodeName, int]
    start_down: frozenset[NodeName] = frozenset()
    brokers: frozenset[NodeName] = frozenset()
    rules: PlanRules = ANYTHING_GOES
    has_datagrams: bool = False
    scripted: Callable[[NodeName, str], Sequence[int]] = _none_scripted
    actors: Sequence[tuple[NodeName, ...]] = ()

    def actor_of(self, name: NodeName) -> tuple[NodeName, ...]:
        """The nodes in the same actor, itself among them."""
        return actor_of(name, self.actors)


def actor_of(name: NodeName, actors: Sequence[tuple[NodeName, ...]]) -> tuple[NodeName, ...]:
    """The nodes in the same actor as that one, itself among them; `actors` are those with several."""
    return next((nodes for nodes in actors if name in nodes), (name,))


def link_key(first: NodeName, second: NodeName) -> tuple[NodeName, NodeName]:
    """The same for both directions of a link."""
    return (first, second) if first < second else (second, first)


def some_names(names: Iterable[NodeName]) -> str:
    """The first few of them, and how many more there are."""
    listed = list(names)
    return ", ".join(listed[:8]) + (f" and {len(listed) - 8} more" if len(listed) > 8 else "")
