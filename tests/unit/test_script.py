"""A script is played in order of time, and its commands are numbered so that a restart does not change them."""

import pytest

from murmur_pubsub.faults import Fault, FaultKind
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.machine import Publish, Subscribe, Unsubscribe
from murmur_pubsub.script import CommandSteps, Player, ScriptedCommand, subscribers_of
from tests.deployments import PlainScript

SCRIPT = PlainScript(
    subscriptions=((0, "x > 0"), (1, "x > 1")),
    publications=((10, 5, {"x": 1}), (20, 6, {"x": 2}), (20, 5, {"x": 3}), (40, 5, {"x": 4})),
    changes=((20, "unsubscribe", 0, "x > 0"), (30, "subscribe", 2, "x > 2")),
)
ASKED = [
    ScriptedCommand(Subscribe(0, parse_filter("x > 0")), 0),
    ScriptedCommand(Subscribe(1, parse_filter("x > 1")), 1),
]
WITHDRAWN = ScriptedCommand(Unsubscribe(0, parse_filter("x > 0")), 2)
CHANGED = ScriptedCommand(Subscribe(2, parse_filter("x > 2")), 3)


def told(scripted: ScriptedCommand) -> object:
    """A publication by its numbers, its time and its contents; what else it is in words, which name its class: tuples
    of two classes are equal if their fields are."""
    command = scripted.command
    if type(command) is not Publish:
        return repr(scripted)
    assert scripted.ordinal == 0
    return (*command.event.id, command.event.time_us, command.event.attributes["x"])


def test_commands_come_in_order_of_time_and_a_change_before_a_publication_of_its_time() -> None:
    player = Player(SCRIPT)
    assert repr(player.subscriptions()) == repr(ASKED)
    played = []
    while (due_us := player.next_us) is not None:
        played.append((due_us, told(player.take(100 + due_us))))
    assert played == [
        (10, (5, 0, 110, 1)),
        (20, repr(WITHDRAWN)),
        (20, (6, 0, 120, 2)),
        (20, (5, 1, 120, 3)),
        (30, repr(CHANGED)),
        (40, (5, 2, 140, 4)),
    ]
    with pytest.raises(IndexError, match="the script is over"):
        player.take(200)


@pytest.mark.parametrize(
    ("elapsed_us", "caught_up", "next_us"),
    [
        (0, ASKED, 10),
        (20, ASKED, 20),
        (21, [*ASKED, WITHDRAWN], 30),
        (31, [*ASKED, WITHDRAWN, CHANGED], 40),
        (41, [*ASKED, WITHDRAWN, CHANGED], None),
    ],
)
def test_after_a_restart_what_was_due_is_issued_again_but_for_publications(
    elapsed_us: int, caught_up: list[ScriptedCommand], next_us: int | None
) -> None:
    player = Player(SCRIPT)
    assert repr(player.catch_up(elapsed_us)) == repr(caught_up)
    assert player.next_us == next_us


def test_a_number_is_never_used_twice_though_its_event_was_not_published() -> None:
    player = Player(SCRIPT)
    player.catch_up(31)
    assert told(player.take(50)) == (5, 2, 50, 4)


def test_a_script_of_changes_alone_and_one_of_nothing() -> None:
    player = Player(PlainScript(changes=((7, "subscribe", 3, "x > 3"),)))
    assert player.next_us == 7
    assert told(player.take(8)) == repr(ScriptedCommand(Subscribe(3, parse_filter("x > 3")), 0))
    assert player.next_us is None
    assert Player(PlainScript()).next_us is None
    assert Player(PlainScript()).catch_up(5) == []


def test_a_subscription_of_several_filters_is_a_command_for_each_and_so_is_its_withdrawal() -> None:
    either = "x > 0 OR y > 0"
    script = PlainScript(subscriptions=((0, either), (1, "x > 9")), changes=((20, "unsubscribe", 0, either),))
    player = Player(script)
    x, y = parse_filter("x > 0"), parse_filter("y > 0")
    asked = [ScriptedCommand(Subscribe(0, x), 0), ScriptedCommand(Subscribe(0, y), 1)]
    assert repr(player.subscriptions()[:2]) == repr(asked)
    assert [(player.next_us, repr(player.take(20))) for _ in range(2)] == [
        (20, repr(ScriptedCommand(Unsubscribe(0, x), 3))), (20, repr(ScriptedCommand(Unsubscribe(0, y), 4))),
    ]  # fmt: skip
    steps = CommandSteps({"c1": script})
    issued = steps.commands(Fault(0, FaultKind.SUBSCRIBE, ("c1",), issuer=9, wanted="y > 0 OR x > 0"), 90)
    assert repr(issued) == repr([ScriptedCommand(Subscribe(9, y), 5), ScriptedCommand(Subscribe(9, x), 6)])
    assert repr(steps.again("c1")) == repr(issued)
    assert subscribers_of(PlainScript(subscriptions=((3, either),)), "x > 0 OR y > 0") == [3]
    assert subscribers_of(PlainScript(subscriptions=((3, "y>0 OR x>0"),)), "x > 0 OR y > 0") == [3]
    assert subscribers_of(PlainScript(subscriptions=((3, either),)), "x > 0") == []


def test_steps_of_a_plan_are_numbered_apart_from_the_script_and_known_after_a_restart() -> None:
    steps = CommandSteps({"c1": SCRIPT})
    published = [Fault(0, FaultKind.PUBLISH, ("c1",), issuer=7, attributes=(("x", value),)) for value in (1, 2)]
    assert [told(*steps.commands(each, 90)) for each in published] == [(7, 0, 90, 1), (7, 1, 90, 2)]
    assert steps.again("c1") == []
    subscribed = [Fault(0, FaultKind.SUBSCRIBE, (name,), issuer=9, wanted="x > 9") for name in ("c1", "c1", "c2")]
    issued = [scripted for each in subscribed for scripted in steps.commands(each, 90)]
    assert [scripted.ordinal for scripted in issued] == [4, 5, 0]
    assert repr(steps.again("c1")) == repr(issued[:2])
    assert issued[0].command == Subscribe(9, parse_filter("x > 9"))


def test_who_wants_a_filter_all_the_time_is_found_in_whatever_form_it_is_written() -> None:
    script = PlainScript(
        subscriptions=((0, "x > 0"), (1, "x>0"), (2, "x > 2"), (3, "x > 0")), changes=((20, "unsubscribe", 3, "x > 0"),)
    )
    assert subscribers_of(script, "x > 0") == [0, 1]
    assert subscribers_of(None, "x > 0") == []


def test_a_withdrawal_by_a_step_is_told_again_after_its_subscription() -> None:
    steps = CommandSteps({})
    for kind in (FaultKind.SUBSCRIBE, FaultKind.UNSUBSCRIBE):
        steps.commands(Fault(0, kind, ("c1",), issuer=9, wanted="x > 9"), 90)
    wanted = parse_filter("x > 9")
    assert steps.again("c1") == [
        ScriptedCommand(Subscribe(9, wanted), 0), ScriptedCommand(Unsubscribe(9, wanted), 1),
    ]  # fmt: skip
