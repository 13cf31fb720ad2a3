"""Load and round-trip times of the neighbourhood, and the meter of the own uplink (sections 5 and 6).

A broker's load is its output rate in publications a second. It is exchanged over primary links, each broker passing
on what it knows of its side of the neighbourhood, with the round-trip times of the primary links on the way.
"""

from collections.abc import Iterable

from murmur_pubsub.machine import NodeName
from routing.multipath.messages import LoadExchange
from routing.multipath.overlay_maps import MasterOverlayMap


class UplinkMeter:
    """How much this broker sends, against its uplink's capacity. Both are in messages or in bytes."""

    def __init__(self, capacity_per_s: int | None, threshold: float, meter_us: int) -> None:
        self._limit = None if capacity_per_s is None else capacity_per_s * threshold * meter_us / 1e6
        self._current = 0
        self._before = 0

    def add(self, amount: int) -> None:
        """So much has been sent."""
        self._current += amount

    def turn(self) -> None:
        """The stretch is over, the next one begins."""
        self._before, self._current = self._current, 0

    @property
    def above_threshold(self) -> bool:
        """Was the share of capacity used in the last stretch, or already in this one, above the threshold?"""
        return self._limit is not None and max(self._before, self._current) > self._limit


class Loads:
    """Output rates of the neighbourhood's brokers (publications a second), and round-trip times in µs of the primary
    link between each broker and the one before it on the way from here."""

    def __init__(self) -> None:
        self.rates: dict[NodeName, int] = {}
        self.round_trips_us: dict[NodeName, int] = {}
        self._heard: dict[NodeName, tuple[int, int]] = {}

    def take(self, source: NodeName, told: LoadExchange, mom: MasterOverlayMap, now_us: int) -> None:
        """Learn from a primary neighbour."""
        if told.echo_us:
            self.round_trips_us[source] = now_us - told.echo_us - told.held_us
        self._heard[source] = (told.sent_us, now_us)
        for broker, rate, round_trip_us in told.loads:
            if broker != mom.centre and broker in mom and mom.first_hop(broker) == source:
                self.rates[broker] = rate
                if broker != source and round_trip_us:
                    self.round_trips_us[broker] = round_trip_us

    def exchange(self, peer: NodeName, own_rate: int, mom: MasterOverlayMap, now_us: int) -> LoadExchange:
        """What a primary neighbour is told: this broker's load, and that of the neighbourhood on this side."""
        loads: list[list[str | int]] = [[mom.centre, own_rate, 0]]
        for broker in mom.brokers:
            if mom.distances[broker] < mom.delta and broker in self.rates and mom.first_hop(broker) != peer:
                loads.append([broker, self.rates[broker], self.round_trips_us.get(broker, 0)])
        sent_us, heard_us = self._heard.get(peer, (0, now_us))
        return LoadExchange(now_us, sent_us, now_us - heard_us, loads)

    def scaling_factor(self, bypassed: Iterable[NodeName]) -> float:
        """loadScalingFactor: the product over the bypassed brokers of 1 + max(0, normalized load - threshold).

        The load is normalized by the mean of all rates known that are not zero, and the threshold is 1, the mean
        itself, as in Publiy. The paper prints min, which never boosts a link (docs/protocols/multipath.md).
        """
        rates = [rate for rate in self.rates.values() if rate]
        factor = 1.0
        if rates:
            mean = sum(rates) / len(rates)
            for broker in bypassed:
                factor *= 1.0 + max(0.0, self.rates.get(broker, 0) / mean - 1.0)
        return factor

    def slowness(self, path: Iterable[NodeName]) -> float:
        """How much slower than the mean the primary links on the path are; at least 1."""
        if not self.round_trips_us:
            return 1.0
        mean = sum(self.round_trips_us.values()) / len(self.round_trips_us)
        known = [self.round_trips_us[broker] for broker in path if broker in self.round_trips_us]
        return max(1.0, sum(known) / len(known) / mean) if known and mean > 0 else 1.0

    def keep_only(self, mom: MasterOverlayMap) -> None:
        """Forget brokers that are no longer in the neighbourhood."""
        self.rates = {broker: rate for broker, rate in self.rates.items() if broker in mom}
        self.round_trips_us = {broker: each for broker, each in self.round_trips_us.items() if broker in mom}
