"""Properties for tests, and a protocol that never comes to rest."""

from murmur_pubsub.event import Event
from murmuration.hunt.properties import Property, Sight
from reliability.best_effort import BestEffort

BOTH_DOWN = Property(
    "b1 and b2 are away", "sometimes", lambda sight: "one is there" if {"b1", "b2"} & sight.machines.keys() else None
)
NEVER = Property("the sky falls", "sometimes", lambda sight: "it does not")


def _without_b1(sight: Sight) -> str | None:
    return None if "b1" in sight.machines else "b1 is away"


B1_IS_THERE = Property("b1 is there", "always", _without_b1)
B1_IS_BACK = Property("b1 is back", "eventually", _without_b1)


class Restless(BestEffort):
    """Waits for something for ever, once a broker has gone."""

    bereft = False

    def handle(self, input, now_us):  # type: ignore[no-untyped-def]
        self.bereft |= type(input).__name__ == "LinkDown"
        return super().handle(input, now_us)

    @property
    def waiting(self) -> bool:
        return self.bereft


class Hoarding(BestEffort):
    """Keeps every event that passes."""

    def __init__(self, context, parameters, services):  # type: ignore[no-untyped-def]
        super().__init__(context, parameters, services)
        self.passed: list[Event] = []

    def _pass_on(self, event, *way):  # type: ignore[no-untyped-def]
        self.passed.append(event)
        return super()._pass_on(event, *way)


class Remembering(Hoarding):
    """Says that it does so on purpose."""

    remembers = ("passed",)


class Unready(BestEffort):
    """Raises before anything is published."""

    def handle(self, input, now_us):  # type: ignore[no-untyped-def]
        raise RuntimeError("not yet")
