"""The parameters of exactly once over any overlay."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

from murmur_pubsub.errors import InputError
from murmur_pubsub.machine import NodeName
from murmur_pubsub.promise import Limits, RedundantEnd
from murmur_pubsub.units import Milliseconds


@dataclass(frozen=True, slots=True)
class EndToEndParameters:
    """One broker's thresholds; a client's too."""

    gap: Milliseconds = 100
    """For how long an event that is missing before another one may still come by routing, before it is asked for."""
    rest: Milliseconds = 1_000
    """What a client has not acknowledged for so long, the pubend's broker reminds its broker of; while nothing is heard
    of the client again after a quarter of that, and then each time after twice as long."""
    rest_most: Milliseconds = 4_000
    """The longest wait before that is repeated, and any question or word that has no answer."""
    idle: Milliseconds = 30_000
    """When nothing was heard of a pubend for so long, its broker is asked whether there is more."""
    answer: Milliseconds = 500
    """After that long a question is repeated while no round trip was measured; then it is estimated from those."""
    answer_least: Milliseconds = 20
    """The shortest that is estimated."""
    ack_delay: Milliseconds = 200
    """For how long acknowledgements gather."""
    window: int = 1_000
    """Messages of a session that a client has not handed back, before its broker waits for it."""
    catch_up: int = 200
    """Messages of a pubend that are asked for at a time."""
    resend: Milliseconds = 500
    """When client and broker repeat what the other has not acknowledged."""
    log_most: int = 100_000
    """Messages of a publishers' broker that some client lacks, before its publishers have to wait."""
    checkpoint: int = 200
    """Log records that must be done with before the log is cut."""
    lease: Milliseconds | None = None
    """What has waited for a client for so long is given up, if nothing was heard of the client for as long (none: it is
    kept without an end)."""
    pubends: list[str] = field(default_factory=list)
    """The brokers at which events may be published (empty: all that take clients, but for backups)."""
    backups: dict[str, list[str]] = field(default_factory=dict)
    """Of such brokers the backup and the witness: `{b0: [b1, b2]}`. A backup has the same log, and takes over."""
    beat: Milliseconds = 100
    """How often the broker that serves a pubend tells the other one that it is there."""
    silence: Milliseconds = 1_000
    """After that long without a word of its backup a broker asks to go on alone; a backup that hears nothing asks to
    take over after twice as long."""

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, int) and value < 1:
                raise InputError(each.name, repr(value), "at least 1")
        if self.rest > self.rest_most:
            found = f"rest {self.rest} ms above rest_most {self.rest_most} ms"
            raise InputError("rest", found, "at most rest_most: it is the first of the waiting times")
        if self.idle < self.rest_most:
            raise InputError("idle", f"idle {self.idle} ms below rest_most {self.rest_most} ms", "at least rest_most")
        if self.lease is not None and self.lease < 2 * self.rest_most:
            found = f"lease {self.lease} ms with rest_most {self.rest_most} ms"
            raise InputError("lease", found, "at least twice rest_most: so seldom a client may be reminded")
        if self.silence < 3 * self.beat:
            found = f"silence {self.silence} ms with beat {self.beat} ms"
            raise InputError("silence", found, "at least three times beat: one word that is late would be missed")
        _check_backups(self.backups, self.pubends)

    @property
    def limits(self) -> Limits:
        """How they limit what durable subscriptions are promised."""
        leased_us = None if self.lease is None else self.lease * 1_000
        return Limits(leased_us, waits_above=self.log_most, told_again_us=2 * self.rest_most * 1_000)

    @property
    def redundant(self) -> tuple[RedundantEnd, ...]:
        """The brokers of pubends that have a backup."""
        return tuple(
            RedundantEnd(host, backup, witness, 3 * self.silence * 1_000, self.log_most)
            for host, (backup, witness) in self.backups.items()
        )


def _check_backups(backups: Mapping[NodeName, Sequence[NodeName]], pubends: Sequence[NodeName]) -> None:
    """Raise `InputError` for brokers that cannot stand in for one another."""
    of: dict[NodeName, NodeName] = {}
    for host, others in backups.items():
        place = f"backups.{host}"
        if len(others) != 2:
            raise InputError(place, repr(others), "two brokers: the backup and the witness")
        backup, witness = others
        if len({host, backup, witness}) < 3:
            raise InputError(place, repr(others), f"two other brokers than {host}, and than each other")
        if backup in backups or backup in pubends:
            raise InputError(place, f"the backup {backup!r}", "a broker at which nothing is published by itself")
        if backup in of:
            raise InputError(place, f"{backup!r}, the backup of {of[backup]} too", "a backup of its own")
        if pubends and host not in pubends:
            raise InputError(place, "a backup of what is not in `pubends`", f"those of {', '.join(pubends)}")
        of[backup] = host


def entrances(parameters: EndToEndParameters, client_brokers: Sequence[NodeName]) -> Sequence[NodeName]:
    """The brokers with pubends, of those that take clients."""
    for broker in parameters.pubends:
        if broker not in client_brokers:
            allowed = f"brokers that take clients: {', '.join(client_brokers[:10])}"
            raise InputError("pubends", repr(broker), allowed)
    for each in parameters.redundant:
        for broker in each.names:
            if broker not in client_brokers:
                allowed = f"brokers that take clients: {', '.join(client_brokers[:10])}"
                raise InputError(f"backups.{each.host}", repr(broker), allowed)
    if parameters.backups and not parameters.pubends:
        backups = {each.backup for each in parameters.redundant}
        return [broker for broker in client_brokers if broker not in backups]
    return [broker for broker in client_brokers if broker in parameters.pubends] or client_brokers
