"""The links of a virtual network as they come up, break and are made anew.

A link is up when both ends hold it. An end loses it when it notices: at once when the peer's process dies (its
sockets close, behind what is still on the way), after the heartbeat timeout when the peer is stalled, its host
is gone or the link is cut. A link that one end has lost is tried again a little later, for as long as both ends
run and it is not cut; if the other end had not noticed anything, the new connection tells it. What was on a broken
connection never arrives on the one that follows.
"""

import itertools
import random
from collections.abc import Iterable, Iterator, Sequence

from murmur_pubsub.deployment import LinkPlan
from murmur_pubsub.faults import FailureDetection, link_key
from murmur_pubsub.journal import RowKind
from murmur_pubsub.links import Link, LinkSpec
from murmur_pubsub.machine import LinkDown, LinkUp, NodeName
from murmur_virtual.virtual_network import VirtualNetwork
from murmur_virtual.virtual_node import VirtualNode

_ON_THE_WAY_US = 60_000_000
"""No datagram is on its way for longer."""


class _Wire:
    """One planned link. `connection` counts the connections made so far; until `clear_us` something of the broken ones
    may still be on its way."""

    __slots__ = ("clear_us", "connection", "cut", "ends", "retrying", "spec")

    def __init__(self, plan: LinkPlan) -> None:
        self.ends = (plan.first, plan.second)
        self.spec = plan.spec
        self.clear_us = 0
        self.connection = 0
        self.cut = False
        self.retrying = False

    def other(self, name: NodeName) -> NodeName:
        return self.ends[1] if name == self.ends[0] else self.ends[0]


