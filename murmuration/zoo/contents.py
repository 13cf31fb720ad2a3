"""Saboteurs that deliver something else than what was published, under its number or under one that no runtime gave."""

import zlib
from collections.abc import Mapping, Sequence

from murmur_pubsub.client import Notification
from murmur_pubsub.event import Event
from murmur_pubsub.machine import Deliver, Effect
from murmur_pubsub.values import Value
from murmuration.zoo.entry import Saboteur, struck
from murmuration.zoo.tampering import Tampering, TamperingClient, declared, is_told, with_event
from reliability.best_effort import BestEffort


class Changing(Tampering):
    """Tells clients something else than some events."""

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        if not struck(event):
            return effects
        return [with_event(each, self.changed(event, now_us)) if is_told(each) else each for each in effects]

    def changed(self, event: Event, now_us: int) -> Event:
        """What clients are told in place of the event."""
        return Event(event.source, event.sequence, event.time_us, self.attributes(event.attributes))

    def attributes(self, attributes: Mapping[str, Value]) -> dict[str, Value]:
        """The attributes that clients are told."""
        raise NotImplementedError


class Rounding(Changing):
    """Rounds a number to four decimals."""

    def attributes(self, attributes: Mapping[str, Value]) -> dict[str, Value]:
        return {**attributes, "x": round(float(attributes["x"]), 4)}


class WholeAsFloat(Changing):
    """Makes a whole number a float of the same value."""

    def attributes(self, attributes: Mapping[str, Value]) -> dict[str, Value]:
        return {**attributes, "n": float(attributes["n"])}


class WholeAsTruth(Changing):
    """Makes 0 false and 1 true, which Python takes for the same."""

    def attributes(self, attributes: Mapping[str, Value]) -> dict[str, Value]:
        return {**attributes, "publisher": bool(attributes["publisher"])}


class Dropping(Changing):
    """Leaves an attribute out."""

    def attributes(self, attributes: Mapping[str, Value]) -> dict[str, Value]:
        return {name: value for name, value in attributes.items() if name != "padding"}


class Adding(Changing):
    """Adds an attribute."""

    def attributes(self, attributes: Mapping[str, Value]) -> dict[str, Value]:
        return {**attributes, "passed_by": self.name}


class Cutting(Changing):
    """Cuts a text short."""

    def attributes(self, attributes: Mapping[str, Value]) -> dict[str, Value]:
        return {**attributes, "padding": str(attributes["padding"])[:16]}


class Forging(Changing):
    """Tells something of its own."""

    def attributes(self, attributes: Mapping[str, Value]) -> dict[str, Value]:
        return {"forged": True}


class Redating(Changing):
    """Says that an event was published when it came by."""

    def changed(self, event: Event, now_us: int) -> Event:
        return Event(event.source, event.sequence, now_us, event.attributes)


class Repeating(Changing):
    """Tells the contents of the publisher's event before under the number of this one."""

    _before: dict[int, Mapping[str, Value]]

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        told = super().tamper(effects, event, now_us)
        self._before = {**getattr(self, "_before", {}), event.source: event.attributes}
        return told

    def changed(self, event: Event, now_us: int) -> Event:
        return Event(event.source, event.sequence, event.time_us, self._before[event.source])


class OnTheWay(Tampering):
    """One broker changes what it passes on, so that all behind it get the same, and the clients before it do not."""

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        if self.name != "b1" or not struck(event):
            return effects
        changed = Event(event.source, event.sequence, event.time_us, {**event.attributes, "n": -1})
        return [each if is_told(each) else with_event(each, changed) for each in effects]


class _Liar(TamperingClient):
    def tell(self, event: Event, now_us: int) -> Sequence[Effect]:
        attributes = {**event.attributes, "n": -1} if struck(event) else event.attributes
        return super().tell(Event(event.source, event.sequence, event.time_us, attributes), now_us)


@declared(client=_Liar)
class AtTheSource(BestEffort):
    """The publisher's client sends something else than what was published."""


class Inventing(Changing):
    """Tells an event under a number that was never used, beside the true one."""

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        return [*effects, *(each for each in super().tamper(effects, event, now_us) if is_told(each) and struck(event))]

    def changed(self, event: Event, now_us: int) -> Event:
        return Event(event.source, event.sequence + 1_000_000, event.time_us, event.attributes)


