"""Orders of whoever runs the overlay: who takes them, and what is left behind of the answer."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from murmur_pubsub.codec import Codec
from murmur_pubsub.deployment import NodeSpec
from murmur_pubsub.journal import JournalWriter, RowKind, SideKind, read_side
from murmur_pubsub.journal_rows import read_segment
from murmur_pubsub.machine import Answer, Effect, Input, NodeContext, Order
from murmur_pubsub.recorded_inputs import packed_input, read_inputs
from murmur_virtual.virtual_runtime import VirtualRuntime
from murmuration.registry import RELIABILITIES, ROUTINGS, declared_as
from reliability.best_effort import BestEffort
from reliability.broker import Broker
from routing.flooding import Flooding
from routing.protocol import NoParameters
from spark_analysis.plain_judge import judge_plainly


class Obedient(Flooding):
    """Does whatever it is told to `jump`, but for one place."""

    orders = {"jump": ("to",)}

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        if isinstance(input, Order):
            return [Answer(input.number, "too deep" if input.arguments == ("well",) else "")]
        return super().handle(input, now_us)


@pytest.fixture
def runtime(tmp_path: Path) -> VirtualRuntime:
    made = VirtualRuntime(1, JournalWriter(tmp_path, "run", 2), {"b0": 0})
    context = NodeContext("b0", 1)
    router = Obedient(context, NoParameters())
    machine = Broker("naive", router, lambda services: BestEffort(context, NoParameters(), services))
    made.add_node(NodeSpec("b0", "broker", ""), machine)
    return made


def test_an_order_goes_to_the_part_that_knows_the_verb_and_the_journal_has_the_answer(
    runtime: VirtualRuntime, tmp_path: Path
) -> None:
    runtime.now_us = 700
    for number, (verb, place) in enumerate((("jump", "rope"), ("jump", "well"), ("sing", "song"))):
        runtime.nodes["b0"].take_input(Order(number, verb, (place,)), runtime.now_us)
    rows = read_segment(next(tmp_path.glob("*.seg")))[1]
    answers = rows[rows["kind"] == RowKind.ANSWER]
    assert [(row["node"], row["sequence"], row["value"]) for row in answers] == [(0, 0, 0), (0, 1, 1), (0, 2, 1)]
    said = [fields for kind, fields in read_side(next(tmp_path.glob("*.blob"))) if kind is SideKind.ANSWER]
    assert said == [[700, 0, 0, ""], [700, 0, 1, "too deep"], [700, 0, 2, "no part of the broker knows 'sing'"]]
    assert judge_plainly(tmp_path).counts == (0, 0, 0, 0)


def test_a_recorded_order_is_read_as_it_was() -> None:
    order = Order(7, "move", ("b1", "b2"))
    codec = Codec(())
    (found,) = read_inputs("here", packed_input(order, 5, codec), ())
    assert (found.time_us, found.input, found.digest) == (5, order, None)


@pytest.mark.parametrize("name", [*ROUTINGS, *RELIABILITIES])
def test_a_protocol_declares_the_orders_that_its_part_of_a_broker_takes(name: str) -> None:
    declared = ROUTINGS[name] if name in ROUTINGS else RELIABILITIES[name]
    part: Any = declared.make
    assert dict(part.orders) == dict(declared.orders)


def test_a_class_named_by_its_path_declares_its_own_orders() -> None:
    assert declared_as("here:Obedient", Obedient).orders == {"jump": ("to",)}
