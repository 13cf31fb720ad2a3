"""A partition of a structured overlay: no datagram passes between its sides. When it ends they become one again."""

import dataclasses
import random
from pathlib import Path

import pytest

from murmur_pubsub.machine import NodeContext
from murmur_virtual.run import play_virtual
from murmuration.deployment.build_deployment import build
from murmuration.hunt.schedule import draw_schedule
from murmuration.hunt.space import space_of
from murmuration.hunt.trial import play_schedule
from murmuration.runs.manifest import manifest_of
from murmuration.scenario.load import check_scenario
from routing.irbr.router import Irbr, IrbrParameters
from spark_analysis.plain_judge import judge_journal
from tests.judge.honest import STRUCTURED


@pytest.mark.parametrize("lasting", ["300 ms", "3000 ms", "6500 ms"])
@pytest.mark.parametrize("routing", STRUCTURED)
def test_both_sides_of_a_partition_become_one_overlay_again(tmp_path: Path, routing: str, lasting: str) -> None:
    """What `recovery_limit` excuses ends fifteen rounds after the begin and after the end; events go on for longer."""
    data = {
        "name": "divided",
        "runtime": "virtual",
        "seed": 3,
        "overlay": {"kind": "structured", "brokers": 8, "probe": "200 ms", "probe_timeout": "100 ms", "leaf_set": 4},
        "workload": {
            "kind": "zipf", "clients": 8, "publications": 160, "rate_per_s": 10, "publishers": 2,
            "subscribers_per_actor": 2,
        },
        "broker": {"routing": routing, "reliability": "best_effort"},
        "failure_detection": {"heartbeat": "100 ms", "timeout": "300 ms", "reconnect": "20 ms"},
        "datagrams": {"delay": {"uniform": ["1 ms", "20 ms"]} if routing not in ("scribe", "rpf") else "5 ms"},
        "recovery_limit": "3 s",
        "faults": [{"at": "1 s", "partition": [["b0", "b2", "b3", "b6"]], "for": lasting}],
    }  # fmt: skip
    loaded = check_scenario(data, "divided")
    built = build(loaded)
    play_virtual(built.deployment, tmp_path, lambda *_: None)
    manifest = dataclasses.replace(manifest_of(loaded, built), status="complete", writers={})
    judgement = judge_journal(manifest, tmp_path)
    assert judgement.numbers["verdict"] == "valid", judgement.numbers["reason"]
    (check,) = judgement.checks
    assert check.outcome == "took_effect", check.seen
    assert not check.seen.endswith(" 0 messages dropped at them"), check.seen
    assert judgement.excused, "it cost what was published for the other side"


def test_random_schedules_divide_the_brokers_of_structured_overlays_in_any_way() -> None:
    """Each broker's clients go with it, so that only brokers are named, and never all of them."""
    space = space_of("irbr", "best_effort")
    drawn = [draw_schedule(random.Random(seed), space) for seed in range(50)]
    parts = [
        (each["overlay"]["brokers"], named)
        for each in drawn
        for entry in each["faults"]
        for named in entry.get("partition", ())
    ]
    assert all(0 < len(named) < brokers and all(name[0] == "b" for name in named) for brokers, named in parts)
    assert len({len(named) for _, named in parts}) > 3
    assert any("b0" in named for _, named in parts)
    assert any("b0" not in named for _, named in parts)


class Apart(Irbr):
    """Never looks for another part of the overlay."""

    def __init__(self, context: NodeContext, parameters: IrbrParameters) -> None:
        super().__init__(context, parameters)
        self.pastry._look_for_itself = list  # type: ignore[method-assign]


@pytest.mark.parametrize(("routing", "verdict"), [(Irbr, "valid"), (Apart, "invalid")])
def test_what_parts_that_never_find_each_other_lose_is_not_excused_by_the_time_that_others_need(
    routing: type[Irbr], verdict: str
) -> None:
    """A schedule as they are drawn, which has found this."""
    data = {
        "name": "schedule",
        "runtime": "virtual",
        "seed": 6743,
        "overlay": {
            "kind": "structured", "brokers": 5, "probe": "200 ms", "probe_timeout": "100 ms",
            "identifiers": [65515, 65534, 65528, 65497, 65513],
        },
        "workload": {
            "kind": "zipf", "clients": 5, "subscribers_per_actor": 2, "publishers": 2, "publications": 149,
            "rate_per_s": 10, "attributes": 2, "predicates": 1, "matching_rate": 0.5,
        },
        "broker": {"routing": f"{routing.__module__}:{routing.__name__}", "reliability": "best_effort"},
        "links": {"delay": "2 ms"},
        "datagrams": {"delay": {"uniform": ["500 us", "5 ms"]}},
        "drain": {"limit": "5 s"},
        "faults": [{"at": "1360 ms", "partition": [["b0", "b1", "b4"]], "for": "1200 ms"}],
    }  # fmt: skip
    judgement = play_schedule(data).judgement
    assert judgement.numbers["verdict"] == verdict, judgement.numbers["reason"]
