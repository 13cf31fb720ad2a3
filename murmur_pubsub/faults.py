"""The fault plan: what is broken when, as plain data that both runtimes carry out.

Times count from the start of publishing, in emulated microseconds. A plan is checked against the deployment before
anything starts: `check_plan` walks through it in order of time and refuses what could not take effect (a kill of a
node that is down, a heal of a link that was never cut), because a fault that does nothing makes a test pass for
nothing.

What each kind means, on both runtimes:

- KILL: the process ends at once; volatile state is gone, what was synced to stable storage stays. The peers' side
  of each connection breaks at once (a process that dies closes its sockets). `sigkill` takes the operating system's
  SIGKILL instead of Ray's kill. RESTART: a new machine under the old name, with the next incarnation number.
- STALL: the process is stopped and says nothing; peers find out by missing heartbeats. RESUME: it goes on.
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
- LOSE_HOST: a whole host with its nodes is gone at once, without a word to their peers. RETURN_HOST: its
  nodes are started again (on another host, where the lost one stays away).
"""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum

from murmur_pubsub.errors import InputError
from murmur_pubsub.links import LinkSpec
from murmur_pubsub.machine import NodeName
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


RECONFIGURES = (FaultKind.CONNECT, FaultKind.DISCONNECT)
"""Kinds that change which links the overlay has."""
COMMANDS = (FaultKind.PUBLISH, FaultKind.SUBSCRIBE, FaultKind.UNSUBSCRIBE)
"""Kinds that a client carries out."""
ENDS = {
    FaultKind.RESTART: FaultKind.KILL,
    FaultKind.RESUME: FaultKind.STALL,
    FaultKind.SLOW: FaultKind.SLOW,
    FaultKind.HEAL: FaultKind.CUT,
    FaultKind.CHANGE_LINK: FaultKind.CHANGE_LINK,
    FaultKind.UNITE: FaultKind.PARTITION,
    FaultKind.RETURN_HOST: FaultKind.LOSE_HOST,
    FaultKind.CONNECT: FaultKind.DISCONNECT,
    FaultKind.DISCONNECT: FaultKind.CONNECT,
}
"""What a step of each of these kinds can end."""
REPAIRS = tuple(kind for kind, began in ENDS.items() if kind is not began and kind not in RECONFIGURES)
"""Kinds that end a fault and break nothing themselves."""


def takes_back(kind: FaultKind, link: LinkSpec | None, work_us: int) -> bool:
    """Is it a step of a kind that breaks as well as repairs, and does it only repair? A link is as planned again, or a
    node as fast as before."""
    return (kind is FaultKind.CHANGE_LINK and link is None) or (kind is FaultKind.SLOW and not work_us)


