"""Where an event's way came to an end, and which faults excuse that: passages and cases made by hand."""

import itertools

import pytest

from murmur_pubsub.faults import FaultKind
from murmur_pubsub.promise import Promise, Survival
from spark_analysis.excuses import IN_HAND_US, Case, Excuses
from spark_analysis.fault_windows import NEVER_US, FaultStep, Window
from spark_analysis.passages import Crossing, Passage

S = 1_000_000
AT_US = 10 * S
"""When the event is published."""
HOMES = {"c0": "b0", "c2": "b2"}
CHAIN = [("b0", "b1"), ("b1", "b2"), *HOMES.items()]
TRIANGLE = [*CHAIN, ("b0", "b2")]
MISSING = Case("missing", "c0", "c2", AT_US)
AT_B0 = Passage({"c0": AT_US, "b0": AT_US}, {"b0": [AT_US]})


def about(kind: FaultKind, *names: str, from_us: int = S, until_us: int = NEVER_US) -> Window:
    """All have settled without what it broke a second after it, or, after its repair, at once."""
    step = FaultStep(0, kind, f"{kind.name.lower()} {'-'.join(names)}", names, ordered_us=from_us, in_effect_us=from_us)
    is_link = kind is FaultKind.CUT
    nodes = frozenset() if is_link else frozenset(names)
    links = frozenset({frozenset(names)}) if is_link else frozenset()
    return Window(step, from_us, from_us, until_us, until_us, nodes, links, absorbed_us=from_us + S)


def kill(name: str, from_us: int = S, until_us: int = NEVER_US) -> Window:
    return about(FaultKind.KILL, name, from_us=from_us, until_us=until_us)


@pytest.mark.parametrize("in_parts", [True, False])
def test_where_links_may_be_taken_away_a_way_that_is_there_excuses_nothing(in_parts: bool) -> None:
    whole = Excuses([], CHAIN, HOMES, in_parts=in_parts)
    assert whole.explain(MISSING, AT_B0) is None
    apart = Excuses([], [("b0", "b1"), *HOMES.items()], HOMES, in_parts=in_parts)
    assert (apart.explain(MISSING, AT_B0) is not None) == in_parts


@pytest.mark.parametrize(
    ("away", "survived", "is_excused"),
    [("b1", 1, False), ("b1", 0, True), ("b2", 1, True)],
    ids=["it is survived", "nothing is survived", "it is the subscriber's broker"],
)
@pytest.mark.parametrize("publisher", ["c0", "b0"], ids=["a client publishes", "a broker publishes"])
@pytest.mark.parametrize("subscriber", ["c2", "b2"], ids=["to a client", "to a broker"])
def test_a_broker_that_is_away_is_survived_unless_it_is_that_of_the_publisher_or_of_the_subscriber(
    publisher: str, subscriber: str, away: str, survived: int, is_excused: bool
) -> None:
    homes = {client: home for client, home in HOMES.items() if client in (publisher, subscriber)}
    links = [("b0", "b1"), ("b1", "b2"), *homes.items()]
    excuses = Excuses([kill(away)], links, homes, Promise(survives=Survival(brokers_away=survived)))
    case = MISSING._replace(publisher=publisher, client=subscriber)
    assert (excuses.explain(case, AT_B0) is not None) == is_excused


@pytest.mark.parametrize(("survived", "is_excused"), [(1, True), (2, False), (3, False)])
def test_so_many_brokers_in_a_row_may_be_away_as_the_promise_says(survived: int, is_excused: bool) -> None:
    """One that is away elsewhere on the way does not count with them."""
    brokers = [f"b{number}" for number in range(7)]
    links = [*itertools.pairwise(brokers), ("c0", "b0"), ("c6", "b6")]
    promise = Promise(survives=Survival(brokers_away=survived))
    excuses = Excuses([kill(name) for name in ("b1", "b2", "b4")], links, {"c0": "b0", "c6": "b6"}, promise)
    assert (excuses.explain(MISSING._replace(client="c6"), AT_B0) is not None) == is_excused


