"""Path computation: to which linked brokers a publication goes, given the anchors that match (section 5).

All sets are ints over a working overlay map. `anchors` holds downstream anchors only: those in the direction from
which the publication came are taken out before (line 2 of the paper's Figures 5 and 6).
"""

from collections.abc import Callable

from routing.multipath.overlay_maps import WorkingOverlayMap

PathComputation = Callable[[WorkingOverlayMap, int], int]


def compute_forwarding_s0(wom: WorkingOverlayMap, anchors: int) -> int:
    """S0: to the anchors themselves, which are all primary neighbours when there are no other links."""
    return anchors


def compute_forwarding_s1(wom: WorkingOverlayMap, anchors: int) -> int:
    """S1 (Figure 5): to the farthest broker on the intersection of the paths, one for each branch of the map."""
    between, behind, beyond = wom.between, wom.behind, wom.beyond
    intersection = 0
    rest = anchors
    while rest:
        lowest = rest & -rest
        rest ^= lowest
        number = lowest.bit_length() - 1
        if intersection & between[number]:
            intersection &= between[number] | behind[number]
        else:
            intersection |= between[number]
    forward = 0
    while intersection and anchors:
        number = intersection.bit_length() - 1
        intersection ^= 1 << number
        if anchors & beyond[number]:
            forward |= 1 << number
            anchors &= ~beyond[number]
    return forward


def compute_forwarding_s2(wom: WorkingOverlayMap, anchors: int) -> int:
    """S2 (Figure 6): to every anchor that has no closer anchor on its path."""
    beyond = wom.beyond
    forward = 0
    while anchors:
        lowest = anchors & -anchors
        forward |= lowest
        anchors &= ~beyond[lowest.bit_length() - 1]
    return forward
