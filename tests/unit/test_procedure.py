"""Procedures: the table decides where a step leads, and an illegal step tells the story."""

from enum import Enum

import pytest

from murmur_pubsub.procedure import IllegalStep, Procedure


class Door(Enum):
    OPEN = "open"
    SHUT = "shut"


class Push(Enum):
    PULL = "pull"
    SLAM = "slam"


TABLE = {(Door.OPEN, Push.SLAM): Door.SHUT, (Door.SHUT, Push.PULL): Door.OPEN}


def test_a_step_leads_to_the_state_of_the_table() -> None:
    door = Procedure("door", "b0", TABLE, Door.OPEN)
    door.take(Push.SLAM)
    assert door.state is Door.SHUT


def test_an_illegal_step_raises_with_the_story_and_changes_nothing() -> None:
    door = Procedure("door", "b0", TABLE, Door.OPEN)
    door.take(Push.SLAM, "by b1")
    door.take(Push.PULL)
    story = r"door at b0: no PULL \(by b2\) in the state OPEN, after OPEN -> SLAM \(by b1\) -> SHUT -> PULL -> OPEN"
    with pytest.raises(IllegalStep, match=story):
        door.take(Push.PULL, "by b2")
    assert door.state is Door.OPEN
