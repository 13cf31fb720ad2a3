"""The parameters of durable subscriptions: those of guaranteed delivery, how catching up goes, and what is kept."""

from dataclasses import dataclass, field
from typing import Literal

from murmur_pubsub.errors import InputError
from murmur_pubsub.promise import Limits
from murmur_pubsub.units import Milliseconds
from reliability.gryphon.parameters import GryphonParameters


@dataclass(frozen=True, slots=True)
class DurableParameters(GryphonParameters):
    """One broker's thresholds; a client's too."""

    order: Literal["publisher", "total"] = field(default="publisher", init=False)
    """No choice: a client that was away is caught up pubend by pubend."""
    catch_up: int = 200
    """Messages of a pubend that a client is caught up with at a time."""
    lease: Milliseconds | None = None
    """What has waited for a client for so long is given up, if nothing was heard of the client for as long (none: it is
    kept without an end)."""
    drop_above: int | None = None
    """While more messages than that are in the log of a publishers' broker, the oldest is given up for the clients that
    lack it (none: they are kept, and `log_most` has publishers wait)."""
    refuse_above: int | None = None
    """While so many messages are in the log of a publishers' broker, it refuses publications (none: it takes them, and
    `log_most` has publishers wait)."""

    def __post_init__(self) -> None:
        GryphonParameters.__post_init__(self)  # slots: super() would be that of the class before they were added
        if self.lease is not None and self.lease < 2 * self.ack_delay:
            found = f"lease {self.lease} ms with ack_delay {self.ack_delay} ms"
            raise InputError("lease", found, "at least twice ack_delay: nothing is heard of a client sooner than that")
        if self.drop_above is not None and self.drop_above > self.log_most // 2:
            found = f"drop_above {self.drop_above} with log_most {self.log_most}"
            raise InputError("drop_above", found, "at most half of log_most: above that publishers are made to wait")

        if self.refuse_above is not None and not (self.drop_above or 0) < self.refuse_above <= self.log_most:
            found = f"refuse_above {self.refuse_above} with drop_above {self.drop_above} and log_most {self.log_most}"
            raise InputError("refuse_above", found, "above drop_above, and at most log_most")

    @property
    def acknowledged_within(self) -> tuple[int, int]:
        """As under guaranteed delivery. With a lease several times in it: of a client that is here, and that an event
        has not reached, nothing is heard before its publishers' broker asks."""
        within = self.aet, self.aet_most
        if self.lease is None:
            return within
        first, most = (min(each, max(self.ack_delay, self.lease // 4)) for each in within)
        return first, most

    @property
    def limits(self) -> Limits:
        """How they limit what durable subscriptions are promised."""
        leased_us = None if self.lease is None else self.lease * 1_000
        told_again_us = 2 * self.acknowledged_within[1] * 1_000
        return Limits(leased_us, self.drop_above, self.refuse_above, self.log_most, told_again_us)
