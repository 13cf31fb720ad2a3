"""Could each step of a fault plan take effect?

`check_plan` walks through it in order of time and refuses what could not (a kill of a node that is down, a heal of a
link that was never cut), because a fault that does nothing makes a test pass for nothing.
"""

from collections.abc import Sequence

from murmur_pubsub.errors import InputError
from murmur_pubsub.faults import (
    CELL,
    COMMANDS,
    RECONFIGURES,
    Fault,
    FaultKind,
    FaultTargets,
    NewLinks,
    link_key,
    some_names,
)
from murmur_pubsub.machine import NodeName
from murmur_pubsub.membership import Membership


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
        self._killed: dict[tuple[NodeName, ...], list[NodeName]] = {}
        """The actors that were killed, and which of their nodes were up then."""
        self._own_deaths: set[NodeName] = set()
        """The nodes that died though no step told them to: they come back with their actor, as if that had."""
        self._wanted: dict[int, tuple[NodeName, str] | None] = {}
        """What a subscriber wants, by steps of the plan (None: it has withdrawn that)."""
        self._divided = False
        self._moved: set[NodeName] = set()
        self._published: set[NodeName] = set()
        self._unstarted = targets.brokers & targets.start_down
        plan = targets.rules.cells
        self.members = None if plan is None else Membership(plan)
        """Of cells, as far as orders say."""

    def check(self, fault: Fault, place: str) -> None:
        """Raise `InputError` if the step could not take effect now."""
        kind = fault.kind
        arguments = [name for called, name in fault.arguments if called != CELL]
        for name in (*fault.nodes, *arguments, *(name for group in fault.groups for name in group)):
            if name not in self._nodes:
                raise InputError(place, f"{name!r}", f"a node of the run: {some_names(self._nodes)}")
        if kind in (FaultKind.CUT, FaultKind.HEAL, FaultKind.CHANGE_LINK):
            self._check_link(fault, place)
        elif kind in RECONFIGURES:
            self._check_overlay(fault, place)
        elif kind in (FaultKind.PARTITION, FaultKind.UNITE):
            self._check_partition(fault, place)
        elif kind in (FaultKind.LOSE_HOST, FaultKind.RETURN_HOST):
            self._check_host(fault, place)
        elif kind in (FaultKind.KILL_ACTOR, FaultKind.RESTART_ACTOR):
            self._check_actor(fault, place)
        else:
            self._check_node(fault, place)

    def note(self, fault: Fault) -> None:
        """It has happened, though no step said so."""
        if fault.kind is not FaultKind.KILL:
            self.check(fault, f"{fault}, which was observed")
            return
        for name in fault.nodes:
            if name not in self._down:  # else a step has ordered it just now
                self._down[name] = None
                self._stalled.pop(name, None)
                self._own_deaths.add(name)

    def runs(self, name: NodeName) -> bool:
        """Is the node neither down nor stalled?"""
        return name not in self._down and name not in self._stalled

    def _check_node(self, fault: Fault, place: str) -> None:
        (name,) = fault.nodes
        kind, down, stalled = fault.kind, name in self._down, name in self._stalled
        if kind is FaultKind.RESTART:
            if not down:
                raise InputError(place, f"a restart of {name}, which is up", "a node that is down then")
            if self._targets.actor_of(name) in self._killed:
                raise InputError(place, f"{fault}, whose actor was killed", f"restart_actor: {name} before that")
            del self._down[name]
            self._unstarted -= {name}
            self._own_deaths.discard(name)
            return
        if down:
            raise InputError(place, f"{fault}, which is down then", "a node that is up then")
        if kind is FaultKind.RESUME:
            if not stalled:
                raise InputError(place, f"{fault}, which is not stalled", "a node that is stalled then")
            del self._stalled[name]
        elif fault.sigkill and len(self._targets.actor_of(name)) > 1:
            found = f"a SIGKILL of {name}, whose process is that of {len(self._targets.actor_of(name))} nodes"
            raise InputError(place, found, "kill without a signal, kill_actor; or density: 1")
        elif stalled and kind is not FaultKind.KILL:
            raise InputError(place, f"{fault}, which is stalled then", "a node that is running then")
        elif fault.disk_lost and name not in self._targets.brokers:
            raise InputError(place, f"{fault}", f"a broker: {some_names(sorted(self._targets.brokers))}")
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
            raise InputError(place, f"an order {fault.verb!r}", f"one that the protocols know: {some_names(orders)}")
        if fault.nodes[0] not in self._targets.brokers:
            raise InputError(place, f"{fault}", f"an order to a broker: {some_names(sorted(self._targets.brokers))}")
        if [name for name, _ in fault.arguments] != list(orders[fault.verb]):
            raise InputError(place, f"{fault}", f"{fault.verb} with {', '.join(orders[fault.verb]) or 'nothing else'}")
        if self.members is not None:
            self.members.obey(fault.verb, fault.nodes[0], [name for _, name in fault.arguments])

    def _check_command(self, fault: Fault, place: str) -> None:
        rules, (name,) = self._targets.rules, fault.nodes
        able = frozenset(rules.publishers) if fault.kind is FaultKind.PUBLISH else rules.subscribing
        if self.members is not None:  # a broker that has not joined serves nobody, nor one that others stand in for
            able -= set(self.members.plan.newcomers) - self._taking_clients
        own = (name, fault.wanted)
        if name not in able:
            raise InputError(place, f"{fault}", f"a node that can: {some_names(sorted(able)) or 'there is none'}")
        if fault.kind is FaultKind.PUBLISH:
            if name in self._moved and not self._publishes_there(name):
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
        roams = len(clients) == 1 and (clients[0] in rules.roaming or clients[0] in rules.publishing_at)
        if key[0] == key[1] or (clients and not roams):
            others = f", or one of them and of {some_names(sorted(rules.roaming))}" if rules.roaming else ""
            return "which are not two brokers", f"two of {some_names(sorted(brokers))}{others}"
        if key[0] in self._stalled or key[1] in self._stalled:
            return "one of which is stalled then", "brokers that run, or are down"
        if self._divided:
            return "during a partition", "changes of the overlay while it is not divided"
        if roams:
            return self._no_move(clients[0], key, connects)
        if rules.new_links is NewLinks.NONE:
            return "over a routing whose brokers know their overlay beforehand", "cut and heal"
        if rules.new_links is NewLinks.CELLS:
            wrong = self._not_of_cells(key, connects)
            if wrong is not None:
                return wrong
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
        if rules.acyclic and way and rules.new_links is not NewLinks.CELLS:
            return f"which closes a cycle by {', '.join(way)}", "two brokers without a way between them"
        if joins and self._neighbours(key[0]) and self._neighbours(key[1]):
            return "which both have neighbours", f"a link between {rules.new_links.value}"
        return None

    def _not_of_cells(self, key: tuple[NodeName, NodeName], connects: bool) -> tuple[str, str] | None:
        """What is wrong with the link where brokers know the cells that there are."""
        if connects and not self._unstarted.intersection(key):
            return "which have both been started", "a link of a broker that will join a cell, before it is started"
        if not connects and not (self.members is not None and self.members.departed.keys() & set(key)):
            return "neither of which has departed", "cut and heal; or a link of a broker that has departed"
        return None

    def _no_move(self, client: NodeName, key: tuple[NodeName, NodeName], connects: bool) -> tuple[str, str] | None:
        """The same of a client's link."""
        here = [
            first if second == client else second for first, second in sorted(self._links) if client in (first, second)
        ]
        rules = self._targets.rules
        if (client in self._published or client not in rules.roaming) and client in rules.publishing_at:
            if connects and not rules.publishing_at[client].intersection(key):
                return "where it cannot publish", some_names(sorted(rules.publishing_at[client]))
        elif client in self._published:
            return "which has published", "a client that only subscribes"
        if not connects:
            return None if key in self._links else ("which are not connected then", f"{client} and {some_names(here)}")
        if here:
            return f"which is at {here[0]} then", "a client that is at no broker"
        if not self._taking_clients.intersection(key):
            return "where no clients are", some_names(sorted(self._taking_clients))
        return None

    @property
    def _taking_clients(self) -> set[NodeName]:
        """The brokers to which clients may go."""
        taking, members = set(self._targets.rules.taking_clients), self.members
        if members is not None:
            taking -= set(members.plan.newcomers)
            taking |= {name for name, cell in members.joined.items() if members.stands_alone(cell)}
            taking -= members.departed.keys()
        return taking

    def _publishes_there(self, client: NodeName) -> bool:
        """Is the client, which has left its broker, at one where it may publish?"""
        able = self._targets.rules.publishing_at.get(client, frozenset())
        return any(client in key and able.intersection(key) for key in self._links)

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
            self._own_deaths -= {*here}
            for name in here:
                self._stalled.pop(name, None)
        else:
            if fault.host not in self._lost:
                raise InputError(place, f"{fault}, which is not lost", "a host that is lost then")
            self._lost.remove(fault.host)
            self._own_deaths -= {*here}
            for name in here:
                if name not in self._unstarted:
                    self._down.pop(name, None)
                    self._killed.pop(self._targets.actor_of(name), None)

    def _check_actor(self, fault: Fault, place: str) -> None:
        nodes = fault.nodes
        if nodes != self._targets.actor_of(nodes[0]):
            raise InputError(place, f"{fault}", "all nodes of one actor")
        if fault.kind is FaultKind.KILL_ACTOR:
            up = [name for name in nodes if name not in self._down]
            if not up:
                raise InputError(place, f"{fault}, which are down then", "an actor with a node that is up then")
            self._killed[nodes] = [name for name in nodes if name in up or name in self._own_deaths]
            self._own_deaths -= {*nodes}
            self._down |= dict.fromkeys(up)
            for name in up:
                self._stalled.pop(name, None)
        else:
            if nodes not in self._killed:
                raise InputError(place, f"{fault}, which was not killed", "an actor that was killed then")
            for name in self._killed.pop(nodes):
                self._down.pop(name, None)
