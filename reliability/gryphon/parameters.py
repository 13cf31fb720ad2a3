"""The thresholds of guaranteed delivery, by the paper's names, and where the pubends are.

The paper's values are not in the text we have, but for DCT, which its failure tests set to infinity; the others are
ours, near those of a product that came out of it (docs/protocols/gryphon.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from murmur_pubsub.errors import InputError


@dataclass(frozen=True, slots=True)
class GryphonParameters:
    """Times in milliseconds (ticks).

    gct: gap curiosity threshold, how long a gap may heal by itself. dct: delay curiosity threshold (None: infinite).
    nrt: nack repetition threshold; each repetition waits twice as long, up to `nrt_most`. aet: ack expected threshold,
    the same with `aet_most`. sit: silence interval. ack_delay: acknowledgements gather so long. forgetting: curiosity
    is forgotten after once to twice that. nack_chunk: the longest range of one nack. cache: messages of a pubend that
    an intermediate broker keeps; receive_cache: that a subscribers' broker keeps. window: messages of a session that a
    client has not handed back, before its broker waits for it. resend: when client and broker repeat what the other
    has not acknowledged. checkpoint: log records that must be done with before the log is cut. pubends: how many the
    brokers named have, or their names (empty: one at each broker that takes clients).
    """

    gct: int = 200
    dct: int | None = None
    nrt: int = 1_000
    nrt_most: int = 2_000
    aet: int = 3_000
    aet_most: int = 6_000
    sit: int = 500
    ack_delay: int = 200
    forgetting: int = 500
    nack_chunk: int = 500
    cache: int = 1_000
    receive_cache: int = 5_000
    window: int = 1_000
    resend: int = 500
    checkpoint: int = 200
    pubends: Mapping[str, int | list[str]] = field(default_factory=dict)

    def pubends_at(self, broker: str) -> int:
        """How many pubends the broker has, if it has any."""
        given = self.pubends.get(broker, 1)
        return given if isinstance(given, int) else len(given)


_PLACE = "broker.parameters.gryphon"
_ORDER = (
    ("gct", "nrt", "a gap would be asked for again before it is asked for"),
    ("forgetting", "nrt", "a repeated nack would be taken for one that is on its way"),
    ("nrt", "nrt_most", "it is the first of the waiting times, and this the last"),
    ("aet", "aet_most", "it is the first of the waiting times, and this the last"),
    ("ack_delay", "aet", "acknowledgements would be expected before they are sent"),
    ("sit", "aet", "silence would be announced only after it was asked for"),
)


def gryphon_parameters(given: Mapping[str, Any]) -> GryphonParameters:
    """The parameters of a scenario; raises `InputError` for unknown, impossible or contradicting ones."""
    known = {each.name: each for each in fields(GryphonParameters)}
    for name, value in given.items():
        place = f"{_PLACE}.{name}"
        if name not in known:
            raise InputError(place, "an unknown key", ", ".join(known))
        if name == "pubends":
            _check_pubends(value, place)
        elif not (name == "dct" and value is None) and (type(value) is not int or value < 1):
            raise InputError(place, repr(value), "a whole number of milliseconds or messages, at least 1")
    parameters = GryphonParameters(**given)
    for smaller, larger, why in _ORDER:
        if getattr(parameters, smaller) > getattr(parameters, larger):
            found = f"{smaller} {getattr(parameters, smaller)} above {larger} {getattr(parameters, larger)}"
            raise InputError(f"{_PLACE}.{smaller}", found, f"at most {larger}: {why}")
    if parameters.dct is not None and parameters.dct <= parameters.gct + parameters.sit:
        found = f"dct {parameters.dct} with gct {parameters.gct} and sit {parameters.sit}"
        raise InputError(
            f"{_PLACE}.dct", found, "above gct and sit together: idle streams would be asked for all the time"
        )
    return parameters


def _check_pubends(value: Any, place: str) -> None:
    if not isinstance(value, Mapping):
        raise InputError(place, repr(value)[:60], "broker names with the number of their pubends, or their names")
    named: dict[str, str] = {}
    for broker, given in value.items():
        names = given if isinstance(given, list) else []
        for name in names:
            if not isinstance(name, str) or name in named:
                found = f"the pubend {name!r}" + (f", which is at {named[name]} too" if name in named else "")
                raise InputError(f"{place}.{broker}", found, "names, each of one pubend at one broker")
            named[name] = broker
        count = len(names) if isinstance(given, list) else given
        if type(count) is not int or not 1 <= count <= PUBENDS_MOST:
            raise InputError(f"{place}.{broker}", repr(given)[:60], f"1 to {PUBENDS_MOST} pubends")


PUBENDS_MOST = 64
"""Pubends of one broker: a pubend's number is its broker's number times this, and its own."""
