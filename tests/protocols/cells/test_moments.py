"""Moments at which a newcomer is known to some and not to others, message by message; and what each rule is for."""

import dataclasses

import pytest

from murmur_pubsub.event import Event
from murmur_pubsub.machine import Order
from reliability.broker import Broker
from routing.cells.router import CellRouting
from tests.protocols.cells.planted_bugs import STAGED
from tests.protocols.gryphon.bench import TWO_BRANCHES, Bench, Parcel

PLAN = dataclasses.replace(TWO_BRANCHES, newcomers=("x",))
AROUND = {"s": ("m0", "m1"), "m": ("p", "m0", "m1", "s", "t")}


def bench_with(bug: str | None) -> Bench:
    """Subscribers 1 and 2 at s and t want all; x is not there."""
    routing, reliability = STAGED[bug] if bug is not None else ("cells", "gryphon")
    bench: Bench = type("AnyBench", (Bench,), {"routing": routing, "reliability": reliability})(PLAN)
    bench.subscribe("s", 1)
    bench.subscribe("t", 2)
    bench.deliver_all()
    return bench


def comes(bench: Bench, cell: str) -> None:
    """The newcomer starts, with its links."""
    bench.start("x")
    for peer in AROUND[cell]:
        bench.link("x", peer)


def routing_at(bench: Bench, name: str) -> CellRouting:
    broker = bench.brokers[name]
    assert isinstance(broker, Broker)
    assert isinstance(broker.router, CellRouting)
    return broker.router


def to_x(parcel: Parcel) -> bool:
    return parcel.to == "x"


def known_too_late_at_m1(bug: str | None) -> bool:
    """All but m1 know of the newcomer when its filter is in effect. Its copy of the first message is lost; m1 hears
    that s and t have it, and is told of the newcomer then. Does that one's subscriber get both messages from m1?"""
    bench = bench_with(bug)
    comes(bench, "s")
    bench.hold_storage = True
    bench.give("x", Order(1, "join", ("s",)))
    for name in ("x", "m0", "p", "s", "t"):
        bench.store(name)
    assert routing_at(bench, "m1").tree.cell_of.get("x") is None
    bench.subscribe("x", 3)
    for _ in range(2):
        bench.deliver_all()
        bench.store("p")
    bench.publish("p", 0, 0)
    bench.store("p")
    bench.pass_time(600, to_x)
    bench.store("m1")
    bench.hold_storage = False
    for name in list(bench.brokers):
        bench.store(name)
    bench.pass_time(10_000, to_x)
    bench.crash("m0")
    bench.publish("p", 0, 1)
    bench.pass_time(20_000)
    assert bench.delivered[1] == bench.delivered[2] == [(0, 0), (0, 1)]
    return bench.delivered[3] == [(0, 0), (0, 1)] and not bench.stream("p").knowledge.messages


def all_start_again(bug: str | None) -> bool:
    """The newcomer is the only one left of its cell when all brokers die, and start again but for those that have
    departed. Does an event come through it?"""
    bench = bench_with(bug)
    comes(bench, "m")
    bench.give("x", Order(1, "join", ("m",)))
    for number, old in enumerate(("m0", "m1"), 2):
        bench.give("x", Order(number, "depart", (old,)))
        bench.deliver_all()
    left = ("p", "s", "t", "x")
    for name in ("m0", "m1", *left):
        bench.crash(name)
    for name in left:
        bench.start(name)
    for name in ("p", "s", "t"):
        bench.link("x", name)
    bench.subscribe("s", 1)
    bench.subscribe("t", 2)
    bench.pass_time(1_000)
    bench.publish("p", 0, 0)
    bench.pass_time(20_000)
    return bench.delivered[1] == [(0, 0)] and not bench.stream("p").knowledge.messages


def comes_back_by_mistake(bug: str | None) -> bool:
    """A broker that has departed starts again. Is it nobody, and is all delivered?"""
    bench = bench_with(bug)
    bench.give("m1", Order(1, "depart", ("m0",)))
    bench.deliver_all()
    bench.crash("m0")
    bench.start("m0")
    for peer in ("p", "m1", "s", "t"):
        bench.link("m0", peer)
    bench.sent.clear()
    for number in range(3):
        bench.publish("p", 0, number)
    bench.pass_time(20_000)
    silent = not [each for each in bench.sent if "m0" in (each.source, each.to)]
    return silent and not routing_at(bench, "m0").takes_part and len(bench.delivered[1]) == 3


def knows_what_others_know(bug: str | None) -> bool:
    """Does a newcomer have the filters and epochs of all that have been there before?"""
    bench = bench_with(bug)
    comes(bench, "m")
    bench.hold_storage = True
    bench.give("x", Order(1, "join", ("m",)))
    bench.store("x")
    bench.hold_storage = False
    for name in list(bench.brokers):
        bench.store(name)
    bench.deliver_all()
    here, there = routing_at(bench, "x"), routing_at(bench, "m0")
    return here._tables.tables.keys() == there._tables.tables.keys() and not here._epochs.is_behind


def passes_on_what_it_has(bug: str | None) -> bool:
    """An event reaches a broker that has just heard that it has departed. Does it go on?"""
    bench = bench_with(bug)
    bench.give("m1", Order(1, "depart", ("m0",)))
    router = routing_at(bench, "m0")
    event = Event(0, 0, 0, {"x": 1})
    return {hop.peer for hop in router.next_hops(event, "p", [router.tree.numbers["p"], 0])} == {"s", "t"}


MOMENTS = {
    "who has departed lets fall what it has": passes_on_what_it_has,
    "acknowledgements of who does not know all": known_too_late_at_m1,
    "streams go on though a branch is new": known_too_late_at_m1,
    "membership is not stored": all_start_again,
    "who has departed goes on": comes_back_by_mistake,
    "a link is used too soon": knows_what_others_know,
}


@pytest.mark.parametrize("bug", MOMENTS)
def test_all_is_well_then(bug: str) -> None:
    assert MOMENTS[bug](None)


@pytest.mark.parametrize("bug", MOMENTS)
def test_without_the_rule_it_is_not(bug: str) -> None:
    assert not MOMENTS[bug](bug)
