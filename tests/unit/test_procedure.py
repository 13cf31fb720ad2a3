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


@pytest.mark.parametrize(("steps", "told"), [(19, "OPEN -> SLAM"), (20, "SLAM -> SHUT -> PULL -> OPEN -> ")])
def test_of_a_long_story_the_end_is_told(steps: int, told: str) -> None:
    """Its beginning and nineteen steps, or the last twenty."""
    door = Procedure("door", "b0", TABLE, Door.OPEN)
    for number in range(steps):
        door.take(Push.PULL if number % 2 else Push.SLAM)
    with pytest.raises(IllegalStep, match=f"after {told}") as error:
        door.take(Push.SLAM if steps % 2 else Push.PULL)
    assert str(error.value).count("SLAM -> ") + str(error.value).count("PULL -> ") == min(steps, 20)
