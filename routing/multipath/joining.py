"""A link leads to a broker that was no neighbour: it becomes one, and neighbours that are away may be none any more.

Of the two ends of the new link one joins, and all its links were taken away before. It may have neighbours still: a
link to a broker that is away is taken away without a word, and such a broker is bridged. With them, too, there would
be a cycle, so the end that joins gives them up. Which of the two that is they tell by who is there:

- a broker with a neighbour that is there has not joined;
- if all neighbours of both are away, the later by name gives up its own. Should one of them come back, then its link
  was not taken away. It is a neighbour again, and the other end gives up its own.

Where the new neighbour is in the map, the map tells that (`_given_up_for`). Beyond the map it is asked.
"""

from collections.abc import Collection, Sequence

from murmur_pubsub.machine import Effect, NodeName, Send
from routing.multipath.knowledge import Knowledge
from routing.multipath.messages import JoinDoubted, JoinSettled
from routing.multipath.subscription_spread import SubscriptionSpread


class Joining:
    """The joins at one broker, its own and those of others."""

    def __init__(self, knowledge: Knowledge, spread: SubscriptionSpread) -> None:
        self._knowledge = knowledge
        self._network = knowledge.network
        self._spread = spread
        self._doubted: NodeName | None = None
        """A neighbour that is asked whether this broker has joined there, until it is sure."""
        self._given_up: dict[NodeName, NodeName] = {}
        """Neighbours that were away, and for which one each was given up. One that comes back was so by mistake."""

    def join(self, peer: NodeName) -> list[Effect]:
        """A link to a broker that is no neighbour has come up."""
        network = self._network
        effects: list[Effect] = []
        if peer in self._given_up:
            effects.append(Send(self._given_up.pop(peer), JoinSettled(joined=True)))
        is_far = peer not in network.mom
        # This broker may have been given another place in the overlay while it was down: neighbours by link of the last
        # incarnation that are still there come by their links.
        effects += self._take(peer, {**network.unseen, **self._given_up_for(peer)})
        network.unseen = {}
        if is_far and self._are_others_away(peer):
            self._doubted = peer
            effects.append(Send(peer, JoinDoubted()))
        return effects

    def _take(self, peer: NodeName, former: Collection[NodeName]) -> list[Effect]:
        """The peer is a neighbour from now on, and the former ones are none any more."""
        network = self._network
        beyond = [(broker, hops) for each in former for broker, hops in network.bridges(each) if broker != peer]
        for each in former:
            network.outdate(each)
            self._given_up[each] = peer
        effects = self._knowledge.new_peers([*(each for each in network.peers if each not in (*former, peer)), peer])
        effects += network.tell_own_to(beyond)  # farther away by now, they would not hear of it
        self._spread.note_new_place(peer)
        return effects

    def _given_up_for(self, peer: NodeName) -> dict[NodeName, None]:
        """The dead neighbour that has led to this peer: with it there would be a cycle now. If that one returns to this
        broker, it joins here, and the peer hears (`Membership.on_neighbours`)."""
        network = self._network
        before = network.mom.first_hop(peer) if peer in network.mom else None
        if before not in network.down or any(each in network.up for each in network.peers):
            return {}
        stated = network.statements.get(peer)
        peer_may_join = stated is None or all(network.is_away(each) for each in stated.peers)
        return {} if peer_may_join and self._knowledge.name < peer else {before: None}

    def _are_others_away(self, peer: NodeName) -> bool:
        """Are there other neighbours, and none of them can be reached?"""
        network = self._network
        others = [each for each in network.peers if each != peer]
        return bool(others) and all(each in network.down for each in others)

    def on_doubted(self, source: NodeName) -> Sequence[Effect]:
        """All neighbours of the source are away. No answer: that cannot be told yet, and it asks again."""
        peers = self._network.peers
        is_open = self._are_others_away(source) and self._knowledge.name > source
        if is_open or source not in peers or source in self._given_up.values():
            return ()
        return (Send(source, JoinSettled(joined=len(peers) > 1)),)

    def on_settled(self, source: NodeName, settled: JoinSettled) -> Sequence[Effect]:
        """The answer of the broker that was asked, maybe late."""
        peers = self._network.peers
        if source != self._doubted:
            return ()
        self._doubted = None
        if not settled.joined or source not in peers or not self._are_others_away(source):
            return ()
        return self._take(source, [each for each in peers if each != source])

    def ask_again(self) -> list[Effect]:
        """The question or its answer may have been lost, or there was none."""
        network, asked = self._network, self._doubted
        if asked is None or asked not in network.up or asked not in network.peers:  # it may have refused the join
            return []
        return [Send(asked, JoinDoubted())] if self._are_others_away(asked) else []
