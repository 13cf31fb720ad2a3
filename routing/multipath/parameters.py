"""Parameters of opportunistic multipath forwarding, with the paper's defaults where it gives them."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from murmur_pubsub.errors import InputError
from murmur_pubsub.machine import NodeName

Strategy = Literal["S0", "S1", "S2", "SH"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
_PLACE = "broker.parameters.multipath"


@dataclass(frozen=True, slots=True)
class MultipathParameters:
    """One broker's parameters.

    strategy: which path computation (section 5). delta: radius of the neighbourhood in hops (paper: 4). fanout: most
    communication links, primary and soft together (paper: 5 to 35). maxlinks: most links of all kinds; the candidate
    links get what fanout leaves (the paper names no value). round_us: time between rounds of soft link management
    (paper: roughly 20 s). cool_down_rounds: how many rounds a discarded link is not tried again (120 s in Publiy).
    load_exchange_us: time between load exchanges over primary links (10 s in Publiy). uplink_messages_per_s,
    uplink_bytes_per_s: what SH takes for its uplink capacity (None: never short of it). uplink_threshold: share of it
    above which SH goes over to S1 (paper: 0.8). meter_us: stretch over which output is measured (Publiy: about 1 s).
    covering: keep a covering set for each anchor instead of all subscriptions (section 4; Publiy's default is off).
    coordinator: the broker that hosts the coordinator of Δ-moves (None: no move is possible). move_grace_us: how long
    after a move's end the map before it is kept for copies still on their way; longer than any copy can be.
    """

    strategy: Strategy = "S2"
    delta: int = 4
    fanout: int = 20
    maxlinks: int = 30
    round_us: int = 20_000_000
    cool_down_rounds: int = 6
    load_exchange_us: int = 10_000_000
    uplink_messages_per_s: int | None = None
    uplink_bytes_per_s: int | None = None
    uplink_threshold: float = 0.8
    meter_us: int = 1_000_000
    covering: bool = False
    coordinator: NodeName | None = None
    move_grace_us: int = 1_000_000

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise InputError(f"{_PLACE}.strategy", repr(self.strategy), ", ".join(STRATEGIES))
        for name in ("delta", "fanout", "round_us", "load_exchange_us", "meter_us", "move_grace_us"):
            _at_least(name, getattr(self, name), 1, "")
        _at_least("maxlinks", self.maxlinks, self.fanout, ", the fanout")
        _at_least("cool_down_rounds", self.cool_down_rounds, 0, "")
        for name in ("uplink_messages_per_s", "uplink_bytes_per_s"):
            if getattr(self, name) is not None:
                _at_least(name, getattr(self, name), 1, "")
        if not 0 < self.uplink_threshold <= 1:
            raise InputError(f"{_PLACE}.uplink_threshold", str(self.uplink_threshold), "above 0, at most 1")

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> "MultipathParameters":
        """The parameters written in a scenario; raises `InputError` for a name that is none of them."""
        known = {field.name: type(field.default) for field in fields(cls)}
        for name, value in given.items():
            if name not in known:
                raise InputError(f"{_PLACE}.{name}", "an unknown key", ", ".join(known))
            kind = str if name == "coordinator" else int if known[name] is type(None) else known[name]
            if type(value) is not kind and not (kind is float and type(value) is int):
                if value is not None or known[name] is not type(None):
                    raise InputError(f"{_PLACE}.{name}", repr(value), f"a value of type {kind.__name__}")
        return cls(**given)

    def check_degree(self, degree: int) -> None:
        """Raise `InputError` if the primary links alone are more than the fanout."""
        _at_least("fanout", self.fanout, degree, ", the broker's degree")


def _at_least(name: str, found: int, least: int, which: str) -> None:
    if found < least:
        raise InputError(f"{_PLACE}.{name}", str(found), f"at least {least}{which}")
