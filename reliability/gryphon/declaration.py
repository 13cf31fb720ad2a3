"""What guaranteed delivery says of itself (`reliability.gryphon.gryphon` is one broker's part of it)."""

from murmur_pubsub.measure import Measure
from murmur_pubsub.promise import PUBLISHERS_WAIT, Limits, Promise, Survival
from reliability.gryphon.ack_expected import ACK_EXPECTED_SENT
from reliability.gryphon.client import GryphonClient
from reliability.gryphon.gryphon import Gryphon
from reliability.gryphon.parameters import GryphonParameters, entrances
from reliability.gryphon.streams import NACK_SENT
from reliability.protocol import ReliabilityProtocol
from routing.protocol import Offer

GRYPHON = ReliabilityProtocol(
    name="gryphon",
    make=Gryphon,
    parameters=GryphonParameters,
    guarantee=Promise("exactly_once", survives=Survival(any_path=True)),
    order=lambda parameters: parameters.order,
    limits=lambda parameters: Limits(waits_above=parameters.log_most),
    needs=frozenset({Offer.STREAMS}),
    client=GryphonClient,
    entrances=entrances,
    measures=(
        Measure(NACK_SENT, "ticks asked for by nacks", "sum"),
        Measure(ACK_EXPECTED_SENT, "acknowledgements asked for", "rows"),
        Measure(PUBLISHERS_WAIT, "publishers have to wait", "level"),
    ),
    tried={
        "gct": ("50 ms", "500 ms"), "nrt": ("500 ms",), "sit": ("100 ms",), "ack_delay": ("20 ms",),
        "forgetting": ("50 ms",), "nack_chunk": ("50 ms",), "cache": (5,), "receive_cache": (20,), "window": (5,),
        "checkpoint": (5,),
    },
    tried_seldom={
        "log_most": (3, 10, 30), "dct": ("800 ms",), "aet": ("500 ms",), "aet_most": ("4 s",), "resend": ("100 ms",),
        "nrt_least": ("20 ms",), "nrt_most": ("1 s",),
    },
)  # fmt: skip
