"""Soft and candidate links, and the rounds in which they are kept, promoted and discarded (section 6).

A candidate link is a stub in the working map: it is credited with the publications that would go over it, while they
are funnelled over a real link to a broker before it. In each round all links are ranked by gain; the best become or
stay soft links, as far as the fanout allows, the others are discarded and left alone for a while. New candidates are
the neighbours, one hop farther out, of links over which much is sent.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from murmur_pubsub.machine import NodeName
from routing.multipath.load import Loads
from routing.multipath.overlay_maps import MasterOverlayMap
from routing.multipath.parameters import MultipathParameters


@dataclass(slots=True)
class RoundResult:
    """What a round decided: candidates to open soft links to, and whether the working map must be made anew."""

    promoted: list[NodeName] = field(default_factory=list)
    changed: bool = False


class SoftLinks:
    """The non-primary links of one broker.

    `soft`: in use. `opening`: promoted candidates whose request is not answered yet; candidates for all else.
    `sent`: publications over each link, primary ones too, since the last round. `silent`: soft links that did not
    answer since the last round. Candidates are chosen at the end of a round, so each is profiled for a whole one.
    """

    def __init__(self, parameters: MultipathParameters) -> None:
        self._parameters = parameters
        self.soft: dict[NodeName, None] = {}
        self.opening: dict[NodeName, None] = {}
        self.candidates: dict[NodeName, None] = {}
        self.sent: dict[NodeName, int] = {}
        self.silent: dict[NodeName, None] = {}
        self._cooling: dict[NodeName, int] = {}
        self._round = 0

    def gain(self, broker: NodeName, sent: int, mom: MasterOverlayMap, loads: Loads) -> float:
        """gain(N): publications sent, times brokers bypassed, times the load scaling factor."""
        return sent * (mom.distances[broker] - 1) * loads.scaling_factor(mom.path(broker)[:-1])

    def accepted(self, peer: NodeName) -> bool:
        """The peer has answered; True if a new soft link stands."""
        self.silent.pop(peer, None)
        if peer not in self.opening:
            return False
        del self.opening[peer], self.candidates[peer]
        self.soft[peer] = None
        return True

    def bridge(self, peer: NodeName) -> bool:
        """Use a soft link to the peer from now on, whatever the gains; True if it is new."""
        self.candidates.pop(peer, None)
        self.opening.pop(peer, None)
        known = peer in self.soft
        self.soft[peer] = None
        return not known

    def drop(self, peer: NodeName) -> bool:
        """Give the link up and leave it alone for a while; True if there was one."""
        known = peer in self.soft or peer in self.candidates
        for links in (self.soft, self.opening, self.candidates, self.silent):
            links.pop(peer, None)
        if known:
            self._cooling[peer] = self._round + self._parameters.cool_down_rounds
        return known

    def drop_where(self, unwanted: Callable[[NodeName], bool]) -> bool:
        """Give up all links to such peers; True if there was one."""
        dropped = [peer for peer in (*self.soft, *self.candidates) if unwanted(peer)]
        for peer in dropped:
            self.drop(peer)
        return bool(dropped)

    def trim(self, degree: int, protected: Mapping[NodeName, None]) -> bool:
        """Keep to the fanout when the degree has grown: the links with the least traffic go; True if one went."""
        excess = degree + len(self.soft) - self._parameters.fanout
        losers = sorted((peer for peer in self.soft if peer not in protected), key=lambda peer: self.sent.get(peer, 0))
        for peer in losers[: max(0, excess)]:
            self.drop(peer)
        return excess > 0 and bool(losers)

    def end_round(
        self,
        mom: MasterOverlayMap,
        primary: Mapping[NodeName, None],
        loads: Loads,
        protected: Mapping[NodeName, None],
        allowed: Callable[[NodeName], bool],
    ) -> RoundResult:
        """Rank, keep, discard and choose anew. `protected`: soft links that bridge a broker which is away.
        `allowed`: may there be a link to this broker?"""
        self._round += 1
        result = RoundResult()
        for peer in [*self.silent, *self.opening]:
            if peer not in protected:  # those are watched more closely (`routing.multipath.watch`)
                result.changed |= self.drop(peer)  # it has had a whole round to answer
        gains = {peer: self.gain(peer, self.sent.get(peer, 0), mom, loads) for peer in (*self.soft, *self.candidates)}
        slots = self._parameters.fanout - len(primary) - len(protected)
        for peer in sorted(gains, key=gains.__getitem__, reverse=True):
            if peer in protected:
                continue
            if peer in self.soft:
                if slots > 0:
                    slots -= 1
                else:
                    result.changed |= self.drop(peer)
            elif gains[peer] > 0 and slots > 0:
                slots -= 1
                self.opening[peer] = None
                result.promoted.append(peer)
            else:
                result.changed |= self.drop(peer)
        result.changed |= self._choose_candidates(mom, primary, loads, allowed)
        self.silent = dict(self.soft)
        self.sent = {}
        return result

    def _choose_candidates(
        self,
        mom: MasterOverlayMap,
        primary: Mapping[NodeName, None],
        loads: Loads,
        allowed: Callable[[NodeName], bool],
    ) -> bool:
        free = self._parameters.maxlinks - self._parameters.fanout - len(self.candidates) + len(self.opening)
        hopes: dict[NodeName, float] = {}
        for link in (*primary, *self.soft, *self.candidates):
            sent = self.sent.get(link, 0)
            if not sent or link not in mom:
                continue
            for child in mom.children(link):
                if child in self.soft or child in self.candidates or not allowed(child):
                    continue
                if self._cooling.get(child, 0) > self._round:
                    continue
                # What it would gain if all that goes to its neighbour were for it, more if the way there is slow.
                hopes[child] = self.gain(child, sent, mom, loads) * loads.slowness(mom.path(child))
        for child in sorted(hopes, key=hopes.__getitem__, reverse=True)[: max(0, free)]:
            self.candidates[child] = None
        return free > 0 and bool(hopes)

    def check_invariants(self, degree: int, protected: int) -> None:
        assert not self.soft.keys() & self.candidates.keys()
        assert self.opening.keys() <= self.candidates.keys()
        assert degree + len(self.soft) <= max(self._parameters.fanout, degree + protected)
        assert len(self.candidates) <= self._parameters.maxlinks - self._parameters.fanout + len(self.opening)
