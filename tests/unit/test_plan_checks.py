"""What a fault plan may ask for: for each refusal a plan refused at its last step, and one close to it that passes.

A step that is refused wrongly takes a test away from its user; one that is let through does nothing, or breaks a run.
"""

from dataclasses import replace

import pytest

from murmur_pubsub.errors import InputError
from murmur_pubsub.faults import Fault, FaultKind, FaultTargets, NewLinks, PlanRules, takes_back
from murmur_pubsub.links import LinkSpec
from murmur_pubsub.places import CellPlan
from murmur_pubsub.plan_checker import PlanChecker, check_plan

Plan = list[Fault]
KILL, RESTART, STALL, RESUME = FaultKind.KILL, FaultKind.RESTART, FaultKind.STALL, FaultKind.RESUME
CUT, HEAL = FaultKind.CUT, FaultKind.HEAL
CONNECT, DISCONNECT = FaultKind.CONNECT, FaultKind.DISCONNECT
PUBLISH, SUBSCRIBE, UNSUBSCRIBE = FaultKind.PUBLISH, FaultKind.SUBSCRIBE, FaultKind.UNSUBSCRIBE
KILL_ACTOR, RESTART_ACTOR = FaultKind.KILL_ACTOR, FaultKind.RESTART_ACTOR
LOSE_HOST, RETURN_HOST = FaultKind.LOSE_HOST, FaultKind.RETURN_HOST

BROKERS = ("b0", "b1", "b2", "b3")
CHAIN = FaultTargets(
    [*BROKERS, "c0"],
    [("b0", "b1"), ("b1", "b2"), ("b0", "c0")],
    {"b0": 0, "b1": 1, "b2": 2, "b3": 2, "c0": 0},
    frozenset({"b3"}),
    frozenset(BROKERS),
    PlanRules(acyclic=True, orders={"rest": ()}),
    actors=(("b0", "b1"), ("b2", "b3")),
)
"""b0 - b1 - b2, and b3, which is started later; two of them in each actor."""


def step(kind: FaultKind, names: str = "", **more: object) -> Fault:
    return Fault(0, kind, tuple(names.split("-")) if names else (), **more)  # type: ignore[arg-type]


def steps(*named: tuple[FaultKind, str]) -> Plan:
    return [step(kind, names) for kind, names in named]


def split(*groups: str) -> Fault:
    return step(FaultKind.PARTITION, groups=tuple(tuple(group.split()) for group in groups))


def subscribe(name: str, issuer: int, wanted: str = "x > 1") -> Fault:
    return step(SUBSCRIBE, name, issuer=issuer, wanted=wanted)


def unsubscribe(name: str, issuer: int, wanted: str = "x > 1") -> Fault:
    return step(UNSUBSCRIBE, name, issuer=issuer, wanted=wanted)


def order(told: str, verb: str, **arguments: str) -> Fault:
    return step(FaultKind.ORDER, told, verb=verb, arguments=tuple(arguments.items()))


def check_both(targets: FaultTargets, passes: Plan, refused: Plan, found: str) -> None:
    """The one plan passes; the last step of the other is refused with these words, and only that one."""
    check_plan(passes, targets)
    check_plan(refused[:-1], targets)
    with pytest.raises(InputError) as error:
        check_plan(refused, targets)
    assert error.value.place == f"faults, step {len(refused)}"
    assert found in f"{error.value.found}; allowed: {error.value.allowed}"


