"""What the judge excuses where an event may have only passed a broker, and where a journal tells of no messages."""

import itertools

import pytest

from murmur_pubsub.faults import FaultKind
from murmur_pubsub.journal import DropReason
from spark_analysis.excuses import Case, Excuses
from spark_analysis.fault_windows import FaultStep, Window
from spark_analysis.passages import Crossing, Loss, Passage

HOMES = {"c0": "p0", "c6": "m11a"}
CELLS = [("p0", "m1a"), ("p0", "m1c"), ("m1a", "m1c"), ("m1a", "m11a"), ("m1c", "m11a"), *HOMES.items()]
WAY = (("c0", "p0"), ("p0", "m1a"), ("m1a", "m11a"))
AT_M1C = Loss(1_000, 1_000, "m11a", "m1c", DropReason.UNREACHABLE)


def window(kind: FaultKind, *nodes: str, links: frozenset[frozenset[str]] = frozenset()) -> Window:
    step = FaultStep(0, kind, kind.name.lower(), nodes, ordered_us=0, in_effect_us=0)
    names = frozenset() if links else frozenset(nodes)
    return Window(step, 0, 0, 300, 9_000, names, links, absorbed_us=9_000, repaired_us=300)


@pytest.mark.parametrize("itself", [False, True], ids=["its client", "itself"])
@pytest.mark.parametrize(
    ("way", "lost", "is_excused"),
    [
        (WAY, AT_M1C, True),
        (WAY, AT_M1C._replace(sender="p0"), False),
        (WAY, AT_M1C._replace(receiver="c7"), False),
        ((("c0", "m11a"),), AT_M1C, False),
        ((*WAY, ("m11a", "m1b")), AT_M1C._replace(sender="m1b"), True),
    ],
    ids=["lost behind it", "lost elsewhere", "lost to a client", "it came from a client", "lost farther on"],
)
def test_a_broker_on_a_detour_hands_nothing_to_its_subscribers(
    way: tuple[tuple[str, str], ...], lost: Loss, is_excused: bool, itself: bool
) -> None:
    """A schedule of cells/best_effort: p0 had not heard yet that m1c was dead, and sent to it by m1a and m11a."""
    received = {name: [at] for at, name in enumerate(("p0", "m1a", "m11a", "m1b"))}
    sent = [Crossing(at, *ends) for at, ends in enumerate(way)]
    passage = Passage({name: at for name, (at,) in received.items()}, received, [lost], sent)
    homes = {**HOMES, "c7": "m11a"}
    excuses = Excuses([window(FaultKind.KILL, "m1c")], [*CELLS, ("m11a", "m1b"), ("m11a", "c7")], homes)
    case = Case("missing", "c0", "m11a" if itself else "c6", 0)
    assert (excuses.explain(case, passage) is not None) == is_excused


@pytest.mark.parametrize(
    ("kind", "is_excused"),
    [(FaultKind.CONNECT, True), (FaultKind.CUT, True), (FaultKind.CHANGE_LINK, False), (FaultKind.ORDER, False)],
)
def test_where_a_journal_tells_of_no_messages_a_new_link_excuses_what_was_published_then(
    kind: FaultKind, is_excused: bool
) -> None:
    """A schedule of forwarding/best_effort: an event came a millisecond after the link, and before what is wanted
    behind it was known."""
    link = frozenset({frozenset(("b0", "b1"))})
    excuses = Excuses([window(kind, "b0", "b1", links=link)], [("b0", "b1"), ("c0", "b0"), ("c1", "b1")], {"c0": "b0"})
    no_messages = Passage({"c0": 100}, hops=False)
    assert (excuses.explain(Case("missing", "c0", "c1", 100), no_messages) is not None) == is_excused
    assert excuses.explain(Case("missing", "c0", "c1", 10_000), no_messages) is None


BY_M0B = ("c0", "p0", "m0a", "m0b", "m00a", "c1")
STRAIGHT = ("c0", "p0", "m0a", "m00a", "c1")


@pytest.mark.parametrize(
    ("later", "at_us", "is_excused"),
    [(STRAIGHT, 100, True), (BY_M0B, 100, False), (None, 100, False), (STRAIGHT, 500_000, False)],
    ids=["a shorter way", "the same way", "not known", "long after the cut"],
)
def test_an_event_on_a_detour_is_overtaken_when_the_shorter_way_is_there_again(
    later: tuple[str, ...] | None, at_us: int, is_excused: bool
) -> None:
    """A schedule of cells/best_effort: a link was cut for 50 ms."""

    def passed(way: tuple[str, ...]) -> Passage:
        had = {name: at_us + place for place, name in enumerate(way)}
        sent = [Crossing(had[sender], sender, receiver) for sender, receiver in itertools.pairwise(way)]
        return Passage(had, {name: [at] for name, at in had.items()}, sent=sent)

    homes = {"c0": "p0", "c1": "m00a"}
    links = [("p0", "m0a"), ("p0", "m0b"), ("m0a", "m0b"), ("m0a", "m00a"), ("m0b", "m00a"), *homes.items()]
    cut = window(FaultKind.CUT, "m0a", "m00a", links=frozenset({frozenset(("m0a", "m00a"))}))
    case = Case("out_of_order", "c0", "c1", at_us, at_us + 60, later=passed(later) if later else None)
    assert (Excuses([cut], links, homes).explain(case, passed(BY_M0B)) is not None) == is_excused


@pytest.mark.parametrize(
    ("meshed", "at_us", "is_excused"), [(True, 100, True), (False, 100, False), (True, 1_000_000, False)]
)
def test_where_a_journal_tells_of_no_messages_a_fault_excuses_order_if_there_are_several_ways(
    meshed: bool, at_us: int, is_excused: bool
) -> None:
    """A schedule of cells/best_effort: a link was narrow, and brokers were restarted one after the other."""
    links = [("p0", "m0a"), ("m0a", "m00a"), ("c0", "p0"), ("c1", "m00a"), *([("p0", "m00a")] if meshed else [])]
    excuses = Excuses([window(FaultKind.KILL, "m0a")], links, {"c0": "p0", "c1": "m00a"})
    case = Case("out_of_order", "c0", "c1", at_us, at_us + 60)
    assert (excuses.explain(case, Passage({"c0": at_us}, hops=False)) is not None) == is_excused
