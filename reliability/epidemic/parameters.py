"""Parameters of epidemic recovery, with the paper's defaults where it or its evaluation gives them."""

from dataclasses import dataclass
from typing import Literal, get_args

from murmur_pubsub.errors import InputError
from murmur_pubsub.units import Microseconds

Algorithm = Literal["none", "push", "subscriber-pull", "publisher-pull", "combined-pull", "random-pull"]
ALGORITHMS: tuple[Algorithm, ...] = get_args(Algorithm)
CacheAt = Literal["interested", "everywhere"]
Discard = Literal["oldest", "uninterested", "random"]


@dataclass(frozen=True, slots=True)
class EpidemicParameters:
    """One dispatcher's parameters."""

    algorithm: Algorithm = "combined-pull"
    """How lost events are found again (sections 4.1 and 4.2; `random-pull` is the evaluation's control, `none` recovers
    nothing)."""
    interval_us: Microseconds = 30_000
    """From one gossip round to the next (evaluation: 0.03 s)."""
    adaptive: bool = False
    """The interval doubles with each round in which nothing pointed at a loss. It falls back to `interval` at the first
    sign of one (section 5)."""
    interval_max_us: Microseconds = 480_000
    """The longest interval, if it is adaptive."""
    buffer: int = 1_500
    """Events in the cache (evaluation: 1,500)."""
    cache: CacheAt = "interested"
    """Which dispatchers keep an event: those that published it or have a subscriber for it, or every dispatcher that it
    passes (section 4)."""
    discard: Discard = "oldest"
    """Which event makes room (section 5): the oldest; the oldest of those for which this dispatcher is neither source
    nor subscriber, while there is one; or one drawn at random."""
    p_forward: float = 0.9
    """The probability to pass a gossip message on."""
    fanout: int = 4
    """To how many neighbours at most, of those behind which there are subscribers."""
    p_source: float = 0.5
    """Combined pull's probability that a round goes to the publisher."""
    lost_age_us: Microseconds = 5_000_000
    """How long a lost event is looked for."""
    lost_buffer: int = 10_000
    """Entries of the LostBuffer at most."""
    rest_after_us: Microseconds = 5_000_000
    """Push rests when its cache has had nothing new, and no dispatcher has asked for anything, for that long."""
    linger_us: Microseconds = 5_000_000
    """How long a source goes on counting for a pattern whose last subscriber is gone, since a broken link looks the
    same."""
    settle_us: Microseconds = 1_000_000
    """How long a new subscription may be on its way to the sources: a gap among events published earlier is no loss."""
    remember: int = 50_000
    """Identifiers of received events kept to know a second copy by; not below the buffer."""

    def __post_init__(self) -> None:
        for name, allowed in (("algorithm", ALGORITHMS), ("cache", get_args(CacheAt)), ("discard", get_args(Discard))):
            if getattr(self, name) not in allowed:
                raise InputError(name, repr(getattr(self, name)), ", ".join(allowed))
        for name, least, which in (
            *((each, 1, "") for each in ("interval_us", "buffer", "fanout", "lost_age_us", "lost_buffer")),
            *(("rest_after_us", 1, ""), ("linger_us", 0, ""), ("settle_us", 0, "")),
            ("interval_max_us", self.interval_us, ", the interval"),
            ("remember", self.buffer, ", the buffer"),
        ):
            if getattr(self, name) < least:
                raise InputError(name, str(getattr(self, name)), f"at least {least}{which}")
        for name in ("p_forward", "p_source"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(name, str(getattr(self, name)), "a probability from 0 to 1")

    @property
    def pulls(self) -> bool:
        """Is a loss found by its number, so that events must be tagged?"""
        return self.algorithm not in ("none", "push")

    @property
    def records_routes(self) -> bool:
        """Must events record the way they came?"""
        return self.algorithm in ("publisher-pull", "combined-pull")
