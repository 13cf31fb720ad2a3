"""How long a failure may cost deliveries over Pastry."""

from murmur_pubsub.places import RingPlace
from murmur_pubsub.promise import Recovery
from routing.founding import founded_us
from routing.pastry.quarantine import QUARANTINE_ROUNDS


def pastry_recovers(place: RingPlace) -> Recovery:
    """A failure is noticed a round and a timeout after it. For some rounds from then on a node that was only out of
    reach is not believed to be back, whoever says so; in them nodes look for other parts of the overlay, too. What is
    missing after that is asked for row by row, a row in each round. The layer above follows at the end of a round."""
    rounds = 1 + QUARANTINE_ROUNDS + place.digits + 1
    return Recovery(rounds * place.probe_us + place.probe_timeout_us, founded_us(place))
