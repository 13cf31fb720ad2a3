"""The states of a node that joins a Pastry overlay, and the steps between them.

What is sent and learned in each state is in `routing.pastry.node`.
"""

from collections.abc import Mapping
from enum import Enum


class JoinState(Enum):
    """How far the node is."""

    OUTSIDE = "has not started"
    ASKING = "has sent its request to a bootstrap peer"
    GATHERING = "asks the peers of the reply, and others at random, whether they are there"
    JOINED = "is part of the overlay"


class JoinStep(Enum):
    """What takes it further."""

    FOUND = "it is the first node"
    FOUND_ANEW = "all have failed and are back, and it is the first of them"
    ASK = "it starts"
    ASK_AGAIN = "no reply in time, asks the next bootstrap peer and one that it remembers"
    REPLY = "a reply"
    ALL_ANSWERED = "all that were asked have answered"
    SETTLE = "time is over, and some have answered"
    START_OVER = "time is over, and no peer has answered"


JOIN_TRANSITIONS: Mapping[tuple[JoinState, JoinStep], JoinState] = {
    (JoinState.OUTSIDE, JoinStep.FOUND): JoinState.JOINED,
    (JoinState.ASKING, JoinStep.FOUND_ANEW): JoinState.JOINED,
    (JoinState.OUTSIDE, JoinStep.ASK): JoinState.ASKING,
    (JoinState.ASKING, JoinStep.ASK_AGAIN): JoinState.ASKING,
    (JoinState.ASKING, JoinStep.REPLY): JoinState.GATHERING,
    # A second request may have gone out before the first one was replied to: both are.
    (JoinState.GATHERING, JoinStep.REPLY): JoinState.GATHERING,
    (JoinState.GATHERING, JoinStep.ALL_ANSWERED): JoinState.JOINED,
    (JoinState.GATHERING, JoinStep.SETTLE): JoinState.JOINED,
    (JoinState.GATHERING, JoinStep.START_OVER): JoinState.ASKING,
}
