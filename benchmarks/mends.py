"""Mends of promises that were broken once, each to be taken out again as a bug is planted.

`promise` is how the row in docs/promises.md begins that says what had happened.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from benchmarks.planted_bugs import PLANTED_BUGS, PlantedBug


class Narrowed(NamedTuple):
    """A part of the schedules of a pair, for a mend that few of all schedules need."""

    words: str
    parameters: Mapping[str, Mapping[str, object]] = MappingProxyType({})
    """Those that each schedule has."""
    fields: Mapping[str, Any] = MappingProxyType({})
    """Of `murmuration.hunt.space.ScheduleSpace`."""


class Mend(NamedTuple):
    """`without`: the source as it is without the mend.

    unpromised: the finding (such as "missing") that a schedule has without the mend, and not once with it, where a
    fault excuses it. among: the schedules that are played (by default all of the pair). asked: dotted paths of
    properties that hold of each run with the mend. drawn_test: that of `benchmarks.drawn_tests` is played in place of
    schedules. known: the seed with which schedules had found the fault; it is played first.
    """

    promise: str
    without: PlantedBug
    unpromised: str = ""
    among: Narrowed = Narrowed("")
    asked: tuple[str, ...] = ()
    drawn_test: str = ""
    known: int | None = None


def _push(**more: object) -> Mapping[str, Mapping[str, object]]:
    return {"epidemic": {"algorithm": "push", **more}}


_RESTS, _KEEPS_NOTHING = "murmuration.hunt.properties:RESTS", "benchmarks.rest:KEEPS_NOTHING"
_TWO_DEATHS = "moves that end with two deaths"
_ALREADY = {each.name: each for each in PLANTED_BUGS}
_GRYPHON, _DURABLE, _EPIDEMIC = "cells/gryphon", "cells/durable", "forwarding/epidemic"
_MULTIPATH, _END_TO_END, _BACKUPS = "multipath/best_effort", "multipath/end_to_end", "multipath/end_to_end/backups"
_SCRIBE, _RPF, _IRBR, _VINIFERA = (f"{each}/best_effort" for each in ("scribe", "rpf", "irbr", "vinifera"))

MENDS = (
    Mend("In the paper's own overlay", PlantedBug(
        "brokers of cells do not pass on which links are up", _GRYPHON, "routing/cells/link_states.py",
        "        return self._take(state, source)", "        return []",
    )),
    Mend("With b1–p1 and b2–s1 cut", PlantedBug(
        "acknowledgements go to the broker whose turn it is", _GRYPHON, "reliability/gryphon/acknowledging.py",
        "for path in router.ways(branch):", "for path in filter(None, [router.way(branch, 0)]):",
    )),
    Mend("For a broker that never returned", PlantedBug(
        "a forgotten broker holds up what is acknowledged", _GRYPHON, "reliability/gryphon/giving_up.py",
        "        self.branches |= self._router.given_up\n", "",
    ), among=Narrowed(
        "kills and orders", fields={"kinds": ("kill", "order"), "clients_fail": False},
    ), asked=("benchmarks.rest:RESTS_IN_THE_END",)),
    Mend("A broker with subscribers whose cache was full", _ALREADY["a full receive cache keeps what was consumed"]),
    Mend("A broker of a cell missed an acknowledgement", PlantedBug(
        "a broker of a cell does not ask whether what it keeps was received", _GRYPHON,
        "reliability/gryphon/ack_expected.py", "        if last == before:\n", "        if last == before < 0:\n",
    ), asked=(_KEEPS_NOTHING,)),
    Mend("Under a total order a message that was for nobody", PlantedBug(
        "AckExpected asks the stream that it is about, and no other", _GRYPHON, "reliability/gryphon/merge.py",
        "        self._expected = max(self._expected, tick)\n", "        pass\n",
    ), among=Narrowed("a total order", {"gryphon": {"order": "total"}}), asked=(_RESTS,)),
    Mend(
        "Under a total order a broker lost again", _ALREADY["what was answered counts as asked for still"],
        among=Narrowed(
            "a total order, small caches, kills and cuts",
            {"gryphon": {"order": "total", "gct": "50 ms", "cache": 5, "receive_cache": 20}},
            {"kinds": ("kill", "cut")},
        ),
    ),
    Mend("What a publisher had submitted ahead", _ALREADY["what is ahead waits for a client that is gone"]),
    Mend(
        "What a client of another broker had submitted ahead",
        _ALREADY["what is ahead waits for a client of another broker"],
    ),
    Mend("What was kept for a client alone, and withdrawn", _ALREADY["what was withdrawn stays in the log"]),
    Mend("A cached event could be pushed only", PlantedBug(
        "patterns are looked up when an event is cached, and no more", _EPIDEMIC, "reliability/epidemic/push.py",
        "            here.cache.index(pattern, here.table.pattern(pattern))\n", "",
    ), unpromised="missing", among=Narrowed(
        "push that forgets a pattern at once, cuts", _push(linger="0 ms"), {"kinds": ("cut",)},
    )),
    Mend("Push did not wake when a link came up", PlantedBug(
        "a link that comes up wakes nobody", _EPIDEMIC, "reliability/epidemic/epidemic.py",
        "return [*self._table.on_link_up(input.peer), *self._on_link_made(None, now_us)]",
        "return self._table.on_link_up(input.peer)",
    ), drawn_test="mended trees"),
    Mend("A new subscriber got events from before", PlantedBug(
        "what is recovered goes to all subscribers of now", _EPIDEMIC, "reliability/epidemic/epidemic.py",
        "effects = self._services.notify(event, hops, until=event.time_us)",
        "effects = self._services.notify(event, hops)",
    ), unpromised="spurious", among=Narrowed("push, cuts", _push(), {"kinds": ("cut",)})),
    Mend("A round of soft links that ended within", PlantedBug(
        "a candidate stays one beside a primary link", _MULTIPATH, "routing/multipath/view.py",
        "            candidates = [peer for peer in candidates if peer not in real]\n", "",
    ), drawn_test="moves"),
    Mend("Two brokers in a row away", PlantedBug(
        "only those next to a broker that is away bridge it", _MULTIPATH, "routing/multipath/primary_network.py",
        "                    yield from self.bridges(child)\n                else:\n                    yield child,",
        "                    continue\n                else:\n                    yield child,",
    ), unpromised="missing", among=Narrowed("kills of brokers on a chain", fields={
        "kinds": ("kill",), "overlays": ("chain",), "clients_fail": False,
    })),
    Mend("A mover that died", PlantedBug(
        "a mover that is away is waited for", _MULTIPATH, "routing/multipath/moves.py",
        "            return self._mover_gone(zone, None)\n        if broker",
        "            return []\n        if broker",
    ), drawn_test="movers that leave"),
    Mend("A mover and the neighbour that it left died together", PlantedBug(
        "a word that was worked out from a move is no news", _MULTIPATH, "routing/multipath/membership.py",
        "nearer = network.is_nearer(stated.broker, stated.hops)", "nearer = False",
    ), drawn_test=_TWO_DEATHS),
    Mend("Just after its move was made a mover died", PlantedBug(
        "a link over which a circle was closed may join", _MULTIPATH, "routing/multipath/membership.py",
        "            network.left[stated.broker] = None  # should the link come up after all, that is no join\n", "",
    ), drawn_test=_TWO_DEATHS),
    Mend("Just after its move was made a mover died", PlantedBug(
        "a source that has moved away closes a circle", _MULTIPATH, "routing/multipath/membership.py",
        "both = {stated.broker, self._knowledge.name}", "both = {stated.broker}",
    ), drawn_test=_TWO_DEATHS),
    Mend("Just after its move was made a mover died", PlantedBug(
        "a mover in doubt tells all what its destination tells", _MULTIPATH,
        "routing/multipath/subscription_spread.py",
        "left = pending.neighbour if pending is not None and source == pending.destination else None", "left = None",
    ), drawn_test=_TWO_DEATHS),
    Mend("Just after its move was made a mover died", PlantedBug(
        "who has been met is met no more when it turns out a neighbour", _MULTIPATH,
        "routing/multipath/primary_network.py",
        "            self.forget_meeting(peer)  # it may have been met as one that is no neighbour\n", "",
    ), drawn_test="moves to a destination that dies"),
    Mend("A mover was cut off while its move was made", PlantedBug(
        "a mover that is back may not be passed by", _BACKUPS, "routing/multipath/moves.py",
        "if zone is None or zone.gone or self", "if zone is None or self",
    ), known=2_902_054),
    Mend("A broker that was away at the end of a move", PlantedBug(
        "copies after a move do not say that it was made", _MULTIPATH, "routing/multipath/moves.py",
        "        self.mark = (self._over,)\n", "",
    ), known=2_001_180),
    Mend("An order that could not be carried out", PlantedBug(
        "a move that cannot be made raises", _MULTIPATH, "routing/multipath/mover.py",
        "        except InputError as error:\n            return _refused(order, str(error))\n",
        "        finally:\n            pass\n",
    )),
    Mend(
        "A broker whose link to a dead neighbour",
        _ALREADY["a dead neighbour whose link went stays a neighbour"],
        among=Narrowed(
            "kills of brokers, links that go and come", fields={"kinds": ("kill", "rewire"), "clients_fail": False}
        ),
    ),
    Mend("A broker joined beyond its map", PlantedBug(
        "who joins beyond its map does not ask whether it has", _MULTIPATH, "routing/multipath/joining.py",
        "        if is_far and self._are_others_away(peer):\n", "        if False:\n",
    ), known=3_400_896),
    Mend("While two brokers had different maps", PlantedBug(
        "a delegate sends past its borders", "multipath_delegation/best_effort", "routing/multipath/delegation.py",
        "self._wst.anchors_of(origins) & ~self.wom.past(borders)\n", "self._wst.anchors_of(origins)\n",
    ), known=3_400_896),
    Mend("A partition swallowed the word", PlantedBug(
        "a witness's word is told once", _MULTIPATH, "routing/multipath/membership.py",
        "        effects += network.untaken_words()\n", "",
    ), drawn_test="witnesses' words that are lost"),
    Mend("Scribe's parents stood in a circle", PlantedBug(
        "a parent stays one when the next hop is another", _SCRIBE, "routing/scribe/router.py",
        "not self.pastry.joined or hop == self.parent", "not self.pastry.joined or self.parent is not None",
    ), drawn_test="chaos of scribe"),
    Mend("With leaf sets of 4 and clustered identifiers", PlantedBug(
        "no round asks for a row", _RPF, "routing/pastry/node.py",
        "self.peers.row_to_ask_for(self._rounds)", "{}",
    ), drawn_test="chaos of rpf, crowded"),
    Mend(
        "A Scribe or RPF broker that was stalled",
        _ALREADY["who was only held up is not told again what is wanted there"],
        among=Narrowed("stalls and partitions", fields={"kinds": ("stall", "partition"), "clients_fail": False}),
    ),
    Mend("Two Vinifera nodes that moved to one identifier", PlantedBug(
        "two nodes keep one identifier", _VINIFERA, "routing/smallworld/overlay.py",
        "            effects += self._give_way()\n", "            pass\n",
    ), drawn_test="two nodes that move to one identifier"),
    Mend("A partition left two brokers on one side", PlantedBug(
        "peers that were heard of are not remembered", _RPF, "routing/pastry/node.py",
        "            self._remembered.heard_of(name)\n", "",
    ), known=1_406_629),
    Mend("A node's search for others near its own place", PlantedBug(
        "a leaf that is passed by counts for the reach", "irbr/end_to_end", "routing/pastry/leaf_set.py",
        "        if besides in self._members:\n", "        if False:\n",
    ), known=2_000_427),
    Mend("Where datagrams overtake each other", PlantedBug(
        "a cancellation undoes what was asked for since", _IRBR, "routing/irbr/filter_table.py",
        "        if -1 < self._asked.number(wide, wanted, subscriber) < number:\n",
        "        if self._asked.number(wide, wanted, subscriber) > -1:\n",
    ), drawn_test="changing filters of irbr"),
    Mend("Nodes of one range that withdraw and ask", PlantedBug(
        "who goes on after a cancellation relies on a neighbour that does the same", _IRBR, "routing/irbr/router.py",
        "                if length in covered_at:\n                    break\n",
        "            if length in covered_at:\n                break\n",
    ), drawn_test="changing filters of irbr"),
    Mend("Nodes of one range that withdraw and ask", PlantedBug(
        "a subscription counts though its cancellation has overtaken it", _IRBR, "routing/irbr/filter_table.py",
        "        if self._withdrawn.number(wide, wanted, subscriber) > number:\n", "        if False:\n",
    ), drawn_test="changing filters of irbr"),
    Mend("Nodes of one range that withdraw and ask", PlantedBug(
        "who cancels is believed to know what was asked for since", _IRBR, "routing/irbr/router.py",
        "if not self._may_be_past(each, gone.length)]", "]",
    ), drawn_test="changing filters of irbr"),
    Mend("Nodes of one range that withdraw and ask", PlantedBug(
        "an entry that a cancellation left is relied on", _IRBR, "routing/irbr/filter_table.py",
        "            if subscriber not in lately[wanted] and self.holds(wide, wanted):\n", "            if False:\n",
    ), drawn_test="changing filters of irbr"),
    Mend("Where datagrams overtake each other", PlantedBug(
        "a heartbeat that was overtaken counts", _VINIFERA, "routing/smallworld/overlay.py",
        "        if self.contacts.is_overtaken(source, said):\n            return []\n", "",
    ), drawn_test="moves beside heartbeats"),
    Mend("An event overtook what the former owner", PlantedBug(
        "who is taken for the owner of a range delivers alone", _VINIFERA, "routing/smallworld/rendezvous.py",
        "            if former is not None and (is_first or former != came_from):\n", "            if False:\n",
    ), drawn_test="events beside moves"),
    Mend("A Vinifera node that had just moved", PlantedBug(
        "what goes back goes by where those are that have moved", _VINIFERA, "routing/smallworld/rendezvous.py",
        "            moved = self._moved_lately()\n", "            moved: dict[NodeName, int] = {}\n",
    ), drawn_test="events of two that jump"),
    Mend("A Vinifera node knew old profiles", PlantedBug(
        "hearsay of a neighbour that was heard since is not looked at", _VINIFERA, "routing/smallworld/neighbours.py",
        "entry[0].revision < revision:\n", "False:\n",
    ), drawn_test="changing profiles"),
    Mend("A publishers' broker that restarted forgot what it owed", PlantedBug(
        "each record in the log counts from where it stands", _DURABLE, "reliability/durable/log.py",
        "                if self._checkpoints_left:\n", "                if False:\n",
    ), among=Narrowed(
        "checkpoints after 5 records, kills and moves of clients", {"durable": {"checkpoint": 5}},
        {"kinds": ("kill", "move")},
    )),
    Mend("A client got nothing more from a pubend", PlantedBug(
        "of two steps to one tick the first holds", _DURABLE, "reliability/durable/catching_up.py",
        "(former is None or step.after < former.after)", "former is None",
    ), known=1_601_329),
    Mend("A subscriber got what it had withdrawn", PlantedBug(
        "a client delivers what it has withdrawn", _DURABLE, "reliability/durable/client.py",
        "if not self._withdrew.isdisjoint(message.subscribers):", "if False:",
    ), known=1_600_944),
    Mend("A publishers' broker that restarted did not hear again", PlantedBug(
        "what clients have is told once", _DURABLE, "reliability/durable/holders.py",
        "        if incarnation <= self._lives.get(root, 0):\n", "        if True:\n",
    ), among=Narrowed("kills of brokers", fields={"kinds": ("kill",), "clients_fail": False}), asked=(_KEEPS_NOTHING,)),
    Mend("A client that left a broker and was back", PlantedBug(
        "an answer for an earlier stay counts", _DURABLE, "reliability/durable/holders.py",
        " or message.asked < holder.since", "",
    ), known=2_704_438),
    Mend("With a `lease` as long as `aet`", PlantedBug(
        "a lease has nobody asked sooner", _DURABLE, "reliability/durable/parameters.py",
        "        if self.lease is None:\n            return within", "        if True:\n            return within",
    ), known=2_807_695),
    Mend("A client withdrew all that it had asked for", PlantedBug(
        "a broker without subscriptions notes nothing", f"{_DURABLE}/varied", "reliability/durable/durable.py",
        "super()._heeded or bool(self._holders.of)", "super()._heeded",
    ), asked=(_RESTS,), known=58),
    Mend("What was matched before a subscription began", PlantedBug(
        "a revision begins unnoticed", _DURABLE, "reliability/durable/holders.py",
        "        holder.begins = {number: None for number, stream in holder.streams.items() if stream.live}\n",
        "        holder.begins = {}\n",
    ), asked=(_KEEPS_NOTHING,)),
    Mend("A client had been told what was given up", PlantedBug(
        "nobody hears that a client was told what was given up", _END_TO_END, "reliability/end_to_end/holders.py",
        "            holder.has[message.pubend] = message.tick\n",
        "            if type(message) is DurableHanded:\n                holder.has[message.pubend] = message.tick\n",
    ), asked=(_RESTS,)),
    Mend("A broker that was to say itself what its client had", PlantedBug(
        "what a broker tells itself is told once", _BACKUPS, "reliability/end_to_end/holders.py",
        "            self._tell_at(holder, again_us)\n",
        "            if effects:\n                self._tell_at(holder, again_us)\n",
    ), known=3_207_870, asked=(_RESTS,)),
    Mend("A pubend that had met a client's full window", PlantedBug(
        "who has room again waits for its turn", _END_TO_END, "reliability/end_to_end/holders.py",
        "                    chain.due_us = now_us\n", "                    pass\n",
    ), known=1_703_725),
    Mend("A broker was forgotten while it was cut off", PlantedBug(
        "who was forgotten and is there asks for nothing", _DURABLE, "routing/cells/router.py",
        "return effects if self._observer is None else [*effects, *self._observer.on_forgotten()]", "return effects",
    ), among=Narrowed("a log of 16 messages", {"durable": {"log_most": 16}}), known=20_000_059),
    Mend("In virtual time, a link that was cut", PlantedBug(
        "what was to happen to a link happens to the next one", "forwarding/best_effort",
        "murmur_virtual/virtual_links.py",
        "        return self._wires.get(link_key(*wire.ends), wire) is wire\n", "        return True\n",
    ), known=2_001_465),
)  # fmt: skip

NO_SCHEDULE = {
    "With 30 % of loss on five links": "all arrives without the mend too, minutes later",
    "With a `dct` below `drain.quiet`": "only varied schedules draw a `dct`, and one that is longer",
    "A new message after a restart with a clock": "in virtual time no clock goes back",
    "On a structured overlay the judge took brokers": "the judge excused too much, and no schedule can show that",
    "Two parts of a broker could not both store": "there was no protocol with two such parts",
    "An integer past 64 bits": "schedules publish only what an event may have",
    "A protocol that raised in virtual time": "it takes a protocol with such a fault",
    "On Ray, what a broker sent as it started": "registered protocols say again what they have said first",
    "An actor that died by itself": "it takes an actor of Ray",
    "A broker with a pubend that restarted": "who is reminded says what it has, too",
    "A broker of a redundant pubend asked to serve alone": "what is missing then, a second fault excuses",
    "A broker that had lost its disk would have": "no word is on its way for longer than a broker is away",
    "A broker died with its disk, a link of it was taken away": "only a guided hunt has shown it",
    "A client that had withdrawn all came to a broker": "only a guided hunt has shown it",
    "Where 5 % of all datagrams were lost": "the few brokers of a schedule lose too few heartbeats",
    "Where clients went on changing what they want": "no schedule goes on for half a minute",
    "One client asked for `x > 5`": "brokers of one process share what they work out of a filter",
    "Without a declared domain Vinifera's hash": "schedules publish no numbers that are so close",
    "In virtual time with `datagrams`, a broker got messages": "registered protocols bear that",
    "In virtual time, a cut whose one end was down": "what is cut off is marked since, and datagrams are not",
    "On Ray, where nodes share an actor": "it takes an actor of Ray, and several nodes in it",
    "A message that a client's link had lost": "the judge does not ask how late a message came",
    "A publishers' broker that had lost its disk never": "the judge excuses what a lost disk may have taken with it",
    "Two brokers of a redundant pubend had lost both logs": "only a guided hunt has shown it",
    "A broker of multipath was dead, and the one behind it": "only a hunt of varied schedules has shown it",
    "A publishers' broker that restarted heard from a client": "only a guided hunt has shown it",
    "Who was cut off when a publishers' broker began": "the judge allows for who has to be told again",
    "A publishers' broker that was restarted kept in its log": "only a guided hunt has shown it",
    "A client's link carried 500 messages a second": "only a guided hunt has shown it",
    "To withdraw one of two filters": "virtual time does not count what a broker computes",
}
"""How the other rows begin, and why no random schedule in virtual time finds them."""
