"""What IRBR's own messages say besides: that their sender is there, and which ranges there are."""

import pytest

from murmur_pubsub.errors import WireError
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.machine import NodeContext, Received, Send, Start, TimerFired
from murmur_pubsub.places import RingPlace
from routing.irbr.messages import RangeSubscription
from routing.irbr.router import Irbr, IrbrParameters
from routing.pastry.identifiers import FULL_RANGE, IdentifierRange, IdentifierSpace
from routing.pastry.messages import PastryPeer, Ping
from routing.pastry.sense import range_check

ROUND, DEADLINE = (TimerFired(("routing", "pastry", name)) for name in ("round", "deadline"))


@pytest.mark.parametrize("speaks", [False, True])
def test_a_peer_that_says_anything_is_not_asked_again_whether_it_is_there(speaks: bool) -> None:
    node = Irbr(NodeContext("n", 1, place=RingPlace(0, base=4, digits=4, founds=True)), IrbrParameters())
    node.handle(Start([]), 0)
    node.know([PastryPeer("far", 200)])
    node.handle(ROUND, 1)
    if speaks:
        own, of_far = node.pastry.table.cell_of(200), IdentifierRange(0, 1)
        node.handle(Received("far", RangeSubscription(200, 1, own, parse_filter("x = 1"), of_far)), 2)
    asked = [each.to for each in node.handle(DEADLINE, 3) if isinstance(each, Send) and isinstance(each.message, Ping)]
    assert asked == ([] if speaks else ["far"])


def test_a_range_of_no_digits_is_the_whole_space() -> None:
    check = range_check(IdentifierSpace(4, 4))
    assert check((0, 0)) == FULL_RANGE
    for senseless in ((1, 0), (0, -1), (0, 5), (256, 4), (-1, 4)):
        with pytest.raises(WireError):
            check(senseless)
    assert check((255, 4)) == IdentifierRange(255, 4)
