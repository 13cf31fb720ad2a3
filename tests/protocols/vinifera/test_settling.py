"""When a node of the gossip overlay says that what its subscribers ask for has settled."""

from collections.abc import Callable

from murmur_pubsub.filter import EVERYTHING
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.machine import Received
from routing.smallworld.messages import Exchange, Install
from tests.protocols.vinifera.one_node import CYCLE_US, FLUSH, ROUND, TENTH, acquainted, answer, fields, node


def test_a_node_settles_three_rounds_after_the_last_change() -> None:
    """Changes: an own subscription, one that a neighbour comes to have, another neighbour on the ring."""
    router = acquainted(a=TENTH)

    def rounds_until_settled() -> int:
        router.handle(FLUSH, 1)
        rounds = 0
        while router.settling:
            router.handle(ROUND, 2)
            for name, at in (("a", TENTH), ("b", 5 * TENTH), ("c", 5 * TENTH)):
                if name in router.overlay.contacts:
                    router.handle(Received(name, answer(at, 2 + router.overlay.round)), 3)
            router.handle(FLUSH, 4)
            rounds += 1
        return rounds

    assert rounds_until_settled() == 3
    changes: list[Callable[[], object]] = [
        lambda: router.subscribe(parse_filter("x > 1")),
        lambda: router.unsubscribe(parse_filter("x > 1")),
        lambda: router.handle(Received("a", Install(0, 1, 0, [1, 0, 9, 0], [EVERYTHING])), 5),
        lambda: router.handle(Received("a", Install(0, 2, 1, [1, 20, 29, 0], [EVERYTHING])), 5),
        lambda: router.handle(Received("a", Exchange(fields("a", TENTH), [fields("b", 5 * TENTH)], True)), 5),
    ]
    for change in changes:
        change()
        assert rounds_until_settled() == 3
    for what, install in (
        ("an addition to what is not here", Install(0, 9, 8, [1, 20, 29, 0], [EVERYTHING])),
        ("to take back what is wanted no more", Install(0, 10, 0, [1, 20, 25, 0], [EVERYTHING])),
        ("to want nothing", Install(0, 11, 0, [], [])),
    ):
        router.handle(Received("a", install), 5)
        router.handle(FLUSH, 6)
        assert not router.settling, f"{what} keeps no event from anybody"


def test_a_node_counts_as_settled_when_nothing_was_asked_of_it_for_sixty_rounds_however_the_ring_changes() -> None:
    router = acquainted(a=TENTH)
    router.subscribe(parse_filter("x > 1"))
    for number in range(62):
        assert router.settling == (number <= 60)
        nearer = fields(f"b{number}", 5 * TENTH + number)
        router.handle(Received("a", Exchange(fields("a", TENTH), [nearer], True)), 1)
        router.handle(Received("a", answer(TENTH, 2 + number)), 1)
        router.handle(ROUND, 2)


def test_while_somebody_always_asks_a_node_knows_what_was_asked_some_rounds_ago_to_have_settled() -> None:
    """Three whole rounds while the ring is still, else ten."""
    router = acquainted(a=TENTH)
    settled_us = []
    for number in range(1, 31):
        began_us = number * CYCLE_US
        router.handle(ROUND, began_us)
        router.handle(Received("a", answer(TENTH, 1 + number)), began_us + 1)
        router.subscribe(parse_filter(f"x > {number}"))
        if number == 15:
            nearer = fields("b", 5 * TENTH)
            router.handle(Received("a", Exchange(fields("a", TENTH), [nearer], True)), began_us + 2)
        settled_us.append(router.settled_until_us)
        assert router.settling
    rounds = [(each + 1) // CYCLE_US for each in settled_us]
    assert rounds[:2] == [0, 0], "it cannot tell"
    assert rounds[2:14] == [*range(1, 13)]
    assert rounds[14:17] == [6, 7, 8], "the ring has changed in the 15th round"
    assert rounds[17:] == [*range(16, 29)]


def test_a_node_outside_has_not_settled_however_long_it_waits() -> None:
    router = node("a")
    for _ in range(70):
        router.handle(ROUND, 1)
        assert router.settled_until_us == -1
    assert router.settling
