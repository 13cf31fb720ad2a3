"""The last lesson: a router of one's own, written in the page, and tried on three runs."""

import importlib
import sys
import tempfile
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from murmur_pubsub.errors import InputError, RunError
from murmur_pubsub.protocol_error import ProtocolError
from murmuration.lessons.lesson_run import LessonRun

_MODULE = "own"
_INPUTS_MAX = 20_000
"""Inputs of machines; a router that does not flood takes two thousand."""
TITLE = "Your own router"
TASK = (
    "A router says to which neighbours an event goes from here. This one says to none: whoever wants one is at another "
    "broker, and gets nothing. Change the line that says so. It is tried on a chain, on a tree, and on the tree with a "
    "crash and a cut.",
    "Whoever sends an event back to where it came from floods. Asking what subscribers want saves messages.",
)
STARTER = '''from murmuration.protocol import Hop, LinkDown, LinkUp, NoParameters, Router, RoutingProtocol, RunsOn


class Own(Router):
    """The router of one broker."""

    def __init__(self, context, parameters):
        self._neighbours = {}

    def handle(self, input, now_us):
        if type(input) is LinkUp:
            self._neighbours[input.peer] = True
        elif type(input) is LinkDown:
            self._neighbours.pop(input.peer, None)
        return []

    def subscribe(self, wanted):
        return []

    def unsubscribe(self, wanted):
        return []

    def next_hops(self, event, came_from, header):
        return []  # here


OWN = RoutingProtocol(name="own", make=Own, parameters=NoParameters, runs_on=RunsOn.ACYCLIC)
'''


class Trial(NamedTuple):
    """A run that the router is tried on."""

    title: str
    keys: Mapping[str, Any]


def _keys(overlay: Mapping[str, Any], workload: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "name": "own",
        "seed": 1,
        "overlay": overlay,
        "workload": {"kind": "paced", "seconds": 4, **workload},
        "broker": {"routing": f"{_MODULE}:OWN"},
        "links": {"delay": "5 ms"},
        "failure_detection": {"heartbeat": "100 ms", "timeout": "500 ms", "reconnect": "50 ms"},
        "drain": {"quiet": "200 ms", "limit": "2 s"},
        **more,
    }


_CHAIN = _keys({"kind": "chain", "brokers": 5}, {"publishers": {"b0": 1}, "subscribers": {"b4": 1}, "rate_per_s": 10})
_SPREAD: Mapping[str, Any] = {
    "publishers": {"b0": 1, "b3": 1, "b6": 1},
    "subscribers": {"b1": 2, "b4": 2, "b7": 2},
    "rate_per_s": 5,
}
_TREE: Mapping[str, Any] = {"kind": "random", "brokers": 8}
TRIALS = (
    Trial("a chain, one publisher and one who wants all of it", _CHAIN),
    Trial("a tree, three publishers, six who want a part of one's events", _keys(_TREE, {**_SPREAD, "share": 0.5})),
    Trial(
        "the same tree, with a crash and a cut that are mended",
        _keys(
            _TREE,
            _SPREAD,
            faults=[{"at": "1 s", "kill": "b2", "for": "500 ms"}, {"at": "2 s", "cut": ["b0", "b1"], "for": "500 ms"}],
        ),
    ),
)


class Tried(NamedTuple):
    """What became of a trial. `trouble`: why the router's run did not come to its end, or "". `saved`: the run as a
    scenario, to be played beside the router as own.py; `hash`: that of its journal."""

    title: str
    verdict: str
    reason: str
    inputs: int
    trouble: str
    saved: str
    hash: str


def try_router(code: str, number: int) -> Tried:
    """Play a trial with the router of this code; whatever the code does wrong is said in words."""
    trial = TRIALS[number]
    with tempfile.TemporaryDirectory() as folder:
        own = Path(folder) / f"{_MODULE}.py"
        own.write_text(code, encoding="utf-8")
        sys.path.insert(0, folder)
        sys.modules.pop(_MODULE, None)  # a run of a saved scenario may have left another one
        importlib.invalidate_caches()
        try:
            run = LessonRun(trial.keys, Path(folder) / "run", inputs_max=_INPUTS_MAX)
            run.play_on()
            numbers = run.judgement().numbers
            verdict, reason = numbers["verdict"], numbers["reason"]
            return Tried(trial.title, verdict, reason, run.inputs, "", run.saved(), run.journal_hash())
        except Exception as error:  # of any kind: it is somebody's first router
            return Tried(trial.title, "", "", 0, _in_words(error, own).replace(f"{folder}/", ""), "", "")
        finally:
            sys.path.remove(folder)
            sys.modules.pop(_MODULE, None)


def _in_words(error: Exception, own: Path) -> str:
    """What is wrong, and at which line of the router."""
    if isinstance(error, ProtocolError):
        return "\n".join(str(error).splitlines()[:3])  # what follows is about a run folder
    if isinstance(error, InputError | RunError | SyntaxError):
        return str(error)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(own)]
    return f"{type(error).__name__}{f' in line {lines[-1]}' if lines else ''}: {error}"
