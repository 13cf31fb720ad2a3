"""Parameters of opportunistic multipath forwarding, with the paper's defaults where it gives them."""

from dataclasses import dataclass
from typing import Literal, get_args

from murmur_pubsub.errors import InputError
from murmur_pubsub.machine import NodeName
from murmur_pubsub.units import Microseconds

Strategy = Literal["S0", "S1", "S2", "SH"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)


@dataclass(frozen=True, slots=True)
class MultipathParameters:
    """One broker's parameters."""

    strategy: Strategy = "S2"
    """Which path computation (section 5)."""
    delta: int = 4
    """Radius of the neighbourhood in hops (paper: 4)."""
    fanout: int = 20
    """The most communication links, primary and soft together (paper: 5 to 35)."""
    maxlinks: int = 30
    """The most links of all kinds; the candidate links get what fanout leaves (the paper names no value)."""
    round_us: Microseconds = 20_000_000
    """Time between rounds of soft link management (paper: roughly 20 s)."""
    cool_down_rounds: int = 6
    """For how many rounds a discarded link is not tried again (120 s in Publiy)."""
    load_exchange_us: Microseconds = 10_000_000
    """Time between load exchanges over primary links (10 s in Publiy)."""
    uplink_messages_per_s: int | None = None
    """What SH takes for its uplink capacity (none: never short of it)."""
    uplink_bytes_per_s: int | None = None
    """The same in bytes."""
    uplink_threshold: float = 0.8
    """Share of the capacity above which SH goes over to S1 (paper: 0.8)."""
    meter_us: Microseconds = 1_000_000
    """Stretch over which output is measured (Publiy: about 1 s)."""
    covering: bool = False
    """Keep a covering set for each anchor instead of all subscriptions (section 4; Publiy's default is off)."""
    coordinator: NodeName | None = None
    """The broker that hosts the coordinator of Δ-moves (none: no move is possible)."""
    move_grace_us: Microseconds = 1_000_000
    """How long after a move's end the map before it is kept for copies still on their way; longer than any copy can
    be."""

    watch_us: Microseconds = 2_000_000
    """Time between requests to a broker of whose end no link would tell: a neighbour made by a Δ-move, or one that
    bridges another; three in vain mean that it is away."""

    def __post_init__(self) -> None:
        for name, least, which in (
            *(
                (each, 1, "")
                for each in ("delta", "fanout", "round_us", "load_exchange_us", "meter_us", "move_grace_us", "watch_us")
            ),
            ("maxlinks", self.fanout, ", the fanout"),
            ("cool_down_rounds", 0, ""),
            *((each, 1, "") for each in ("uplink_messages_per_s", "uplink_bytes_per_s")),
        ):
            found = getattr(self, name)
            if found is not None and found < least:
                raise InputError(name, str(found), f"at least {least}{which}")
        if not 0 < self.uplink_threshold <= 1:
            raise InputError("uplink_threshold", str(self.uplink_threshold), "above 0, at most 1")

    def check_overlay(self, degree: int, has_datagrams: bool) -> None:
        """Raise `InputError` if the primary links alone are more than the fanout, or soft links cannot be: they are
        datagrams, and by them whoever is away is bridged."""
        if self.fanout < degree:
            raise InputError("fanout", str(self.fanout), f"at least {degree}, the broker's degree")
        if self.strategy != "S0" and not has_datagrams:
            allowed = "a delay, such as 'datagrams: {delay: 1 ms}': they are soft links, and only strategy S0 has none"
            raise InputError("datagrams", "nothing", allowed)
