"""A machine that broke its contract: who, when, on which input, where in its code, and how to see it again.

Both runtimes end a run with the same `ProtocolError` when a machine raises, hands back what is no effect, or does not
come back.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple, Self

from murmur_pubsub.contract import ContractError, what_is_wrong
from murmur_pubsub.errors import RunError
from murmur_pubsub.machine import NodeName

_OURS = ("murmur_pubsub", "murmur_virtual", "actors", "murmuration")
_PROTOCOLS = ("routing", "reliability")
_WIDTH = 300


class Spot(NamedTuple):
    """A line of code that was being run."""

    module: str
    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}, in {self.function}"


class ProtocolError(RunError):
    """The run is over: a machine broke its contract. `time_us`: emulated time (None: it was being made). `input`: what
    it was handed, or was about. `what`: it did. `place`: where in its code. `replay`: how to see it again."""

    def __init__(
        self,
        node: NodeName,
        incarnation: int,
        time_us: int | None,
        input: str,
        what: str,
        place: str | None = None,
        replay: str = "",
    ) -> None:
        super().__init__(node, incarnation, time_us, input, what, place, replay)
        self.node = node
        self.incarnation = incarnation
        self.time_us = time_us
        self.input = input
        self.what = what
        self.place = place
        self.replay = replay

    def __str__(self) -> str:
        when = "" if self.time_us is None else f" at {self.time_us / 1e6:,.6f} s"
        lines = [f"the protocol of {self.node} (incarnation {self.incarnation}) {self.what}"]
        lines += [f"  {self.place}"] if self.place is not None else []
        lines += [f"  on {self.input}{when}"]
        lines += [f"  {self.replay}"] if self.replay else []
        return "\n".join(lines)

    def in_run(self, folder: Path, keeps_inputs: bool) -> Self:
        """The same, of a run in that folder: with the command that goes through the node's inputs again."""
        node = f"--node {self.node} --incarnation {self.incarnation}"
        scenario = folder / "scenario.yaml"
        again = f"murmur replay {folder} {node}"
        if not keeps_inputs and scenario.exists():
            first = f"murmur run {scenario} --keep-inputs --out {folder}-again"
            again = f"{first}, then murmur replay {folder}-again {node}"
        elif not keeps_inputs:
            again = f"start the cluster with keep_inputs=True, then {again}"
        replay = f"run folder: {folder}\n  again, step by step: {again}"
        return type(self)(self.node, self.incarnation, self.time_us, self.input, self.what, self.place, replay)


def protocol_error(
    node: NodeName, incarnation: int, time_us: int | None, input: object, error: BaseException, effects: object = ()
) -> ProtocolError:
    """What to say of a machine that raised, or whose effects could not be carried out. `input`: itself, or in words."""
    words = input if isinstance(input, str) else _cut(repr(input))
    spots = list(_spots_of(error))
    wrong = error if isinstance(error, ContractError) else what_is_wrong(effects)
    if wrong is not None:
        return ProtocolError(node, incarnation, time_us, words, str(wrong), _own_spot(spots))
    what = f"raised {type(error).__name__}: {_cut(str(error))}"
    return ProtocolError(node, incarnation, time_us, words, what, _own_spot(spots) or _last(spots))


def overdue_error(
    node: NodeName, incarnation: int, time_us: int, input: object, waited: str, at: BaseException | Sequence[FrameType]
) -> ProtocolError:
    """What to say of a machine that has not come back; `at`: what interrupted it, or its frames, the innermost last."""
    spots = list(_spots_of(at)) if isinstance(at, BaseException) else [_spot(each, each.f_lineno) for each in at]
    what = f"has not come back after {waited}"
    return ProtocolError(node, incarnation, time_us, _cut(repr(input)), what, _own_spot(spots) or _last(spots))


def unsettled_error(node: NodeName, incarnation: int, time_us: int, waited: str) -> ProtocolError:
    """What to say of a machine for which a whole run has waited."""
    what = f"has said for {waited} that a subscription is not in effect everywhere"
    return ProtocolError(node, incarnation, time_us, "the question whether it is settling", what)


def frames_below(innermost: FrameType, codes: frozenset[CodeType]) -> list[FrameType]:
    """The frames of a thread from the innermost one that runs one of these codes, inwards; none if none does."""
    found: list[FrameType] = []
    frame: FrameType | None = innermost
    while frame is not None:
        found.append(frame)
        if frame.f_code in codes:
            return found[::-1]
        frame = frame.f_back
    return []


def _spot(frame: FrameType, line: int) -> Spot:
    code = frame.f_code
    return Spot(frame.f_globals.get("__name__", ""), code.co_filename, line, code.co_qualname)


def _spots_of(error: BaseException) -> Iterator[Spot]:
    at = error.__traceback__
    while at is not None:
        yield _spot(at.tb_frame, at.tb_lineno)
        at = at.tb_next


def _own_spot(spots: list[Spot]) -> str | None:
    """The innermost line of a user's own code; without any, of a protocol that comes with murmur."""
    for wanted in (_is_own, _is_protocol):
        for spot in reversed(spots):
            if wanted(spot.module.partition(".")[0]):
                return str(spot)
    return None


def _is_own(package: str) -> bool:
    return package not in (*_OURS, *_PROTOCOLS) and package not in sys.stdlib_module_names


def _is_protocol(package: str) -> bool:
    return package in _PROTOCOLS


def _last(spots: list[Spot]) -> str | None:
    return str(spots[-1]) if spots else None


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"
