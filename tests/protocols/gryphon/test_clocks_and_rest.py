"""Ticks where the clock goes back, and streams at rest: what is told without a message, and what is asked for then."""

from pathlib import Path
from typing import Any

import msgpack
import pytest

from reliability.gryphon.messages import Nack, Silence
from tests.deployments import played
from tests.protocols.gryphon.bench import Bench


def restart(bench: Bench, name: str = "p") -> None:
    """The broker is gone, and back at once."""
    bench.crash(name)
    bench.start(name)
    for peer in bench.peers(name):
        bench.link(name, peer)


def ready(**parameters: Any) -> Bench:
    """A bench with a subscriber at s, after one event."""
    bench = Bench(**parameters)
    bench.subscribe("s", 1)
    bench.publish("p", 7, 0)
    bench.deliver_all()
    return bench


@pytest.mark.parametrize("asked", [False, True], ids=["told after SIT", "told when it was asked for"])
def test_gryphon_s2_a_tick_told_silent_is_not_used_again_though_the_clock_goes_back(asked: bool) -> None:
    bench = ready(sit=500)
    if asked:
        bench.pass_time(5_000)
        for effect in bench.stream("m0").ask([(1_000, 5_900)], bench.now_us):
            bench._perform("m0", [effect])
        bench.deliver_all()
        bench.pass_time(600)
    else:
        bench.pass_time(2_000)
    told = bench.stream("s").knowledge.newest
    assert told > (5_000 if asked else 1_400)
    bench.now_us -= 700_000  # the host's clock, or another host's
    restart(bench)
    bench.publish("p", 7, 1)
    bench.pass_time(5_000)
    assert bench.stream("p").knowledge.newest > told
    assert bench.delivered[1] == [(7, 0), (7, 1)]


def test_gryphon_s2_silence_is_told_only_when_it_is_in_the_log() -> None:
    bench = ready(sit=500)
    bench.hold_storage = True
    bench.pass_time(2_000)
    told = bench.stream("s").knowledge.newest
    assert bench.stream("p").knowledge.newest == told
    bench.store("p")
    bench.deliver_all()
    bench.pass_time(600)
    assert bench.stream("s").knowledge.newest > told
    kinds = [msgpack.unpackb(record)[0] for record in bench.logs["p"].values()]
    assert kinds == ["D", "S"]


def test_gryphon_s2_a_message_that_comes_while_silence_is_being_logged_gets_a_later_tick() -> None:
    bench = ready(sit=500)
    bench.hold_storage = True
    bench.pass_time(600)
    pubend = bench.stream("p").pubend
    assert pubend is not None
    being_logged = pubend.last
    bench.now_us -= 300_000
    bench.publish("p", 7, 1)
    assert pubend.last == being_logged + 1
    bench.store("p")
    bench.pass_time(1_000)
    assert bench.delivered[1] == [(7, 0), (7, 1)]


def test_gryphon_s2_a_checkpoint_remembers_which_ticks_were_told_silent() -> None:
    bench = ready(sit=500, checkpoint=1)
    bench.pass_time(5_000)
    bench.publish("p", 7, 1)
    bench.pass_time(5_000)
    first = next(iter(bench.logs["p"].values()))
    assert msgpack.unpackb(first, strict_map_key=False)[0] == "C"
    told = bench.stream("s").knowledge.newest
    bench.now_us -= 4_000_000
    restart(bench)
    bench.publish("p", 7, 2)
    assert bench.stream("p").knowledge.ticks(0, 1 << 60)[-1] > told


def test_gryphon_s2_a_checkpoint_remembers_the_tick_of_a_message_that_is_gone_from_the_log() -> None:
    bench = Bench(sit=60_000, aet=60_000, aet_most=60_000, checkpoint=1)
    bench.subscribe("s", 1)
    bench.subscribe("t", 2)
    bench.publish("p", 7, 0)
    bench.deliver_all()
    bench.pass_time(2_000)
    assert [msgpack.unpackb(each, strict_map_key=False)[0] for each in bench.logs["p"].values()] == ["C"]
    bench.now_us = 900_000
    restart(bench)
    bench.publish("p", 7, 1)
    assert bench.stream("p").knowledge.ticks(0, 1 << 60) == [1_001]


def test_gryphon_s2_a_restarted_pubend_knows_that_nothing_is_on_the_ticks_up_to_the_last_in_use() -> None:
    """Else a subscribers' broker that lacks the silence would ask for ever."""
    bench = ready(sit=500)
    bench.pass_time(2_000, unless=lambda parcel: type(parcel.message) is Silence)
    last = bench.stream("p").knowledge.newest
    restart(bench)
    assert bench.stream("p").knowledge.newest == last
    assert bench.stream("p").knowledge.horizon(0) == last + 1


def test_gryphon_s3_a_stream_at_rest_comes_to_rest_though_dct_is_short() -> None:
    bench = ready(dct=1_000, sit=500, aet=60_000, aet_most=60_000)
    looks = 0
    for _ in range(1_000):
        before = len(bench.sent_by("s", Nack))
        bench.pass_time(100)
        looks += len(bench.sent_by("s", Nack)) > before
    assert 3 <= looks <= 8, "1, 2, 4, 8, … s apart"
    assert len(bench.logs["p"]) <= looks + 2
    assert not bench.brokers["s"].waiting
    before_us = bench.now_us
    bench.publish("p", 7, 1)
    bench.deliver_all()
    bench.publish("p", 7, 2)
    bench.bag.clear()
    while len(bench.delivered[1]) < 3:
        bench.pass_time(100, unless=lambda parcel: type(parcel.message) is Silence and not parcel.message.answer)
    assert bench.now_us - before_us < 4_000_000, "a message wakes it: the next looks are after 1 and 2 s again"


def test_gryphon_s3_a_pubend_does_not_look_back_at_its_own_stream() -> None:
    bench = Bench(dct=1_000, sit=500)
    bench.subscribe("p", 1)
    bench.publish("p", 7, 0)
    bench.pass_time(10_000)
    assert bench.sent_by("p", Nack) == []
    assert bench.delivered[1] == [(7, 0)]


def test_a_run_with_a_dct_shorter_than_its_drain_ends(tmp_path: Path) -> None:
    scenario = {
        "name": "short-dct",
        "runtime": "virtual",
        "overlay": {"kind": "chain", "brokers": 3},
        "workload": {
            "kind": "paced",
            "publishers": {"b0": 1},
            "subscribers": {"b2": 1},
            "rate_per_s": 40,
            "seconds": 1,
        },
        "broker": {"routing": "cells", "reliability": "gryphon", "parameters": {"gryphon": {"dct": "1 s"}}},
        "drain": {"quiet": "1 s", "limit": "300 s"},
    }
    assert played(scenario, tmp_path).runtime.now_us < 10_000_000
