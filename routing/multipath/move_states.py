"""The states of a Δ-move at one broker of its zone, and the steps between them (section 6).

What happens in each state is in `routing.multipath.moves`, and why, in `routing.multipath.delta_move`.
"""

from collections.abc import Mapping
from enum import Enum


class MoveState(Enum):
    """How far the move is at this broker."""

    OUTSIDE = "no move touches this broker"
    PREPARATION = "the mover waits for the map of its destination"
    INIT = "no soft link passes the mover by"
    IN_PROGRESS = "the new tree is known, copies sent by the old one are still passed on by the old one"
    END = "all in the zone know the new tree, the old one is kept for late copies"
    PAST = "the old tree is forgotten"


class MoveStep(Enum):
    """What takes it further."""

    GRANTED = "at the mover, the coordinator grants the move"
    UNDONE = "the mover gives the move up, or is away"
    MAP = "at the mover, the map has come and m_init goes out"
    M_INIT = "m_init"
    M_INPROG = "m_inprog (at the mover, m_init is confirmed)"
    M_END = "m_end (at the mover, m_inprog is confirmed)"
    GRACE_OVER = "the grace is over"
    FORGET = "a second grace is over"
    FINISH = "at the mover, m_end is confirmed and two graces are over"
    OTHER_MOVE = "another move begins, which is granted when this one is over"


_LATE = {(state, MoveStep.OTHER_MOVE): MoveState.OUTSIDE for state in list(MoveState)[2:]}
"""A broker that could not be reached may have missed the end of a move, and one that was stalled, its own timers."""

MOVE_TRANSITIONS: Mapping[tuple[MoveState, MoveStep], MoveState] = {
    (MoveState.OUTSIDE, MoveStep.GRANTED): MoveState.PREPARATION,
    (MoveState.PREPARATION, MoveStep.UNDONE): MoveState.OUTSIDE,
    (MoveState.PREPARATION, MoveStep.MAP): MoveState.INIT,
    (MoveState.OUTSIDE, MoveStep.M_INIT): MoveState.INIT,
    (MoveState.INIT, MoveStep.M_INPROG): MoveState.IN_PROGRESS,
    (MoveState.IN_PROGRESS, MoveStep.M_END): MoveState.END,
    (MoveState.END, MoveStep.GRACE_OVER): MoveState.PAST,
    (MoveState.PAST, MoveStep.FORGET): MoveState.OUTSIDE,
    (MoveState.PAST, MoveStep.FINISH): MoveState.OUTSIDE,
    # A broker that was away when m_init passed takes part from m_inprog on.
    (MoveState.OUTSIDE, MoveStep.M_INPROG): MoveState.IN_PROGRESS,
    (MoveState.INIT, MoveStep.UNDONE): MoveState.OUTSIDE,
    (MoveState.IN_PROGRESS, MoveStep.UNDONE): MoveState.END,
    **_LATE,
}
