"""A machine around another one is as the one inside, but for what it does otherwise."""

from collections.abc import Sequence

from murmur_pubsub.machine import Effect, Input, Machine, SetTimer, Start
from murmur_pubsub.machine_around import MachineAround


class Inside(Machine):
    """Sets a timer whatever comes, and says yes to all that it is asked."""

    waiting = settling = hears_resets = True
    settled_until_us = 5

    def __init__(self) -> None:
        self.message_types: Sequence[type] = (Start,)
        self.checked = 0

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        return [SetTimer(("routing", type(input).__name__), now_us)]

    def check_invariants(self) -> None:
        self.checked += 1


def test_a_machine_around_another_does_and_says_what_that_does_and_says() -> None:
    inside = Inside()
    around = MachineAround(inside)
    assert around.handle(Start([]), 7) == [SetTimer(("routing", "Start"), 7)]
    assert (around.waiting, around.settling, around.hears_resets) == (True, True, True)
    assert around.settled_until_us == 5
    assert around.message_types == inside.message_types
    assert around.orders is inside.orders
    around.check_invariants()
    assert inside.checked == 1
