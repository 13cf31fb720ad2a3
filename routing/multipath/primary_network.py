"""What a broker knows of the primary network around it, and how that knowledge spreads (sections 3 and 6).

Every broker states its primary neighbours; a statement travels Δ hops over primary links, so that every broker in
the neighbourhood can draw the same map. The primary network is meant to be stable: a neighbour that cannot be reached
for a while stays in the map, and what should pass it is bridged to those behind it. Only a departure, a join or a move
changes the map.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from murmur_pubsub.machine import Effect, NodeName, Send
from routing.multipath.messages import BrokerAway, Neighbours, Path
from routing.multipath.overlay_maps import MasterOverlayMap


class Statement(NamedTuple):
    """A broker's word on its primary neighbours; the greater (epoch, version) holds."""

    epoch: int
    version: int
    peers: Path

    @property
    def age(self) -> tuple[int, int]:
        """What two statements of one broker are compared by."""
        return (self.epoch, self.version)


class PrimaryNetwork:
    """The primary network as one broker knows it. `down`: primary neighbours that cannot be reached at the moment;
    `also`: a former neighbour that is still told everything while a move is not over."""

    def __init__(self, name: NodeName, delta: int, epoch: int) -> None:
        self.name = name
        self.delta = delta
        self.epoch = epoch
        self.peers: dict[NodeName, None] = {}
        self.down: dict[NodeName, None] = {}
        self.also: dict[NodeName, None] = {}
        self.statements: dict[NodeName, Statement] = {name: Statement(epoch, 0, ())}
        self._away: dict[NodeName, dict[NodeName, tuple[int, int, bool]]] = {}
        self._said = 0
        self._mom: MasterOverlayMap | None = None

    @property
    def mom(self) -> MasterOverlayMap:
        """The master overlay map for what is known now."""
        if self._mom is None:
            self._mom = MasterOverlayMap(self.name, self.delta, self.adjacency())
        return self._mom

    def adjacency(self) -> dict[NodeName, Path]:
        """Every stated list of neighbours, of brokers beyond the map too."""
        return {broker: statement.peers for broker, statement in self.statements.items()}

    def set_peers(self, peers: Iterable[NodeName]) -> None:
        """These are the primary neighbours from now on; makes the broker's next statement."""
        self.peers = dict.fromkeys(peers)
        self.down = {peer: None for peer in self.down if peer in self.peers}
        self.statements[self.name] = Statement(self.epoch, self.own.version + 1, tuple(self.peers))
        self._mom = None

    @property
    def own(self) -> Statement:
        """This broker's own statement."""
        return self.statements[self.name]

    def learn(self, broker: NodeName, statement: Statement) -> bool:
        """Take a statement; False if it is no news. Only this broker speaks for itself."""
        known = self.statements.get(broker)
        if broker == self.name or (known is not None and statement.age <= known.age):
            return False
        self.statements[broker] = statement
        self._mom = None
        return True

    def relays(self) -> Iterator[tuple[NodeName, int]]:
        """To which brokers a message for the whole neighbourhood is passed, and how far away they are: the primary
        neighbours, and in the place of one that is down those behind it."""
        for peer in self.peers:
            if peer not in self.down:
                yield peer, 1
            else:
                yield from self.bridges(peer)
        for peer in self.also:
            yield peer, 1

    def bridges(self, away: NodeName) -> Iterator[tuple[NodeName, int]]:
        """The nearest brokers behind one that is away which are not away themselves, and their distances."""
        if away in self.mom:
            for child in self.mom.children(away):
                if self.is_away(child):
                    yield from self.bridges(child)
                else:
                    yield child, self.mom.distances[child]

    def is_away(self, broker: NodeName) -> bool:
        """Does some neighbour of the broker say that it cannot reach it?"""
        return broker in self.down or any(away for _, _, away in self._away.get(broker, {}).values())

    # ------------------------------------------------------------------------------------------ what is sent
    def tell_own(self) -> list[Effect]:
        """The own statement to every broker in the neighbourhood."""
        return self.spread_statement(self.name, 0, None)

    def tell_all(self, peer: NodeName) -> list[Effect]:
        """Everything that a neighbour that has just come (back) should know of this side."""
        effects: list[Effect] = []
        for broker, distance in self.mom.distances.items():
            if distance < self.delta and broker in self.statements and broker != peer:
                epoch, version, peers = self.statements[broker]
                effects.append(Send(peer, Neighbours(broker, epoch, version, distance + 1, peers)))
        return effects

    def spread_statement(self, broker: NodeName, hops: int, source: NodeName | None) -> list[Effect]:
        """Pass the statement of a broker `hops` away on, as far as it should go."""
        epoch, version, peers = self.statements[broker]
        return [
            Send(peer, Neighbours(broker, epoch, version, hops + distance, peers))
            for peer, distance in self.relays()
            if peer != source and hops + distance <= self.delta
        ]

    def witness(self, broker: NodeName, away: bool) -> list[Effect]:
        """Say that a primary neighbour cannot be reached from here, or can again."""
        self._said += 1
        return self.spread_away(BrokerAway(broker, self.name, self.epoch, self._said, 0, away), None)

    def heard_away(self, word: BrokerAway) -> bool:
        """Take a witness's word; False if it is no news."""
        heard = self._away.setdefault(word.broker, {})
        if word.witness in heard and (word.epoch, word.version) <= heard[word.witness][:2]:
            return False
        heard[word.witness] = (word.epoch, word.version, word.away)
        return True

    def spread_away(self, word: BrokerAway, source: NodeName | None) -> list[Effect]:
        """Pass a witness's word on."""
        return [
            Send(peer, word._replace(hops=word.hops + distance))
            for peer, distance in self.relays()
            if peer not in (source, word.broker) and word.hops + distance <= self.delta
        ]

    def check_invariants(self) -> None:
        assert self.down.keys() <= self.peers.keys()
        assert self.own.peers == tuple(self.peers)
        assert self.mom.centre == self.name


def network_to_wire(statements: Mapping[NodeName, Statement], brokers: Iterable[NodeName]) -> list[Any]:
    """[broker, epoch, version, peers] of those that are known."""
    return [[broker, *statements[broker]] for broker in brokers if broker in statements]


def network_from_wire(network: Sequence[Any]) -> dict[NodeName, Statement]:
    """The inverse of `network_to_wire`."""
    return {broker: Statement(epoch, version, tuple(peers)) for broker, epoch, version, peers in network}
