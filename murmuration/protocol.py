"""All that a protocol of one's own is written with, under one name.

The parts themselves live on the floors that built-in protocols use; docs/own-protocol.md begins with an empty file.
"""

from murmur_pubsub.errors import InputError
from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.machine import (
    Answer,
    CancelTimer,
    Deliver,
    Effect,
    Input,
    LinkDown,
    LinkUp,
    NodeContext,
    NodeName,
    Order,
    Persist,
    Received,
    Record,
    Send,
    SetTimer,
    Start,
    Stored,
    TimerFired,
    Truncate,
)
from murmur_pubsub.measure import Measure
from murmur_pubsub.message import Hops, Message, message
from murmur_pubsub.promise import Promise, Survival
from murmur_pubsub.units import Microseconds, Milliseconds
from reliability.best_effort import BEST_EFFORT, BestEffort, Forwarded
from reliability.layer import BrokerServices, Reliability
from reliability.protocol import ReliabilityProtocol
from routing.flooding import FLOODING, Flooding
from routing.protocol import NoParameters, Offer, OverlayTraits, RoutingProtocol, RunsOn
from routing.router import Hop, Router

__all__ = [
    "BEST_EFFORT",
    "FLOODING",
    "Answer",
    "BestEffort",
    "BrokerServices",
    "CancelTimer",
    "Deliver",
    "Effect",
    "Event",
    "Filter",
    "Flooding",
    "Forwarded",
    "Hop",
    "Hops",
    "Input",
    "InputError",
    "LinkDown",
    "LinkUp",
    "Measure",
    "Message",
    "Microseconds",
    "Milliseconds",
    "NoParameters",
    "NodeContext",
    "NodeName",
    "Offer",
    "Order",
    "OverlayTraits",
    "Persist",
    "Promise",
    "Received",
    "Record",
    "Reliability",
    "ReliabilityProtocol",
    "Router",
    "RoutingProtocol",
    "RunsOn",
    "Send",
    "SetTimer",
    "Start",
    "Stored",
    "Survival",
    "TimerFired",
    "Truncate",
    "message",
]
