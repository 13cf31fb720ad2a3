"""How long a failure may cost deliveries over the gossip overlay."""

from murmur_pubsub.places import RingPlace
from murmur_pubsub.promise import Recovery
from routing.founding import founded_us
from routing.smallworld.installation import EXPIRES_ROUNDS
from routing.smallworld.overlay import SILENT_ROUNDS
from routing.smallworld.quarantine import QUARANTINE_ROUNDS


def gossip_recovers(place: RingPlace) -> Recovery:
    """A failure is noticed when a peer has been silent for some rounds, of which the first may just have begun. For
    some more a node that was only out of reach is not believed to be back, whoever says so; in them nodes look for
    other parts of the overlay, too. Then subscriptions are installed where they belong, and old entries expire."""
    rounds = 1 + SILENT_ROUNDS + QUARANTINE_ROUNDS + EXPIRES_ROUNDS
    return Recovery(rounds * place.probe_us + place.probe_timeout_us, founded_us(place))