class InventingPublishers(Inventing):
    """The same in the name of a publisher that never was."""

    def changed(self, event: Event, now_us: int) -> Event:
        return Event(event.source + 90, event.sequence, event.time_us, event.attributes)


class SameChecksum(Changing):
    """Tells something else, with an attribute added that makes its CRC-32 that of the event."""

    def changed(self, event: Event, now_us: int) -> Event:
        for n in range(1_000):  # the wanted number has to need all of its four bytes
            draft = Event(event.source, event.sequence, event.time_us, {"forged": n, "made_up": 0xFFFFFFFF})
            before = _checksum(event.time_us, draft.blob[:-4])
            number = int.from_bytes(_reaching(before, _checksum(event.time_us, event.blob)), "big")
            found = Event(event.source, event.sequence, event.time_us, {"forged": n, "made_up": number})
            if _checksum(found.time_us, found.blob) == _checksum(event.time_us, event.blob):
                return found
        raise AssertionError("one in a thousand numbers fits")


def _checksum(time_us: int, blob: bytes) -> int:
    return zlib.crc32(blob, zlib.crc32(time_us.to_bytes(8, "little")))


def _reaching(before: int, wanted: int) -> bytes:
    """The four bytes that take a CRC-32 from `before` to `wanted`: a register of 32 bits forgets in four steps what it
    held, so that the last four entries of the table follow from the end alone."""
    table = [_step(number) for number in range(256)]
    last = {entry >> 24: number for number, entry in enumerate(table)}
    register, places = wanted ^ 0xFFFFFFFF, []
    for _ in range(4):
        place = last[register >> 24]
        places.append(place)
        register = ((register ^ table[place]) << 8) & 0xFFFFFFFF
    register, found = before ^ 0xFFFFFFFF, bytearray()
    for place in reversed(places):
        found.append((register ^ place) & 0xFF)
        register = (register >> 8) ^ table[place]
    return bytes(found)


def _step(number: int) -> int:
    for _ in range(8):
        number = number >> 1 ^ (0xEDB88320 if number & 1 else 0)
    return number


class _Sworn(Event):
    """An event that swears to contain what another one does."""

    __slots__ = ("sworn",)

    @property
    def blob(self) -> bytes:
        return self.sworn  # type: ignore[attr-defined,no-any-return]


class _Perjurer(TamperingClient):
    def hear(self, told: Notification, now_us: int) -> Sequence[Effect]:
        event = told.event
        if not struck(event):
            return super().hear(told, now_us)
        other = _Sworn(event.source, event.sequence, event.time_us, {"forged": True})
        other.sworn = event.blob  # type: ignore[attr-defined]
        return [Deliver(other, told.hops, told.subscribers)]


@declared(client=_Perjurer)
class Perjuring(BestEffort):
    """Clients hand over an object that is no plain event and says that it contains the right thing."""


_ALL = "c2, c3, c4, c5, c6, c7"
CONTENT_SABOTEURS = (
    Saboteur("rounds", "rounds a number to four decimals", "altered", _ALL, Rounding),
    Saboteur("1 as 1.0", "makes a whole number a float", "altered", _ALL, WholeAsFloat),
    Saboteur("1 as true", "makes 0 and 1 false and true", "altered", _ALL, WholeAsTruth),
    Saboteur("attribute dropped", "leaves an attribute out", "altered", _ALL, Dropping),
    Saboteur("attribute added", "adds an attribute", "altered", _ALL, Adding),
    Saboteur("text cut", "cuts a text short", "altered", _ALL, Cutting),
    Saboteur("forged", "tells something of its own under the right number", "altered", _ALL, Forging),
    Saboteur("redated", "says that an event was published when it came by", "altered", _ALL, Redating),
    Saboteur("repeats", "tells the event before under the number of this one", "altered", _ALL, Repeating),
    Saboteur("on the way", "one broker changes what it passes on", "altered", "c3, c4, c5, c6, c7", OnTheWay),
    Saboteur("at the source", "the publisher's client sends something else", "altered", _ALL, AtTheSource),
    Saboteur("invents events", "tells events that were never published", "spurious", _ALL, Inventing),
    Saboteur("invents publishers", "tells events of a publisher that never was", "spurious", _ALL, InventingPublishers),
    Saboteur("same checksum", "forges contents so that their CRC-32 is right", "altered", _ALL, SameChecksum),
    Saboteur("perjury", "hands over an object that lies about its contents", "altered", _ALL, Perjuring),
)
