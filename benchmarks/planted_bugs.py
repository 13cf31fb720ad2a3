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


_GRYPHON, _CELLS, _FORWARDING, _MULTIPATH = (
    "cells/gryphon",
    "cells/best_effort",
    "forwarding/best_effort",
    "multipath/best_effort",
)

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
        "logged silence is forgotten", _GRYPHON, "reliability/gryphon/pubend.py",
        "        self.last = max(self.last, tick)\n", "",
    ),
    PlantedBug(
        "an epoch counts one too early", _GRYPHON, "routing/cells/epochs.py",
        "self._complete.get(root, -1) >= stamp", "self._complete.get(root, -1) >= stamp - 1",
    ),
    PlantedBug(
        "a restarted root trusts its tables", _GRYPHON, "routing/cells/router.py",
        "table is None or (table.heard.get(self.me, 0) != self.incarnation and not table.forgotten)", "table is None",
    ),
    PlantedBug(
        "an epoch waits for one who is gone", _GRYPHON, "routing/cells/router.py",
        "            self._epochs.answered(input.peer)\n            return [*told", "            return [*told",
    ),
    PlantedBug(
        "links of an earlier life count", _GRYPHON, "routing/cells/link_states.py",
        "known[1:3] >= state[1:3]", "known[2] >= state[2]",
    ),
    PlantedBug(
        "a client is not told again", _GRYPHON, "reliability/gryphon/sessions.py",
        "for at in range(min(_AGAIN_AT_ONCE, self.outstanding))", "for at in range(1, min(2, self.outstanding))",
    ),
    PlantedBug(
        "a resubmission is not answered", _GRYPHON, "reliability/gryphon/publishing.py",
        "                self._to_accept[event.source] = client\n            return []",
        "                pass\n            return []",
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
        "epochs are not told again", _CELLS, "routing/cells/router.py",
        "if known.epoch > message.epochs.get(root, -1) and root != source:", "if known.epoch < 0:",
    ),
    PlantedBug(
        "whole tables are not passed on", _CELLS, "routing/cells/router.py",
        "        effects = self._spread(message, source)\n        return effects if",
        "        effects: Sequence[Effect] = ()\n        return effects if",
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
        "a restart that no link told of is missed", _MULTIPATH, "routing/multipath/membership.py",
        "effects = [] if known < 0 else self.on_unreachable(peer)  # it was, unnoticed", "effects: list[Effect] = []",
    ),
    PlantedBug(
        "tables do not cross a bridge", _MULTIPATH, "routing/multipath/membership.py",
        "                    effects += self._tell_all(behind, distance)\n", "",
    ),
    PlantedBug(
        "a new incarnation beyond a bridge is told nothing", _MULTIPATH, "routing/multipath/membership.py",
        "return [] if known < 0 else self._tell_all(peer, network.mom.distances[peer])", "return []",
    ),
    PlantedBug(
        "a neighbour that is back is not told", _MULTIPATH, "routing/multipath/membership.py",
        "return effects + self._tell_all(peer) + self._desk.tell(peer)", "return effects + self._desk.tell(peer)",
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
