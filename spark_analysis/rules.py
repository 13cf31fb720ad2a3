"""What of a run decides which deliveries are required and allowed: the same for both judges."""

from dataclasses import dataclass

from murmur_pubsub.run_manifest import RunManifest
from spark_analysis.fault_windows import NEVER_US

_ONE_CLOCK_US = 1_000
"""How far the clock of one host may go back while it is set right."""
_CLOCKS_US = 50_000
"""How far the clocks of two hosts may be apart."""


@dataclass(frozen=True, slots=True)
class Rules:
    """`withdrawal_grace_us`: an event published so shortly before a withdrawal need not arrive, and one published so
    shortly after it had settled may. `subscription_grace_us`: an event published so shortly before a subscription may
    arrive. `keeps_events`: the promise is to keep events for later subscribers. `recovery_limit_us`: a withdrawal
    counts as settled after that, whatever the protocol says. `clocks_us`: how far clocks may be apart, so that an event
    seems to be delivered before it is published. `durable`: subscriptions outlive connections. `total_order`: two
    subscribers that both get two events get them in the same order."""

    withdrawal_grace_us: int = 0
    subscription_grace_us: int = 0
    keeps_events: bool = False
    recovery_limit_us: int = NEVER_US
    clocks_us: int = _CLOCKS_US
    durable: bool = False
    total_order: bool = False


def rules_of(manifest: RunManifest) -> Rules:
    """The rules of that run."""
    return Rules(
        manifest.withdrawal_grace_us,
        manifest.subscription_grace_us,
        manifest.promise.keeps_events,
        manifest.recovery_limit_us,
        0 if manifest.runtime == "virtual" else _CLOCKS_US if manifest.cluster is not None else _ONE_CLOCK_US,
        manifest.promise.durable,
        manifest.promise.order == "total",
    )