@pytest.mark.parametrize(
    ("away", "survived", "is_excused"),
    [("b1", 0, True), ("b1", 1, False), ("b1 b3", 1, True), ("b1 c3", 1, False), ("c3", 0, False), ("b2", 1, True)],
)
def test_where_no_way_is_known_a_broker_that_is_away_excuses_a_loss_only_if_it_is_one_too_many(
    away: str, survived: int, is_excused: bool
) -> None:
    """Or if it is an end of the way."""
    homes = {**HOMES, "c3": "b3"}
    links = [("b0", "b1"), ("b1", "b2"), ("b1", "b3"), *homes.items()]
    promise = Promise(survives=Survival(brokers_away=survived))
    excuses = Excuses([kill(name) for name in away.split()], links, homes, promise, fixed_ways=False)
    assert (excuses.explain(MISSING, AT_B0) is not None) == is_excused


@pytest.mark.parametrize(
    ("after_us", "until_us", "is_excused"),
    [
        (-IN_HAND_US // 2, NEVER_US, True),
        (IN_HAND_US // 2, NEVER_US, True),
        (IN_HAND_US, NEVER_US, True),
        (IN_HAND_US + 1, NEVER_US, False),
        (-3 * S, AT_US, True),
        (-3 * S, AT_US - 1, False),
    ],
    ids=["it began before", "it begins at once", "it begins just in time", "it begins later", "it ends", "it was over"],
)
def test_a_partition_excuses_what_it_kept_from_the_other_side_while_an_event_may_be_in_hand(
    after_us: int, until_us: int, is_excused: bool
) -> None:
    """Over a structured overlay. Tables were right again in no time."""
    began_us = AT_US + after_us
    step = FaultStep(0, FaultKind.PARTITION, "a partition", (), (("b0", "c0"), ("b2", "c2")))
    window = Window(step, began_us, began_us, until_us, until_us, absorbed_us=began_us)
    found = Excuses([window], list(HOMES.items()), HOMES).explain(MISSING, AT_B0)
    assert (found is not None) == is_excused
    assert found is None or (found.text, found.by_tables) == ("a partition: between b0 and b2", False)


@pytest.mark.parametrize(
    ("sent_us", "cut_until_us", "is_excused"),
    [(AT_US + S, AT_US + S // 2, True), (AT_US + 9, AT_US + S // 2, False), (AT_US + S, AT_US - 1, False)],
    ids=["b0 had not sent it on", "b0 had sent it on", "the cut was over"],
)
def test_tables_that_kept_the_first_copy_back_excuse_that_a_recovered_one_went_no_further(
    sent_us: int, cut_until_us: int, is_excused: bool
) -> None:
    """b1 recovered the event, and b2 had it from there: c2 is taken for one that subscribed later."""
    way = ("c0", "b0", "b1", "b2")
    had = dict(zip(way, (AT_US, AT_US + 1, sent_us + 1, sent_us + 2), strict=True))
    sent = [Crossing(max(had[here], had[there] - 1), here, there) for here, there in itertools.pairwise(way)]
    passage = Passage(had, {name: [at_us] for name, at_us in had.items() if name != "c0"}, sent=sent)
    cut = about(FaultKind.CUT, "b0", "b1", until_us=cut_until_us)
    assert (Excuses([cut], CHAIN, HOMES).explain(MISSING, passage) is not None) == is_excused


@pytest.mark.parametrize(
    ("window", "is_excused"),
    [
        (kill("b2"), True),
        (kill("b2", until_us=5 * S), False),
        (about(FaultKind.SLOW, "b2"), False),
        (kill("b1"), False),
    ],
    ids=["its broker is dead", "its broker was dead", "its broker is slow", "a way is left"],
)
def test_where_there_are_several_ways_only_what_is_broken_then_leaves_none(window: Window, is_excused: bool) -> None:
    assert (Excuses([window], TRIANGLE, HOMES).explain(MISSING, AT_B0) is not None) == is_excused
