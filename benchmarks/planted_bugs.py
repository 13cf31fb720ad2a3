"""Bugs to be planted one at a time: each is a text of a protocol's source and what stands there instead.

`planted(bug)` puts the changed module in place of the right one, in a process that has not imported it yet.
"""

import importlib.util
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class PlantedBug(NamedTuple):
    """`pair`: whose schedules are to show it; `file`: of the source; `right` stands there once, `wrong` instead."""

    name: str
    pair: str
    file: str
    right: str
    wrong: str


_GRYPHON, _CELLS, _FORWARDING = "cells/gryphon", "cells/best_effort", "forwarding/best_effort"
_MULTIPATH, _IRBR, _VINIFERA = "multipath/best_effort", "irbr/best_effort", "vinifera/best_effort"
_EPIDEMIC = "forwarding/epidemic"

PLANTED_BUGS = (
    PlantedBug(
        "acknowledgements are not repeated", _GRYPHON, "reliability/gryphon/gryphon.py",
        "        stream.acked_up = -1  # what was acknowledged may have been lost\n", "",
    ),
    PlantedBug(
        "silence is told over a gap", _GRYPHON, "reliability/gryphon/streams.py",
        "                ostream.quiet_from = first\n            ostream.quiet_to = last\n",
        "            ostream.quiet_to = last\n",
    ),
    PlantedBug(
        "an older acknowledgement counts", _GRYPHON, "reliability/gryphon/streams.py",
        "ostream.acked = max(ostream.acked, tick)", "ostream.acked = tick",
    ),
    PlantedBug(
        "an epoch waits for one who is gone", _GRYPHON, "routing/cells/router.py",
        "        self._epochs.answered(peer)\n        return () if", "        return () if",
    ),
    PlantedBug(
        "a client is not told again", _GRYPHON, "reliability/gryphon/sessions.py",
        "for at in range(min(_AGAIN_AT_ONCE, self.outstanding))", "for at in range(1, min(2, self.outstanding))",
    ),
    PlantedBug(
        "a gap behind the last message is not asked for", _GRYPHON, "reliability/gryphon/subend.py",
        "        self._expected = max(self._expected, tick)\n        self._waiting.clear()",
        "        self._waiting.clear()",
    ),
    PlantedBug(
        "answers go to no branch that asked before", _GRYPHON, "reliability/gryphon/streams.py",
        "            curiosity.ask(*part)\n            self._asking = True\n", "            curiosity.ask(*part)\n",
    ),
    PlantedBug(
        "a change of filters is taken over a gap", _CELLS, "routing/cells/router.py",
        "self._tables.at(broker) != (incarnation, version - 1)", "self._tables.at(broker) >= (incarnation, version)",
    ),
    PlantedBug(
        "a new link hears of own filters only", _FORWARDING, "routing/forwarding.py",
        "            wanted.update(dict.fromkeys(received))\n        effects", "            pass\n        effects",
    ),
    PlantedBug(
        "filters behind a lost link stay wanted", _FORWARDING, "routing/forwarding.py",
        "            self._drop_entry(peer, wanted)\n            effects += self._withdraw(wanted, peer)\n",
        "            self._drop_entry(peer, wanted)\n",
    ),
    PlantedBug(
        "what a withdrawn filter covered stays hidden", _FORWARDING, "routing/forwarding.py",
        "covered += [self._entries[key] for key in self._index.covered_by(wanted)]", "pass",
    ),
    PlantedBug(
        "a neighbour that is back is not told", _MULTIPATH, "routing/multipath/membership.py",
        "return effects + self._tell_all(peer) + self._desk.tell(peer)", "return effects + self._desk.tell(peer)",
    ),
    PlantedBug(
        "what a broker asked for is never forgotten", _GRYPHON, "reliability/gryphon/streams.py",
        "        self.asked_up.grow_old()\n", "",
    ),
    PlantedBug(
        "what was answered counts as asked for still", _GRYPHON, "reliability/gryphon/streams.py",
        "            self.asked_up.answer(first, last)\n", "            pass\n",
    ),
    PlantedBug(
        "what is ahead waits for a client that is gone", _GRYPHON, "reliability/gryphon/gryphon.py",
        "        self._publishing.client_gone(client)\n", "",
    ),
    PlantedBug(
        "what was withdrawn stays in the log", "multipath/end_to_end/crossed", "reliability/end_to_end/end_to_end.py",
        "        return [*effects, *self._publishing.forget_done(self._now_us)]  # what was",
        "        return effects  # what was",
    ),
    PlantedBug(
        "what is ahead waits for a client of another broker", "cells/end_to_end/backups",
        "reliability/end_to_end/end_to_end.py",
        "            self._publishing.client_gone(client)\n", "            pass\n",
    ),
    PlantedBug(
        "a branch that has said nothing is not waited for", _GRYPHON, "reliability/gryphon/streams.py",
        "acked = [ostream.acked for branch, ostream in self.ostreams.items() if branch not in self._given_up]",
        "acked = [ostream.acked for ostream in self.ostreams.values() if ostream.acked >= 0]",
    ),
    PlantedBug(
        "a full receive cache keeps what was consumed", _GRYPHON, "reliability/gryphon/knowledge.py",
        "if self.keeps_oldest and self._order[0] >= self.consumed:", "if self.keeps_oldest:",
    ),
    PlantedBug(
        "what was logged counts as on its way into the log", _GRYPHON, "reliability/gryphon/publishing.py",
        "pubend, client = self._being_logged.pop(token)", "pubend, client = self._being_logged[token]",
    ),
    PlantedBug(
        "a dead neighbour whose link went stays a neighbour", _MULTIPATH, "routing/multipath/joining.py",
        "return {} if peer_may_join and self._knowledge.name < peer else {before: None}", "return {}",
    ),
    PlantedBug(
        "nobody founds the overlay anew", _IRBR, "routing/pastry/node.py",
        "anew = self._founding.turn()", "anew = self._founding.turn() and False",
    ),
    PlantedBug(
        "a representative's summary is not taken", _IRBR, "routing/irbr/router.py",
        "        for wanted in said:\n            self._put(cell, wanted)\n", "",
    ),
    PlantedBug(
        "parts that came apart do not look for each other", "scribe/best_effort", "routing/pastry/node.py",
        "if not (self._looks or self._rounds % _LOOK_EVERY == 0):", "if True:",
    ),
    PlantedBug(
        "who was taken for dead keeps its tracks", "rpf/best_effort", "routing/rpf/router.py",
        "effects.append(Send(change.peer.name, PathReleased(self.pastry.me.incarnation)))", "pass",
    ),
    PlantedBug(
        "a restart between two probes is missed", "rpf/best_effort", "routing/pastry/node.py",
        "return self._fail(known, quarantine=False)", "return []",
    ),
    PlantedBug(
        "what was lost is not installed again", _VINIFERA, "routing/smallworld/installation.py",
        "return [self._install(source, 0, self._uplinks.regions(source))]", "return []",
    ),
    PlantedBug(
        "parts of the ring do not look for each other", "ferry/best_effort", "routing/smallworld/overlay.py",
        "effects += self._seek() if self._seeking else self._look_beyond()", "effects += self._seek()",
    ),
    PlantedBug(
        "a broker behind a bridge does not pass on that it is back", _MULTIPATH, "routing/multipath/primary_network.py",
        "passed_by = (source, word.broker) if word.away else (source,)", "passed_by = (source, word.broker)",
    ),
    PlantedBug(
        "what a broken link was told stays told", _EPIDEMIC, "reliability/epidemic/subscription_table.py",
        "            entry.told.pop(peer, None)\n        lost =", "            pass\n        lost =",
    ),
    PlantedBug(
        "what is lost of a withdrawn pattern is sought on", _EPIDEMIC, "reliability/epidemic/loss_detection.py",
        "        self._lost.remove_pattern(pattern)\n", "",
    ),
    PlantedBug(
        "peers are forgotten over a restart", _IRBR, "routing/pastry/node.py",
        "self._founding.remembered = self._remembered.restore(input.records)", "pass",
    ),
    PlantedBug(
        "who gives up a dead neighbour tells nobody behind it", _MULTIPATH, "routing/multipath/joining.py",
        "        effects += network.tell_own_to(beyond)  # farther away by now, they would not hear of it\n", "",
    ),
    PlantedBug(
        "who a move brings counts as met though it is away", _MULTIPATH, "routing/multipath/primary_network.py",
        "        self.forget_meeting(peer)\n        return [Send(peer,",
        "        self.met[peer] = self.told[peer] = self.statements[peer].epoch\n        return [Send(peer,",
    ),
    PlantedBug(
        "a stranger is not asked what is behind a dead neighbour", _MULTIPATH, "routing/multipath/membership.py",
        "asked = [Send(source, TablesWanted())] if network.down else []", "asked: list[Effect] = []",
    ),
    PlantedBug(
        "a neighbour by a move that was restarted is told nothing", _MULTIPATH, "routing/multipath/membership.py",
        "            return effects + self._on_reachable(peer)\n        if peer not in",
        "            return effects\n        if peer not in",
    ),
    PlantedBug(
        "who was only held up is not told again what is wanted there", "rpf/best_effort", "routing/rpf/router.py",
        "PeerReturned: self._on_returned,", "PeerReturned: say_forgotten,",
    ),
    PlantedBug(
        "the log is cut at its checkpoint, needed or not", _GRYPHON, "reliability/gryphon/pubend_log.py",
        "Truncate(min(self._oldest, token))", "Truncate(token)",
    ),
)  # fmt: skip


def changed_source(bug: PlantedBug) -> str:
    """The source with the bug; raises `ValueError` if it does not fit the source any more."""
    source = (ROOT / bug.file).read_text()
    if source.count(bug.right) != 1:
        raise ValueError(f"{bug.name}: {bug.file} has {source.count(bug.right)} times {bug.right!r}, not once")
    return source.replace(bug.right, bug.wrong)


def fits(bug: PlantedBug) -> bool:
    """Can it still be planted?"""
    try:
        changed_source(bug)
    except ValueError:
        return False
    return True


def planted(bug: PlantedBug) -> None:
    """Put the changed module in its place."""
    name = bug.file.removesuffix(".py").replace("/", ".")
    source = changed_source(bug)
    assert name not in sys.modules, f"{name} is imported already"
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert name not in sys.modules, f"{name} is imported by its own package"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    exec(compile(source, bug.file, "exec"), module.__dict__)
    package, _, last = name.rpartition(".")
    setattr(sys.modules[package], last, module)
