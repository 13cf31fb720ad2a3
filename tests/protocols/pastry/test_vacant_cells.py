"""Cells whose peer has failed: they are looked after until another is found, or the layer above knows better."""

from murmur_pubsub.machine import LinkDown, NodeContext, Start
from murmur_pubsub.places import RingPlace
from routing.pastry.messages import PastryPeer
from routing.pastry.node import Pastry


def test_pastry_s2_a_cell_that_is_known_to_be_empty_is_vacant_no_more() -> None:
    node = Pastry(NodeContext("n", 1, place=RingPlace(0, base=4, digits=4, founds=True)))
    node.handle(Start([]), 0)
    node.know([PastryPeer("far", 200), PastryPeer("near", 3)])
    node.handle(LinkDown("far", "gone"), 1)
    node.handle(LinkDown("near", "gone"), 2)
    far, near = node.table.cell_of(200), node.table.cell_of(3)
    assert node.vacant() == [far, near]
    node.is_empty(near)
    assert node.vacant() == [far]
