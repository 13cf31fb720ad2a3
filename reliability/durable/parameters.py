"""The parameters of durable subscriptions: those of guaranteed delivery, and how catching up goes."""

from dataclasses import dataclass

from reliability.gryphon.parameters import GryphonParameters


@dataclass(frozen=True, slots=True)
class DurableParameters(GryphonParameters):
    """One broker's thresholds; a client's too."""

    catch_up: int = 200
    """Messages of a pubend that a client is caught up with at a time."""
