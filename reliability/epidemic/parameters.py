"""Parameters of epidemic recovery, with the paper's defaults where it or its evaluation gives them."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args, get_type_hints

from murmur_pubsub.errors import InputError

Algorithm = Literal["none", "push", "subscriber-pull", "publisher-pull", "combined-pull", "random-pull"]
ALGORITHMS: tuple[Algorithm, ...] = get_args(Algorithm)
CacheAt = Literal["interested", "everywhere"]
Discard = Literal["oldest", "uninterested", "random"]

PLACE = "broker.parameters.epidemic"
"""Where a scenario has them."""


@dataclass(frozen=True, slots=True)
class EpidemicParameters:
    """One dispatcher's parameters; times in emulated microseconds.

    algorithm: how lost events are found again (sections 4.1 and 4.2; `random-pull` is the evaluation's control, `none`
    recovers nothing). interval_us: from one gossip round to the next (evaluation: 0.03 s). adaptive: the interval
    doubles, up to interval_max_us, with each round in which nothing pointed at a loss, and falls back to interval_us at
    the first sign of one (section 5). buffer: events in the cache (evaluation: 1,500). cache: who keeps an event: those
    who published it or have a subscriber for it, or every dispatcher it passes (section 4). discard: which event makes
    room (section 5): the oldest; the oldest of those for which this dispatcher is neither source nor subscriber, while
    there is one; or one drawn at random. p_forward: the probability to pass a gossip message on. fanout: to how many
    neighbours at most, of those behind which there are subscribers. p_source: combined pull's probability that a round
    goes to the publisher. lost_age_us: how long a lost event is looked for. lost_buffer: entries of the LostBuffer at
    most. rest_after_us: push rests when its cache has had nothing new, and nobody has asked for anything, for so long.
    linger_us: how long a source goes on counting for a pattern whose last subscriber is gone, since a broken link looks
    the same. settle_us: how long a new subscription may be on its way to the sources: a gap among events published
    earlier is no loss. remember: identifiers of received events kept to know a second copy by; not below the buffer.
    """

    algorithm: Algorithm = "combined-pull"
    interval_us: int = 30_000
    adaptive: bool = False
    interval_max_us: int = 480_000
    buffer: int = 1_500
    cache: CacheAt = "interested"
    discard: Discard = "oldest"
    p_forward: float = 0.9
    fanout: int = 4
    p_source: float = 0.5
    lost_age_us: int = 5_000_000
    lost_buffer: int = 10_000
    rest_after_us: int = 5_000_000
    linger_us: int = 5_000_000
    settle_us: int = 1_000_000
    remember: int = 50_000

    def __post_init__(self) -> None:
        for name, allowed in (("algorithm", ALGORITHMS), ("cache", get_args(CacheAt)), ("discard", get_args(Discard))):
            if getattr(self, name) not in allowed:
                raise InputError(f"{PLACE}.{name}", repr(getattr(self, name)), ", ".join(allowed))
        for name in ("interval_us", "buffer", "fanout", "lost_age_us", "lost_buffer", "rest_after_us"):
            _at_least(name, getattr(self, name), 1, "")
        _at_least("linger_us", self.linger_us, 0, "")
        _at_least("settle_us", self.settle_us, 0, "")
        _at_least("interval_max_us", self.interval_max_us, self.interval_us, ", interval_us")
        _at_least("remember", self.remember, self.buffer, ", the buffer")
        for name in ("p_forward", "p_source"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{PLACE}.{name}", str(getattr(self, name)), "a probability from 0 to 1")

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> "EpidemicParameters":
        """The parameters written in a scenario; raises `InputError` for a name or a type that cannot be."""
        hints = get_type_hints(cls)
        for name, value in given.items():
            if name not in hints:
                raise InputError(f"{PLACE}.{name}", "an unknown key", ", ".join(each.name for each in fields(cls)))
            kind = hints[name] if isinstance(hints[name], type) else str
            if type(value) is not kind and not (kind is float and type(value) is int):
                raise InputError(f"{PLACE}.{name}", repr(value), f"a value of type {kind.__name__}")
        return cls(**given)

    @property
    def pulls(self) -> bool:
        """Is a loss found by its number, so that events must be tagged?"""
        return self.algorithm not in ("none", "push")

    @property
    def records_routes(self) -> bool:
        """Must events record the way they came?"""
        return self.algorithm in ("publisher-pull", "combined-pull")


def _at_least(name: str, found: int, least: int, which: str) -> None:
    if found < least:
        raise InputError(f"{PLACE}.{name}", str(found), f"at least {least}{which}")