class NewLinks(Enum):
    """Between which brokers a routing takes a link that was not there when they started."""

    ANY = "any two"
    JOINS = "a broker that has no other broker for a neighbour, and any other"
    NONE = "none: its brokers know their overlay beforehand"


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
    publishers: Mapping[NodeName, int] = field(default_factory=dict)
    """The nodes at which a step may publish; each with the number of the publisher that does."""
    roaming: frozenset[NodeName] = frozenset()
    """The clients that may go from one broker to another."""
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

    `nodes`: the node it is about; the two ends of a link (CUT, HEAL, CHANGE_LINK, CONNECT, DISCONNECT); none for a
    PARTITION, whose `groups` hold every node once. `work_us` is SLOW's, `link` CHANGE_LINK's and CONNECT's, `host` a
    number from 0. `verb` and `arguments` are ORDER's: each argument is what it is called, and the name of a node.
    `issuer` is the number of the publisher of a PUBLISH, or of the subscriber of a SUBSCRIBE or UNSUBSCRIBE;
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
        return f"{what} {'-'.join(self.nodes)}".rstrip()


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
    by datagrams, and which subscribers of a client want a filter by its script, all the time."""

    nodes: Sequence[NodeName]
    links: Iterable[tuple[NodeName, NodeName]]
    hosts: Mapping[NodeName, int]
    start_down: frozenset[NodeName] = frozenset()
    brokers: frozenset[NodeName] = frozenset()
    rules: PlanRules = ANYTHING_GOES
    has_datagrams: bool = False
    scripted: Callable[[NodeName, str], Sequence[int]] = _none_scripted


def link_key(first: NodeName, second: NodeName) -> tuple[NodeName, NodeName]:
    """The same for both directions of a link."""
    return (first, second) if first < second else (second, first)


def check_plan(plan: Sequence[Fault], targets: FaultTargets, places: Sequence[str] | None = None) -> None:
    """Raise `InputError` for the first step that could not take effect; `places` names each step for the user."""
    checker = PlanChecker(targets)
    latest_us = 0
    for number, fault in enumerate(plan):
        place = places[number] if places is not None else f"faults, step {number + 1}"
        if fault.time_us < 0:
            raise InputError(place, f"a time of {fault.time_us} us", "a time from the start of publishing on")
        if fault.time_us < latest_us:
            raise InputError(place, f"{fault} at {fault.time_us} us, after one at {latest_us} us", "times in order")
        latest_us = fault.time_us
        checker.check(fault, place)


class PlanChecker:
    """Which nodes are down, stalled or cut off as a plan goes, step by step."""

    def __init__(self, targets: FaultTargets) -> None:
        self._targets = targets
        self._nodes = dict.fromkeys(targets.nodes)
        self._links = {link_key(*ends) for ends in targets.links}
        self._down: dict[NodeName, None] = dict.fromkeys(sorted(targets.start_down))
        self._stalled: dict[NodeName, None] = {}
        self._cut: set[tuple[NodeName, NodeName]] = set()
        self._lost: set[int] = set()
        self._wanted: dict[int, tuple[NodeName, str] | None] = {}
        """What a subscriber wants, by steps of the plan (None: it has withdrawn that)."""
        self._divided = False
        self._moved: set[NodeName] = set()
        self._published: set[NodeName] = set()

    def check(self, fault: Fault, place: str) -> None:
        """Raise `InputError` if the step could not take effect now."""
        kind = fault.kind
        arguments = [name for _, name in fault.arguments]
        for name in (*fault.nodes, *arguments, *(name for group in fault.groups for name in group)):
            if name not in self._nodes:
                raise InputError(place, f"{name!r}", f"a node of the run: {_some(self._nodes)}")
        if kind in (FaultKind.CUT, FaultKind.HEAL, FaultKind.CHANGE_LINK):
            self._check_link(fault, place)
        elif kind in RECONFIGURES:
            self._check_overlay(fault, place)
        elif kind in (FaultKind.PARTITION, FaultKind.UNITE):
            self._check_partition(fault, place)
        elif kind in (FaultKind.LOSE_HOST, FaultKind.RETURN_HOST):
            self._check_host(fault, place)
        else:
            self._check_node(fault, place)

    def runs(self, name: NodeName) -> bool:
        """Is the node neither down nor stalled?"""
        return name not in self._down and name not in self._stalled

    def _check_node(self, fault: Fault, place: str) -> None:
        (name,) = fault.nodes
        kind, down, stalled = fault.kind, name in self._down, name in self._stalled
        if kind is FaultKind.RESTART:
            if not down:
                raise InputError(place, f"a restart of {name}, which is up", "a node that is down then")
            del self._down[name]
            return
        if down:
            raise InputError(place, f"{fault}, which is down then", "a node that is up then")
        if kind is FaultKind.RESUME:
            if not stalled:
                raise InputError(place, f"{fault}, which is not stalled", "a node that is stalled then")
            del self._stalled[name]
        elif stalled and kind is not FaultKind.KILL:
            raise InputError(place, f"{fault}, which is stalled then", "a node that is running then")
        elif kind is FaultKind.KILL:
            self._stalled.pop(name, None)
            self._down[name] = None
        elif kind is FaultKind.STALL:
            self._stalled[name] = None
        elif kind is FaultKind.ORDER:
            self._check_order(fault, place)
        elif kind in COMMANDS:
            self._check_command(fault, place)
        elif fault.work_us < 0:
            raise InputError(place, f"{fault.work_us} us of work", "a time that is not negative")

    def _check_order(self, fault: Fault, place: str) -> None:
        orders = self._targets.rules.orders
        if fault.verb not in orders:
            raise InputError(place, f"an order {fault.verb!r}", f"an order that the protocols know: {_some(orders)}")
        if fault.nodes[0] not in self._targets.brokers:
            raise InputError(place, f"{fault}", f"an order to a broker: {_some(sorted(self._targets.brokers))}")
        if [name for name, _ in fault.arguments] != list(orders[fault.verb]):
            raise InputError(place, f"{fault}", f"{fault.verb} with {', '.join(orders[fault.verb]) or 'nothing else'}")

    def _check_command(self, fault: Fault, place: str) -> None:
        rules, (name,) = self._targets.rules, fault.nodes
        able = rules.publishers if fault.kind is FaultKind.PUBLISH else rules.subscribing
        own = (name, fault.wanted)
        if name not in able:
            raise InputError(place, f"{fault}", f"a node that can: {_some(sorted(able)) or 'there is none'}")
        if fault.kind is FaultKind.PUBLISH:
            if name in self._moved:
                raise InputError(place, f"{fault}, which has left its broker", "a client that stays where it is")
            self._published.add(name)
        if fault.kind is FaultKind.SUBSCRIBE:
            if fault.issuer < rules.subscribers_from or fault.issuer in self._wanted:
                found = f"subscriber {fault.issuer}, which has a filter"
                raise InputError(place, found, f"a new one, from {rules.subscribers_from} on")
            self._wanted[fault.issuer] = own
        elif fault.kind is FaultKind.UNSUBSCRIBE:
            scripted = fault.issuer in self._targets.scripted(*own)
            if self._wanted.get(fault.issuer, own if scripted else None) != own:
                raise InputError(place, f"{fault}", f"a filter that {name} subscribed to and has not withdrawn")
            self._wanted[fault.issuer] = None

    def _check_link(self, fault: Fault, place: str) -> None:
        key = link_key(*fault.nodes)
        if key not in self._links:
            raise InputError(place, f"a link {'-'.join(fault.nodes)}", "two nodes with a link between them")
        if fault.kind is FaultKind.CUT:
            if key in self._cut or self._divided:
                raise InputError(place, f"{fault}, which may be cut already", "a link that is whole then")
            self._cut.add(key)
        elif fault.kind is FaultKind.HEAL:
            if key not in self._cut:
                raise InputError(place, f"{fault}, which was not cut", "a link that is cut then")
            self._cut.remove(key)

    def _check_overlay(self, fault: Fault, place: str) -> None:
        key = link_key(*fault.nodes)
        wrong = self._no_change(key, fault.kind is FaultKind.CONNECT)
        if wrong is not None:
            raise InputError(place, f"{fault}, {wrong[0]}", wrong[1])
        if fault.kind is FaultKind.CONNECT:
            self._links.add(key)
        else:
            self._links.remove(key)
            self._cut.discard(key)
            self._moved.update(name for name in key if name not in self._targets.brokers)

    def _no_change(self, key: tuple[NodeName, NodeName], connects: bool) -> tuple[str, str] | None:
        """What is wrong with a new link (or with an old one's end), and what would be allowed."""
        rules, brokers = self._targets.rules, self._targets.brokers
        clients = [name for name in key if name not in brokers]
        roams = len(clients) == 1 and clients[0] in rules.roaming
        if key[0] == key[1] or (clients and not roams):
            others = f", or one of them and of {_some(sorted(rules.roaming))}" if rules.roaming else ""
            return "which are not two brokers", f"two of {_some(sorted(brokers))}{others}"
        if key[0] in self._stalled or key[1] in self._stalled:
            return "one of which is stalled then", "brokers that run, or are down"
        if self._divided:
            return "during a partition", "changes of the overlay while it is not divided"
        if roams:
            return self._no_move(clients[0], key, connects)
        if rules.new_links is NewLinks.NONE:
            return "over a routing whose brokers know their overlay beforehand", "cut and heal"
        joins = rules.new_links is NewLinks.JOINS
        if not connects:
            if key not in self._links:
                return "which are not connected then", "two brokers with a link between them"
            if joins and not (key[0] in self._down or key[1] in self._down):
                return "which are both up, over a routing whose brokers join", "a link of one that is down"
            return None
        if key in self._links:
            return "which are connected then", "two brokers without a link between them"
        way = self._way(*key)
        if rules.acyclic and way:
            return f"which closes a cycle by {', '.join(way)}", "two brokers without a way between them"
        if joins and self._neighbours(key[0]) and self._neighbours(key[1]):
            return "which both have neighbours", f"a link between {rules.new_links.value}"
        return None

    def _no_move(self, client: NodeName, key: tuple[NodeName, NodeName], connects: bool) -> tuple[str, str] | None:
        """The same of a client's link."""
        here = [
            first if second == client else second for first, second in sorted(self._links) if client in (first, second)
        ]
        if client in self._published:
            return "which has published", "a client that only subscribes"
        if not connects:
            return None if key in self._links else ("which are not connected then", f"{client} and {_some(here)}")
        if here:
            return f"which is at {here[0]} then", "a client that is at no broker"
        if not self._targets.rules.taking_clients.intersection(key):
            return "where no clients are", _some(sorted(self._targets.rules.taking_clients))
        return None

    def _neighbours(self, name: NodeName) -> list[NodeName]:
        """The brokers with a link to that one, cut or not, in a fixed order."""
        ends = sorted(key for key in self._links if name in key and self._targets.brokers.issuperset(key))
        return [second if first == name else first for first, second in ends]

    def _way(self, first: NodeName, last: NodeName) -> list[NodeName]:
        """The brokers on a way from the one to the other, both included; empty if there is none."""
        came_from: dict[NodeName, NodeName | None] = {last: None}
        for name in (queue := [last]):
            for peer in self._neighbours(name):
                if peer not in came_from:
                    came_from[peer] = name
                    queue.append(peer)
        way: list[NodeName] = []
        here: NodeName | None = first if first in came_from else None
        while here is not None:
            way.append(here)
            here = came_from[here]
        return way

    def _check_partition(self, fault: Fault, place: str) -> None:
        if fault.kind is FaultKind.UNITE:
            if not self._divided:
                raise InputError(place, "an end of a partition", "one only while there is a partition")
            self._divided = False
            return
        if self._divided or self._cut:
            raise InputError(place, f"a {fault} while links are cut already", "one partition at a time, and no cut")
        listed = [name for group in fault.groups for name in group]
        groups = {name: number for number, group in enumerate(fault.groups) for name in group}
        if len(listed) != len(groups) or groups.keys() != self._nodes.keys() or not all(fault.groups):
            raise InputError(place, f"{fault}", "every node in exactly one group, and no group empty")
        divided = {groups[name] for name in self._targets.brokers} if self._targets.has_datagrams else set()
        if len(divided) < 2 and all(groups[first] == groups[second] for first, second in self._links):
            allowed = "two groups or more with links between them, or with brokers that have datagrams"
            raise InputError(place, f"a {fault}, which cuts no link", allowed)
        self._divided = True

    def _check_host(self, fault: Fault, place: str) -> None:
        here = [name for name in self._nodes if self._targets.hosts.get(name) == fault.host]
        if not here:
            hosts = sorted(set(self._targets.hosts.values()))
            raise InputError(place, f"host {fault.host}", f"one of {hosts}, with nodes on it")
        if fault.kind is FaultKind.LOSE_HOST:
            if fault.host == 0:
                raise InputError(place, "host 0", "another one: the driver is on host 0")
            if fault.host in self._lost:
                raise InputError(place, f"{fault}, which is lost already", "a host that is there then")
            self._lost.add(fault.host)
            self._down |= dict.fromkeys(here)
            for name in here:
                self._stalled.pop(name, None)
        else:
            if fault.host not in self._lost:
                raise InputError(place, f"{fault}, which is not lost", "a host that is lost then")
            self._lost.remove(fault.host)
            for name in here:
                self._down.pop(name, None)


def _some(names: Iterable[NodeName]) -> str:
    listed = list(names)
    return ", ".join(listed[:8]) + (f" and {len(listed) - 8} more" if len(listed) > 8 else "")