class VirtualLinks:
    """All links of a network; `groups` is the partition in force, node name to group."""

    def __init__(self, network: "VirtualNetwork[VirtualNode]", detection: FailureDetection) -> None:
        self.detection = detection
        self.groups: dict[NodeName, int] | None = None
        self._network = network
        self._wires: dict[tuple[NodeName, NodeName], _Wire] = {}
        self._by_node: dict[NodeName, list[_Wire]] = {}
        self._unquiet: dict[_Wire, None] = {}

    def add(self, plan: LinkPlan) -> None:
        """A new link; it comes up at once if both ends are there."""
        wire = _Wire(plan)
        self._wires[link_key(*wire.ends)] = wire
        for name in wire.ends:
            self._by_node.setdefault(name, []).append(wire)
        if all(self._runs(name) for name in wire.ends):
            self._establish(wire)

    @property
    def quiet(self) -> bool:
        """Have all nodes noticed what broke, and is every link up that can be?"""
        return not self._unquiet

    # --------------------------------------------------------------------------------- what happens to nodes
    def node_died(self, name: NodeName, silently: bool) -> None:
        """The process is gone; silently: so is its host, and its sockets are not closed."""
        now_us = self._network.now_us
        dead = self._network.nodes[name]
        for wire in self._wires_of(name):
            peer = wire.other(name)
            if peer in dead.links:
                link = dead.links.pop(peer)[0]
                clear_us = link.clear_us(now_us)
                wire.clear_us = max(wire.clear_us, clear_us)
                noticed_us = now_us + self.detection.timeout_us if silently else clear_us
                self._lose_at(noticed_us, peer, name, wire, "no heartbeat" if silently else "connection reset")
            self._review(wire)

    def node_is_back(self, name: NodeName) -> None:
        """The node runs (again): its links may come up."""
        for wire in self._wires_of(name):
            self._retry(wire)
            self._review(wire)

    def node_stalled(self, name: NodeName) -> None:
        """The peers hear nothing of it and give up in the end."""
        node = self._network.nodes[name]
        episode = node.stalls
        deadline_us = self._network.now_us + self.detection.timeout_us

        def give_up(now_us: int) -> None:
            if node.stalled and node.stalls == episode:
                for wire in self._wires_of(name):
                    self._lose(wire.other(name), name, wire, "no heartbeat")
                    self._lose(name, wire.other(name), wire, "closed by the peer")

        self._network.call_at(deadline_us, give_up)
        for wire in self._wires_of(name):
            self._review(wire)

    # --------------------------------------------------------------------------------- what happens to links
    def cut(self, first: NodeName, second: NodeName) -> None:
        """Nothing passes the link from now on, in either direction."""
        wire = self._wires[link_key(first, second)]
        wire.cut = True
        for name in wire.ends:
            if self._holds(wire, name):
                self._network.nodes[name].sever(wire.other(name))
        connection = wire.connection
        self._network.call_at(
            self._network.now_us + self.detection.timeout_us,
            lambda now_us: self._lose_both(wire, "no heartbeat") if wire.connection == connection else None,
        )
        self._review(wire)

    def remove(self, first: NodeName, second: NodeName) -> None:
        """The link is one no longer: both ends hear that it is down, and what is on its way over it is lost."""
        wire = self._wires.pop(link_key(first, second))
        wire.cut = True  # what is still to be tried for it comes to nothing
        self._lose_both(wire, "disconnected")
        for name in wire.ends:
            self._by_node[name].remove(wire)
            if self._is_up(name):
                self._network.nodes[name].disregard(wire.other(name), wire.clear_us)
        self._unquiet.pop(wire, None)

    def heal(self, first: NodeName, second: NodeName) -> None:
        """The link may come up again; an end that had not noticed the cut finds the connection broken."""
        wire = self._wires[link_key(first, second)]
        wire.cut = False
        self._lose_both(wire, "the link was cut")
        self._retry(wire)
        self._review(wire)

    def partition(self, groups: Sequence[Sequence[NodeName]]) -> None:
        """Cut every link between different groups; no datagram passes either, nor those that are on their way."""
        self.groups = {name: number for number, group in enumerate(groups) for name in group}
        for wire in self._between_groups():
            self.cut(*wire.ends)
        if self._network.datagrams is not None:
            landed_us = self._network.now_us + _ON_THE_WAY_US
            for name, other in itertools.permutations(self.groups, 2):
                if self.groups[name] != self.groups[other] and self._is_up(name):
                    self._network.nodes[name].disregard(other, landed_us, datagrams=True)

    def unite(self) -> None:
        """End the partition."""
        crossing = list(self._between_groups())
        self.groups = None
        for wire in crossing:
            self.heal(*wire.ends)

    def change(self, first: NodeName, second: NodeName, spec: LinkSpec) -> None:
        """From now on the link is like that, in both directions."""
        wire = self._wires[link_key(first, second)]
        wire.spec = spec
        for name in wire.ends:
            node = self._network.nodes.get(name)
            if node is not None and wire.other(name) in node.links:
                node.links[wire.other(name)][0].change(spec, self._network.now_us)

    # --------------------------------------------------------------------------------------------- inside
    def _wires_of(self, name: NodeName) -> Iterable[_Wire]:
        return self._by_node.get(name, ())

    def _between_groups(self) -> Iterator[_Wire]:
        groups = self.groups or {}
        return (wire for wire in self._wires.values() if groups[wire.ends[0]] != groups[wire.ends[1]])

    def _is_up(self, name: NodeName) -> bool:
        node = self._network.nodes.get(name)
        return node is not None and not node.down

    def _runs(self, name: NodeName) -> bool:
        return self._is_up(name) and not self._network.nodes[name].stalled

    def _holds(self, wire: _Wire, name: NodeName) -> bool:
        """Does the node hold a link of this wire? What is still to happen to a wire that was taken away does not touch
        the one that has come in its place."""
        if not self._is_up(name) or wire.other(name) not in self._network.nodes[name].links:
            return False
        return self._wires.get(link_key(*wire.ends), wire) is wire

    def _review(self, wire: _Wire) -> None:
        """Something has happened to the wire: is it quiet now?"""
        if self._is_quiet(wire):
            self._unquiet.pop(wire, None)
        else:
            self._unquiet[wire] = None

    def _is_quiet(self, wire: _Wire) -> bool:
        if not wire.cut and all(self._runs(name) for name in wire.ends):
            return not wire.retrying and all(self._holds(wire, name) for name in wire.ends)
        return not any(self._holds(wire, name) and self._runs(name) for name in wire.ends)

    def _establish(self, wire: _Wire) -> None:
        ends: list[tuple[VirtualNode, VirtualNode]] = []
        self._lose_both(wire, "replaced by a new connection")
        wire.connection += 1
        nodes = self._network.nodes
        for name in wire.ends:
            node, peer = nodes[name], nodes[wire.other(name)]
            seed = f"{self._network.seed}/{name}/link/{peer.spec.name}"
            rng = random.Random(seed if wire.connection == 1 else f"{seed}/{wire.connection}")
            node.take_link(peer, Link(wire.spec, rng), wire.clear_us)
            ends.append((node, peer))
        self._review(wire)
        for node, peer in ends:
            node.note(RowKind.LINK_UP, peer.spec.name)
            node.take_input(LinkUp(peer.spec.name, peer.spec.role == "broker"), self._network.now_us)

    def _retry(self, wire: _Wire) -> None:
        if wire.retrying or not self._may_connect(wire):
            return
        wire.retrying = True

        def connect(now_us: int) -> None:
            wire.retrying = False
            if self._may_connect(wire):
                self._establish(wire)
            self._review(wire)

        self._network.call_at(self._network.now_us + self.detection.reconnect_us, connect)

    def _may_connect(self, wire: _Wire) -> bool:
        able = not wire.cut and all(self._runs(name) for name in wire.ends)
        return able and not all(self._holds(wire, name) for name in wire.ends)

    def _lose_at(self, time_us: int, name: NodeName, peer: NodeName, wire: _Wire, reason: str) -> None:
        connection = wire.connection

        def lose(now_us: int) -> None:
            if wire.connection == connection:
                self._lose(name, peer, wire, reason)

        self._network.call_at(time_us, lose)

    def _lose_both(self, wire: _Wire, reason: str) -> None:
        first, second = wire.ends
        self._lose(first, second, wire, reason)
        self._lose(second, first, wire, reason)

    def _lose(self, name: NodeName, peer: NodeName, wire: _Wire, reason: str) -> None:
        if not self._holds(wire, name):
            return
        node = self._network.nodes[name]
        if node.stalled:  # it finds the connection closed when it goes on, behind what it had received
            connection = wire.connection
            node.must_wait(
                lambda now_us: self._lose(name, peer, wire, reason) if wire.connection == connection else None
            )
            return
        link = node.links.pop(peer)[0]
        wire.clear_us = max(wire.clear_us, link.clear_us(self._network.now_us))
        node.sever(peer)  # the peer may hold its end for long, and write into it
        node.note(RowKind.LINK_DOWN, peer)
        node.take_input(LinkDown(peer, reason), self._network.now_us)
        self._retry(wire)
        self._review(wire)
