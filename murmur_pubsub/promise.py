"""What a protocol promises of deliveries: a closed vocabulary, so that a judge can hold it to its word.

A reliability protocol names its promise in its declaration; without one it promises best effort. The routing below it
may take the order away, and say which failures its deliveries survive.

`delivery`, from the weakest to the strongest:

- `at_most_once`: anything may be missing, nothing comes twice;
- `best_effort`: what a fault destroys may be missing, and nothing else; nothing comes twice;
- `at_least_once`: nothing is missing for a subscriber that stays connected; it may come twice;
- `exactly_once`: nothing is missing for a subscriber that stays connected, and nothing comes twice.
"""

from dataclasses import dataclass

from murmur_pubsub.errors import InputError

DEFAULT_RECOVERY_LIMIT_US = 30_000_000
"""How long after a fault or its repair tables may be disturbed, unless a scenario says otherwise."""
DELIVERIES = ("at_most_once", "best_effort", "at_least_once", "exactly_once")
ORDERS = ("publisher", "total", "none")
GIVEN_UP = 162
"""Topic of the journal rows of a client that is told what was given up for it: of one publisher the events from the
number `value` to that of the row's event, as far as they are for this client and it does not have them."""
REFUSED = 163
"""Topic of the journal rows of a publisher's node that is told that the row's event was refused."""
PUBLISHERS_WAIT = 155
"""Topic of the journal rows of a broker whose publishers have to wait (value 1), or no more (0)."""


@dataclass(frozen=True, slots=True)
class Survival:
    """Failures under which deliveries are still required, once the overlay has settled without what is broken.

    `brokers_away`: this number of neighbouring brokers in a row may be away. `any_path`: links and brokers may be away
    as long as the overlay has a path left between the publisher and the subscriber. `any_links`: so may all links, if
    only datagrams pass between the two brokers. `by_delegates`: a broker beside the way may be given what those on it
    are to have, and then its own failures cost that.
    """

    brokers_away: int = 0
    any_path: bool = False
    any_links: bool = False
    by_delegates: bool = False

    def __str__(self) -> str:
        told = [f"{self.brokers_away} brokers away in a row"] if self.brokers_away else []
        told += ["any failure that leaves a path"] if self.any_path else []
        told += ["any failure of links"] if self.any_links else []
        return " and ".join(told) or "no failure"


@dataclass(frozen=True, slots=True)
class Recovery:
    """How long a failure, or its end, may cost deliveries where no link tells of it, and brokers find out in their own
    time. `founded_us`: so much longer if all brokers were away at once, so that they found the overlay anew."""

    repaired_us: int
    founded_us: int


@dataclass(frozen=True, slots=True)
class Limits:
    """What a subscription that is away may cost. `lease_us`: what has waited for it for so long may be given
    up, if nothing was heard of it for as long (None: never). `drops_above`: so may a broker's oldest message, while it
    keeps more than so many (None: never). The subscriber is told of it: see `GIVEN_UP`.
    `refuses_above`: a broker that keeps so many may refuse publications (None: never): see `REFUSED`. `waits_above`: it
    may have publishers wait (None: never): see `PUBLISHERS_WAIT`. `told_again_us`: after that long a publishers' broker
    that had lost its disk knows again what a subscriber wants, whose broker can be reached."""

    lease_us: int | None = None
    drops_above: int | None = None
    refuses_above: int | None = None
    waits_above: int | None = None
    told_again_us: int = 0


@dataclass(frozen=True, slots=True)
class RedundantEnd:
    """Three brokers of which any one may be lost for good, with its disk, and nothing is that was accepted at the
    first two. What is published at `host` is kept by `backup` too, and `witness` settles which of the two serves.
    `notices_us`: after that long the others take note that one is away. `log_most`: while so many events wait there,
    none is accepted."""

    host: str
    backup: str
    witness: str
    notices_us: int
    log_most: int

    @property
    def names(self) -> tuple[str, str, str]:
        """All three."""
        return self.host, self.backup, self.witness


@dataclass(frozen=True, slots=True)
class Promise:
    """`delivery` and `order` are one of `DELIVERIES` and `ORDERS`; raises `InputError` for anything else.

    `order`: "publisher" means that a subscriber gets the events of one publisher in the order of their publication.
    "total" means that as well, and that two subscribers that both get two events get them in the same order.
    `durable`: subscriptions outlive connections: nothing is missing for a subscriber that comes back.
    `keeps_events`: a subscriber may be given events that were published before it subscribed. `recovers`: how long
    a failure may cost deliveries, if that is less than the scenario allows (None: as long as that). `limits`: those
    of durable subscriptions. `redundant`: the brokers of publishers that another one can stand in for.
    """

    delivery: str = "best_effort"
    order: str = "publisher"
    survives: Survival = Survival()
    keeps_events: bool = False
    durable: bool = False
    recovers: Recovery | None = None
    limits: Limits = Limits()
    redundant: tuple[RedundantEnd, ...] = ()

    def __post_init__(self) -> None:
        for key, value, allowed in (("delivery", self.delivery, DELIVERIES), ("order", self.order, ORDERS)):
            if value not in allowed:
                raise InputError(f"promise, {key}", repr(value), ", ".join(allowed))

    @property
    def excuses_by_connection(self) -> bool:
        """Is a loss excused only for a subscriber that was not connected?"""
        return self.delivery in ("at_least_once", "exactly_once")
