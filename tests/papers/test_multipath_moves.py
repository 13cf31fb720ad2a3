"""The Δ-moves of the multipath paper: measured on few brokers, and judged."""

import dataclasses

import pytest

from murmur_pubsub.event import Event
from murmuration.papers.lab.results import PaperResult
from murmuration.papers.multipath import moves
from murmuration.papers.multipath.moves import MovesMeasures, MovesSpec, measure_moves
from murmuration.papers.multipath.paper import moves_results

SPEC = MovesSpec("S2", 4, warm_s=2.0, dataset="DT4", brokers=21)


def is_met(*runs: MovesMeasures) -> bool | None:
    result = PaperResult(scaled_down=True)
    moves_results(result, runs)
    (criterion,) = result.criteria
    return criterion.met


def test_moves_under_traffic_are_made_and_counted_and_lose_nothing() -> None:
    found = measure_moves(SPEC)
    assert (found.made, found.missing, found.duplicate, found.spurious, found.agreed) == (4, 0, 0, 0, True)
    assert found.published > 50
    assert found.required > found.published / 2
    assert is_met(found)
    assert not is_met(found, dataclasses.replace(found, made=3))
    assert not is_met(found, dataclasses.replace(found, agreed=False))
    assert not is_met(dataclasses.replace(found, duplicate=1), found)


def test_a_publication_that_a_broker_does_not_take_while_brokers_move_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Lossy(moves._MovingNetwork):
        def arrived(self, node: int, event: Event, hops: int, delivered: bool, now_us: int) -> None:
            super().arrived(node, event, hops, delivered, now_us)
            self.deaf = self.made == 2 and node % 2 == 1

        def takes(self, node: int) -> bool:
            return not getattr(self, "deaf", False)

    monkeypatch.setattr(moves, "_MovingNetwork", Lossy)
    found = measure_moves(SPEC)
    assert found.missing > 0
    assert not is_met(found)
