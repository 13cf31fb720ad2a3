"""The thresholds of guaranteed delivery, by the paper's names, and where the pubends are.

The paper's values are not in the text we have, but for DCT, which its failure tests set to infinity; the others are
ours, near those of a product that came out of it (docs/protocols/gryphon.md).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Literal

from murmur_pubsub.errors import InputError
from murmur_pubsub.machine import NodeName
from murmur_pubsub.units import Milliseconds

PUBENDS_MOST = 64
"""Pubends of one broker: a pubend's number is its broker's number times this, and its own."""
_ORDER = (
    ("gct", "nrt", "a gap would be asked for again before it is asked for"),
    ("forgetting", "nrt", "a repeated nack would be taken for one that is on its way"),
    ("nrt_least", "nrt", "it is the shortest of the waiting times"),
    ("nrt", "nrt_most", "it is the first of the waiting times, and this the last"),
    ("aet", "aet_most", "it is the first of the waiting times, and this the last"),
    ("ack_delay", "aet", "acknowledgements would be expected before they are sent"),
    ("sit", "aet", "silence would be announced only after it was asked for"),
)


@dataclass(frozen=True, slots=True)
class GryphonParameters:
    """One broker's thresholds. Times are in milliseconds, which are the ticks of its streams."""

    gct: Milliseconds = 200
    """Gap curiosity threshold: how long a gap may heal by itself."""
    dct: Milliseconds | None = None
    """Delay curiosity threshold (none: infinite)."""
    nrt: Milliseconds = 1_000
    """Nack repetition threshold while no round trip was measured; then it is estimated from those."""
    nrt_least: Milliseconds = 50
    """The shortest that is estimated."""
    nrt_most: Milliseconds = 2_000
    """The longest wait before a nack is repeated."""
    aet: Milliseconds = 3_000
    """Ack expected threshold; each repetition waits twice as long."""
    aet_most: Milliseconds = 6_000
    """The longest wait before acknowledgements are expected again."""
    sit: Milliseconds = 500
    """Silence interval."""
    ack_delay: Milliseconds = 200
    """For how long acknowledgements gather."""
    forgetting: Milliseconds = 500
    """Curiosity is forgotten after once to twice that, or to twice half of the estimated NRT if that is less."""
    nack_chunk: Milliseconds = 500
    """The longest range of ticks in one nack."""
    cache: int = 1_000
    """Messages of a pubend that an intermediate broker keeps."""
    receive_cache: int = 5_000
    """Messages of a pubend that a subscribers' broker keeps."""
    window: int = 1_000
    """Messages of a session that a client has not handed back, before its broker waits for it."""
    resend: Milliseconds = 500
    """When client and broker repeat what the other has not acknowledged."""
    log_most: int = 100_000
    """Messages of a publishers' broker that are not acknowledged by all, before its publishers have to wait."""
    order: Literal["publisher", "total"] = "publisher"
    """Of events that a subscriber gets: each publisher's, or a total one, in which all subscribers get the events of
    all pubends alike; an event then waits until every pubend has said that nothing comes before it."""
    give_up_after: Milliseconds | None = None
    """A branch of the tree that is out of reach for that long is waited for no more (none: it is, for ever)."""
    checkpoint: int = 200
    """Log records that must be done with before the log is cut."""
    pubends: Mapping[str, int | list[str]] = field(default_factory=dict)
    """How many the brokers named have, or their names (empty: one at each broker that takes clients)."""

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, int) and value < 1:
                raise InputError(each.name, repr(value), "at least 1")
        _check_pubends(self.pubends)
        for smaller, larger, why in _ORDER:
            if getattr(self, smaller) > getattr(self, larger):
                found = f"{smaller} {getattr(self, smaller)} ms above {larger} {getattr(self, larger)} ms"
                raise InputError(smaller, found, f"at most {larger}: {why}")
        if self.dct is not None and self.dct <= self.gct + self.sit:
            found = f"dct {self.dct} ms with gct {self.gct} ms and sit {self.sit} ms"
            raise InputError("dct", found, "above gct and sit together: idle streams would be asked for all the time")

    @property
    def acknowledged_within(self) -> tuple[int, int]:
        """After how long acknowledgements are expected at first, and after how long at most."""
        return self.aet, self.aet_most

    def pubends_at(self, broker: str) -> int:
        """How many pubends the broker has, if it has any."""
        given = self.pubends.get(broker, 1)
        return given if isinstance(given, int) else len(given)

    def numbered(self, brokers: Sequence[NodeName], roots: Sequence[NodeName]) -> Iterator[tuple[int, NodeName]]:
        """All pubends: their numbers, and at which of the roots each is."""
        for place, broker in enumerate(brokers):
            if broker in roots:
                for own in range(self.pubends_at(broker)):
                    yield place * PUBENDS_MOST + own, broker


def entrances(parameters: GryphonParameters, client_brokers: Sequence[NodeName]) -> Sequence[NodeName]:
    """The brokers with pubends, of those that take clients."""
    for broker in parameters.pubends:
        if broker not in client_brokers:
            allowed = f"brokers that do: {', '.join(client_brokers[:10])}"
            raise InputError(f"pubends.{broker}", "no broker that takes clients", allowed)
    return [broker for broker in client_brokers if broker in parameters.pubends] or client_brokers


def _check_pubends(pubends: Mapping[str, int | list[str]]) -> None:
    named: dict[str, str] = {}
    for broker, given in pubends.items():
        names = given if isinstance(given, list) else []
        for name in names:
            if name in named:
                found = f"the pubend {name!r}, which is at {named[name]} too"
                raise InputError(f"pubends.{broker}", found, "names, each of one pubend at one broker")
            named[name] = broker
        count = len(names) if isinstance(given, list) else given
        if not 1 <= count <= PUBENDS_MOST:
            raise InputError(f"pubends.{broker}", repr(given)[:60], f"1 to {PUBENDS_MOST} pubends")