@pytest.mark.parametrize(
    ("passes", "refused", "found"),
    [
        ([step(KILL, "c0", sigkill=True)], [step(KILL, "b0", sigkill=True)], "whose process is that of 2 nodes"),
        (
            steps((STALL, "b1"), (KILL, "b1"), (RESTART, "b1"), (STALL, "b1")),
            steps((STALL, "b1"), (RESUME, "b1"), (STALL, "b1"), (STALL, "b1")),
            "stall b1, which is stalled then",
        ),
        (
            [step(FaultKind.SLOW, "b1", work_us=0)],
            [step(FaultKind.SLOW, "b1", work_us=-1)],
            "-1 us of work; allowed: a time that is not negative",
        ),
        ([step(KILL, "b0", disk_lost=True)], [step(KILL, "c0", disk_lost=True)], "allowed: a broker: b0, b1, b2, b3"),
        ([order("b0", "rest")], [order("c0", "rest")], "an order to a broker"),
        ([order("b0", "rest")], [order("b0", "rest", by="b1")], "rest with nothing else"),
        ([order("b0", "rest")], [order("b0", "sing")], "an order 'sing'; allowed: one that the protocols know: rest"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_steps_at_one_node(passes: Plan, refused: Plan, found: str) -> None:
    check_both(CHAIN, passes, refused, found)


@pytest.mark.parametrize(
    ("passes", "refused", "found"),
    [
        (
            steps((CUT, "b0-b1"), (HEAL, "b1-b0"), (CUT, "b0-b1")),
            steps((CUT, "b0-b1"), (HEAL, "b1-b0"), (HEAL, "b0-b1")),
            "heal b0-b1, which was not cut",
        ),
        (
            steps((CUT, "b0-b1"), (DISCONNECT, "b0-b1"), (CONNECT, "b0-b1"), (CUT, "b0-b1")),
            steps((CUT, "b0-b1"), (DISCONNECT, "b0-b1"), (CONNECT, "b0-b1"), (HEAL, "b0-b1")),
            "heal b0-b1, which was not cut",
        ),
        (
            [*steps((CUT, "b0-b1"), (DISCONNECT, "b0-b1")), split("b0 b1 c0", "b2 b3")],
            [*steps((CUT, "b0-b1")), split("b0 b1 c0", "b2 b3")],
            "while links are cut already",
        ),
        (
            [split("b0 c0", "b1 b2 b3"), step(FaultKind.UNITE), split("b0 c0", "b1 b2 b3")],
            [split("b0 c0", "b1 b2 b3"), split("b0 c0", "b1 b2 b3")],
            "while links are cut already",
        ),
        (
            [split("b0 c0", "b1 b2 b3"), step(FaultKind.UNITE), step(CUT, "b1-b2")],
            [split("b0 c0", "b1 b2 b3"), step(CUT, "b1-b2")],
            "which may be cut already",
        ),
        ([split("b0 c0", "b1 b2 b3")], [split("b0 c0", "b1 b2 b3", "")], "no group empty"),
        ([split("b0 c0", "b1 b2 b3")], [split("b0 c0", "b1 b2 b3 b1")], "every node in exactly one group"),
        ([split("b0 b1 b2", "b3 c0")], [split("b0 b1 b2 c0", "b3")], "which cuts no link"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_cuts_and_partitions(passes: Plan, refused: Plan, found: str) -> None:
    check_both(CHAIN, passes, refused, found)


HOST_LOST, HOST_BACK = step(LOSE_HOST, host=2), step(RETURN_HOST, host=2)


@pytest.mark.parametrize(
    ("passes", "refused", "found"),
    [
        ([HOST_LOST, HOST_BACK, HOST_LOST], [HOST_LOST, HOST_LOST], "lose host 2, which is lost already"),
        ([HOST_LOST, HOST_BACK], [HOST_LOST, HOST_BACK, HOST_BACK], "return host 2, which is not lost"),
        (
            [step(RESTART, "b3"), HOST_LOST, HOST_BACK, step(KILL, "b3")],
            [HOST_LOST, HOST_BACK, step(KILL, "b3")],
            "kill b3, which is down then",
        ),
        (
            [step(KILL_ACTOR, "b2-b3"), HOST_LOST, HOST_BACK, step(KILL, "b2"), step(RESTART, "b2")],
            [step(KILL_ACTOR, "b2-b3"), HOST_LOST, HOST_BACK, step(RESTART_ACTOR, "b2-b3")],
            "which was not killed",
        ),
        (
            steps((KILL_ACTOR, "b0-b1"), (RESTART_ACTOR, "b0-b1"), (KILL_ACTOR, "b0-b1")),
            steps((KILL_ACTOR, "b0-b1"), (RESTART_ACTOR, "b0-b1"), (RESTART_ACTOR, "b0-b1")),
            "which was not killed",
        ),
        (steps((KILL_ACTOR, "b0-b1")), steps((KILL_ACTOR, "b1-b0")), "allowed: all nodes of one actor"),
        (steps((KILL_ACTOR, "c0")), steps((KILL_ACTOR, "b1-b2")), "allowed: all nodes of one actor"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_hosts_and_actors(passes: Plan, refused: Plan, found: str) -> None:
    check_both(CHAIN, passes, refused, found)


COMMANDED = replace(
    CHAIN,
    rules=PlanRules(publishers={"c0": 5}, subscribing=frozenset({"c0", "b0"}), subscribers_from=3),
    scripted=lambda name, wanted: [1] if (name, wanted) == ("c0", "x > 1") else [],
)
"""By its script subscriber 1 of c0 has a filter all the time; numbers from 3 on are free."""


@pytest.mark.parametrize(
    ("passes", "refused", "found"),
    [
        ([step(PUBLISH, "c0")], [step(PUBLISH, "b0")], "allowed: a node that can: c0"),
        ([subscribe("b0", 3)], [subscribe("b1", 3)], "allowed: a node that can: b0, c0"),
        ([subscribe("c0", 3)], [subscribe("c0", 2)], "subscriber 2, which has a filter; allowed: a new one, from 3 on"),
        ([subscribe("c0", 3), subscribe("c0", 4)], [subscribe("c0", 3), subscribe("c0", 3)], "which has a filter"),
        ([subscribe("c0", 3), unsubscribe("c0", 3)], [unsubscribe("c0", 3)], "a filter that c0 subscribed to"),
        (
            [subscribe("c0", 3), unsubscribe("c0", 3)],
            [subscribe("c0", 3), unsubscribe("c0", 3), unsubscribe("c0", 3)],
            "and has not withdrawn",
        ),
        (
            [subscribe("c0", 3), unsubscribe("c0", 3), subscribe("c0", 4)],
            [subscribe("c0", 3), unsubscribe("c0", 3), subscribe("c0", 3)],
            "which has a filter",
        ),
        ([subscribe("c0", 3)], [subscribe("c0", 3), unsubscribe("c0", 3, "x > 2")], "a filter that c0 subscribed to"),
        ([subscribe("c0", 3)], [subscribe("c0", 3), unsubscribe("b0", 3)], "a filter that b0 subscribed to"),
        ([unsubscribe("c0", 1)], [unsubscribe("c0", 1), unsubscribe("c0", 1)], "and has not withdrawn"),
        ([unsubscribe("c0", 1)], [unsubscribe("b0", 1)], "a filter that b0 subscribed to"),
        ([unsubscribe("c0", 1)], [unsubscribe("c0", 2)], "a filter that c0 subscribed to"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_commands_of_clients(passes: Plan, refused: Plan, found: str) -> None:
    check_both(COMMANDED, passes, refused, found)


def test_where_nobody_can_publish_that_is_said() -> None:
    with pytest.raises(InputError, match="there is none"):
        check_plan([step(PUBLISH, "c0")], CHAIN)


JOINING = replace(CHAIN, rules=PlanRules(acyclic=True, new_links=NewLinks.JOINS), links=[("b0", "b1"), ("b1", "b2")])
RING = replace(CHAIN, rules=PlanRules())


@pytest.mark.parametrize(
    ("targets", "passes", "refused", "found"),
    [
        (CHAIN, [step(CONNECT, "b2-b3")], [step(CONNECT, "b0-b2")], "which closes a cycle by b0, b1, b2"),
        (RING, [step(CONNECT, "b0-b2")], [step(CONNECT, "b0-b1")], "which are connected then"),
        (CHAIN, [step(DISCONNECT, "b0-b1")], [step(DISCONNECT, "b0-b2")], "which are not connected then"),
        (CHAIN, [step(CONNECT, "b3-b0")], [step(CONNECT, "b0-b0")], "which are not two brokers"),
        (CHAIN, [step(CONNECT, "b3-b0")], [step(CONNECT, "b3-c0")], "which are not two brokers"),
        (CHAIN, steps((CONNECT, "b2-b3")), steps((STALL, "b2"), (CONNECT, "b2-b3")), "one of which is stalled"),
        (CHAIN, steps((CONNECT, "b3-b2")), steps((STALL, "b0"), (CONNECT, "b3-b0")), "one of which is stalled"),
        (
            CHAIN,
            [split("b0 c0", "b1 b2 b3"), step(FaultKind.UNITE), step(CONNECT, "b2-b3")],
            [split("b0 c0", "b1 b2 b3"), step(CONNECT, "b2-b3")],
            "during a partition",
        ),
        (
            JOINING,
            steps((KILL, "b0"), (DISCONNECT, "b0-b1")),
            steps((KILL, "b2"), (DISCONNECT, "b0-b1")),
            "which are both up, over a routing whose brokers join",
        ),
        (JOINING, steps((KILL, "b1"), (DISCONNECT, "b0-b1")), steps((DISCONNECT, "b0-b1")), "which are both up"),
        (
            JOINING,
            steps((KILL, "b0"), (DISCONNECT, "b0-b1"), (CONNECT, "b0-b2")),
            steps((CONNECT, "b2-b3"), (KILL, "b1"), (DISCONNECT, "b1-b2"), (CONNECT, "b0-b2")),
            "which both have neighbours; allowed: a link between a broker that has no other broker for a neighbour",
        ),
        (
            replace(CHAIN, rules=PlanRules(new_links=NewLinks.NONE)),
            steps((CUT, "b0-b1")),
            steps((DISCONNECT, "b0-b1")),
            "over a routing whose brokers know their overlay beforehand; allowed: cut and heal",
        ),
    ],
)
def test_links_between_brokers(targets: FaultTargets, passes: Plan, refused: Plan, found: str) -> None:
    check_both(targets, passes, refused, found)


ROAMING = FaultTargets(
    ["b0", "b1", "b2", "b3", "wanders", "both", "twins"],
    [("b0", "b1"), ("b1", "b2"), ("b2", "b3"), ("b0", "wanders"), ("b0", "both"), ("b0", "twins")],
    {},
    brokers=frozenset({"b0", "b1", "b2", "b3"}),
    rules=PlanRules(
        acyclic=True,
        publishers={"wanders": 0, "both": 1, "twins": 2},
        roaming=frozenset({"wanders", "both"}),
        publishing_at=dict.fromkeys(("both", "twins"), frozenset({"b0", "b1"})),
        taking_clients=frozenset({"b0", "b1", "b2"}),
    ),
)
"""Three clients at b0: one goes where clients are, one between two brokers where it publishes, one may do either."""


def goes(client: str, *to: str) -> Plan:
    """From b0 to these brokers, one after another."""
    ways = zip(("b0", *to[:-1]), to, strict=True)
    return [
        step(kind, f"{client}-{at}") for old, new in ways for kind, at in ((DISCONNECT, old), (CONNECT, new))
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("passes", "refused", "found"),
    [
        (goes("wanders", "b2", "b1"), goes("wanders", "b2", "b3"), "where no clients are; allowed: b0, b1, b2"),
        (goes("wanders", "b2"), steps((CONNECT, "wanders-b2")), "which is at b0 then"),
        (goes("wanders", "b2"), steps((DISCONNECT, "wanders-b2")), "not connected then; allowed: wanders and b0"),
        (goes("wanders", "b2"), [step(PUBLISH, "wanders"), *goes("wanders", "b2")[:1]], "which has published"),
        (goes("wanders", "b2"), steps((DISCONNECT, "wanders-b0"), (CONNECT, "wanders-both")), "not two brokers"),
        (
            goes("wanders", "b1"),
            [*goes("wanders", "b1")[:1], step(STALL, "b1"), *goes("wanders", "b1")[1:]],
            "one of which is stalled then",
        ),
        (
            [step(PUBLISH, "wanders"), step(PUBLISH, "wanders")],
            [*goes("wanders", "b1"), step(PUBLISH, "wanders")],
            "which has left its broker",
        ),
        ([*goes("both", "b1"), step(PUBLISH, "both")], [*goes("both", "b2"), step(PUBLISH, "both")], "has left its"),
        ([step(PUBLISH, "both"), *goes("both", "b1")], [step(PUBLISH, "both"), *goes("both", "b2")], "allowed: b0, b1"),
        (
            [*goes("both", "b1"), step(PUBLISH, "both")],
            [*goes("both", "b1"), step(DISCONNECT, "both-b1"), step(PUBLISH, "both")],
            "which has left its broker",
        ),
        (goes("both", "b2", "b1"), goes("both", "b2", "b3"), "where no clients are"),
        (goes("twins", "b1", "b0"), goes("twins", "b1", "b2"), "where it cannot publish; allowed: b0, b1"),
        (goes("twins", "b1"), steps((CONNECT, "twins-b1")), "which is at b0 then"),
        ([*goes("twins", "b1"), step(PUBLISH, "twins")], [step(PUBLISH, "b1")], "a node that can: both, twins, wand"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_clients_that_go_from_broker_to_broker(passes: Plan, refused: Plan, found: str) -> None:
    check_both(ROAMING, passes, refused, found)


CELLS = FaultTargets(
    ["p1", "m1", "m2", "s1", "n1", "c0"],
    [("p1", "m1"), ("p1", "m2"), ("m1", "s1"), ("m2", "s1"), ("s1", "c0")],
    {},
    frozenset({"n1"}),
    frozenset({"p1", "m1", "m2", "s1", "n1"}),
    PlanRules(
        acyclic=True,
        new_links=NewLinks.CELLS,
        orders={"join": ("cell",), "depart": ("broker",)},
        cells=CellPlan(
            {"p": ("p1",), "m": ("m1", "m2"), "s": ("s1",)}, (("p", "m"), ("m", "s")), roots=("p1",), newcomers=("n1",)
        ),
        publishers={"n1": 7, "p1": 8},
        roaming=frozenset({"c0"}),
        taking_clients=frozenset({"s1", "n1"}),
        subscribing=frozenset({"s1", "n1"}),
    ),
)
"""Cells p - m - s; m has two brokers, and n1 is in none at first. A broker that joins s has clients of its own."""
STARTED = [step(RESTART, "n1")]
JOINED = [*STARTED, order("n1", "join", cell="s")]
IN_THE_MIDDLE = [*STARTED, order("n1", "join", cell="m")]
S1_DEPARTS = [*JOINED, order("n1", "depart", broker="s1")]
LEAVES_S1 = [step(DISCONNECT, "c0-s1")]


@pytest.mark.parametrize(
    ("passes", "refused", "found"),
    [
        (steps((CONNECT, "n1-m1"), (CONNECT, "m2-n1")), steps((CONNECT, "p1-s1")), "which have both been started"),
        (steps((CONNECT, "n1-m1")), [*STARTED, step(CONNECT, "n1-m1")], "which have both been started"),
        (
            [order("m2", "depart", broker="m1"), step(DISCONNECT, "m1-s1")],
            [step(DISCONNECT, "m1-s1")],
            "neither of which has departed; allowed: cut and heal; or a link of a broker that has departed",
        ),
        (
            [order("m2", "depart", broker="m1"), step(DISCONNECT, "p1-m1")],
            [order("m1", "depart", broker="m1"), step(DISCONNECT, "p1-m1")],
            "neither of which has departed",
        ),
        ([*JOINED, step(PUBLISH, "n1")], [*STARTED, step(PUBLISH, "n1")], "allowed: a node that can: p1"),
        ([*JOINED, subscribe("n1", 0)], [*IN_THE_MIDDLE, subscribe("n1", 0)], "allowed: a node that can: s1"),
        ([*JOINED, *LEAVES_S1, step(CONNECT, "c0-n1")], [*LEAVES_S1, step(CONNECT, "c0-n1")], "allowed: s1"),
        (
            [*IN_THE_MIDDLE, *LEAVES_S1, step(CONNECT, "c0-s1")],
            [*IN_THE_MIDDLE, *LEAVES_S1, step(CONNECT, "c0-n1")],
            "where no clients are; allowed: s1",
        ),
        (
            [*S1_DEPARTS, *LEAVES_S1, step(CONNECT, "c0-n1")],
            [*S1_DEPARTS, *LEAVES_S1, step(CONNECT, "c0-s1")],
            "where no clients are; allowed: n1",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_brokers_that_join_cells_and_leave_them(passes: Plan, refused: Plan, found: str) -> None:
    check_both(CELLS, passes, refused, found)


@pytest.mark.parametrize(
    ("kind", "link", "work_us", "only_repairs"),
    [
        (FaultKind.SLOW, None, 0, True),
        (FaultKind.SLOW, None, 1, False),
        (FaultKind.CHANGE_LINK, None, 0, True),
        (FaultKind.CHANGE_LINK, LinkSpec(), 0, False),
        (FaultKind.KILL, None, 0, False),
    ],
)
def test_a_step_that_makes_a_node_or_link_as_before_breaks_nothing(
    kind: FaultKind, link: LinkSpec | None, work_us: int, only_repairs: bool
) -> None:
    assert takes_back(kind, link, work_us) == only_repairs


@pytest.mark.parametrize("by_itself", [True, False])
def test_who_died_by_itself_comes_back_with_its_actor_and_who_was_killed_does_not(by_itself: bool) -> None:
    checker = PlanChecker(CHAIN)
    if by_itself:
        checker.note(step(KILL, "b1"))
    else:
        checker.check(step(KILL, "b1"), "test")
    for each in steps((KILL_ACTOR, "b0-b1"), (RESTART_ACTOR, "b0-b1")):
        checker.check(each, "test")
    assert (checker.runs("b0"), checker.runs("b1")) == (True, by_itself)


def test_an_actor_of_which_all_died_by_themselves_cannot_be_killed() -> None:
    checker = PlanChecker(CHAIN)
    for name in ("b0", "b1"):
        checker.note(step(KILL, name))
    with pytest.raises(InputError, match="kill actor of b0, b1, which are down then"):
        checker.check(step(KILL_ACTOR, "b0-b1"), "test")
