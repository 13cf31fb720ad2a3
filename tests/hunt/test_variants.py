"""Variants of a pair: schedules in which publishers' brokers have backups, or brokers of cells are replaced."""

import contextlib
import json
import random
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from murmur_pubsub.errors import InputError
from murmuration.hunt.chunk import Quarry
from murmuration.hunt.fault_draws import DrawnFault
from murmuration.hunt.mutation import drawn_in_bursts
from murmuration.hunt.outages import outage
from murmuration.hunt.quarries import all_pairs
from murmuration.hunt.schedule import Schedule, draw_scenario, draw_schedule, publishing_for_long
from murmuration.hunt.shrink import smaller_scenarios
from murmuration.hunt.space import OUTAGES, USUAL, ScheduleSpace
from murmuration.hunt.trial import deployment_of
from murmuration.hunt.varying import less_varied
from tests.hunt.hunting import here, hunt, silent
from tests.protocols.cells.planted_bugs import DRAWN


def verbs(quarry: Quarry, schedules: int = 20) -> set[str]:
    """What is done in some schedules that are drawn in bursts."""
    space = quarry.space()
    drawn = [drawn_in_bursts(random.Random(seed), space).keys(space) for seed in range(schedules)]
    return {key for keys in drawn for entry in keys["faults"] for key in entry}


def test_each_pair_is_hunted_in_the_variants_that_it_has() -> None:
    names = [quarry.name for quarry in all_pairs((), (), ("backups", "crossed", "replaced"))]
    assert {"forwarding/end_to_end/crossed", "irbr/end_to_end/backups", "cells/durable/replaced"} <= set(names)
    assert {name.split("/")[1] for name in names if not name.endswith("replaced")} == {"end_to_end"}
    assert {name.split("/")[0] for name in names if name.endswith("replaced")} == {"cells"}


def test_pairs_are_hunted_without_a_variant_if_none_is_named() -> None:
    assert all(quarry.variant is None for quarry in all_pairs((), ()))


@pytest.mark.parametrize("name", ["cells/gryphon", "multipath/end_to_end/backups", "cells/durable/replaced+varied"])
def test_a_quarry_is_known_by_its_name(name: str) -> None:
    assert Quarry.named(name).name == name


def test_guided_schedules_replace_brokers() -> None:
    assert {"join", "depart"} <= verbs(Quarry("cells", "durable", variant="replaced"))


def test_a_variant_may_be_varied_too() -> None:
    quarry = Quarry.named("cells/gryphon/replaced+varied")
    assert {"join", "subscribe"} <= verbs(quarry)
    assert not Quarry.named("cells/gryphon/replaced").space().varied
    assert any("hosts" in draw_scenario(random.Random(seed), quarry.space()) for seed in range(20))


def test_guided_schedules_lose_disks_of_brokers_with_backups() -> None:
    assert "disk" in verbs(Quarry("multipath", "end_to_end", variant="crossed"))


@pytest.mark.parametrize("pair", ["forwarding/epidemic", "cells/gryphon", "irbr/end_to_end", "vinifera/best_effort"])
def test_varied_schedules_have_other_links_clients_filters_and_times(pair: str) -> None:
    space = Quarry.named(f"{pair}/varied").space()
    scenarios = []
    for seed in range(40):
        schedule = drawn_in_bursts(random.Random(seed), space)
        with contextlib.suppress(InputError):
            schedule.with_least_numbers(space).keys(space)
            scenarios.append(schedule.scenario)
    assert len(scenarios) > 10
    for section, usual in USUAL.items():
        as_usual = sum(usual.items() <= scenario[section].items() for scenario in scenarios)
        assert 0 < as_usual < len(scenarios), section
    assert any("client_links" in scenario for scenario in scenarios)
    assert any(scenario.get("last_mile") == "broker" for scenario in scenarios)


@pytest.mark.parametrize("pair", ["forwarding/epidemic", "cells/gryphon", "irbr/end_to_end"])
def test_varied_schedules_have_hosts_shared_actors_churn_and_journals_without_hops(pair: str) -> None:
    space = Quarry.named(f"{pair}/varied").space()
    scenarios = [draw_scenario(random.Random(seed), space) for seed in range(100)]
    for section in ("hosts", "density", "churn", "journal"):
        assert 5 < sum(section in scenario for scenario in scenarios) < 70, section
    who = {name[0] for scenario in scenarios if "churn" in scenario for name in scenario["churn"]["who"]}
    assert "c" in who, "clients"
    assert who - {"c"}, "brokers"


def test_logs_of_varied_schedules_may_be_short() -> None:
    def logs(pair: str) -> list[int]:
        scenarios = (draw_scenario(random.Random(seed), Quarry.named(pair).space()) for seed in range(60))
        given = (each["broker"].get("parameters", {}).get("end_to_end", {}) for each in scenarios)
        return [each["log_most"] for each in given if "log_most" in each]

    assert len(logs("forwarding/end_to_end/backups+varied")) > 5
    assert set(logs("forwarding/end_to_end/varied")) == {3, 10, 30}
    assert not logs("forwarding/end_to_end")


def test_links_of_varied_schedules_carry_what_is_asked_for_without_a_fault() -> None:
    """Hunted with seed 631, cells/durable/varied: 500 messages a second were not enough for the nacks of a `dct`."""
    space = Quarry.named("cells/durable/varied").space()
    scenario = draw_scenario(random.Random(542), space)
    assert {"dct", "nack_chunk"} <= scenario["broker"]["parameters"]["durable"].keys()
    assert not {"messages_per_s", "queue_messages"} & scenario["links"].keys(), "it is drawn with both"
    others = [draw_scenario(random.Random(seed), space)["links"] for seed in range(60)]
    assert any("messages_per_s" in links for links in others)


@pytest.mark.parametrize(
    ("pair", "harmed"),
    [
        ("vinifera/end_to_end", True),
        ("cells/end_to_end", True),
        ("vinifera/best_effort", False),
        ("cells/durable", False),
    ],
)
def test_datagrams_of_varied_schedules_are_harmed_where_the_promise_covers_it(pair: str, harmed: bool) -> None:
    space = Quarry.named(f"{pair}/varied").space()
    datagrams = [draw_scenario(random.Random(seed), space).get("datagrams", {}) for seed in range(40)]
    drawn = {name for each in datagrams for name in each.keys() - {"delay"}}
    assert drawn == ({"loss", "duplication", "reordering"} if harmed else set())
    assert max(each.get("loss", 0.0) for each in datagrams) == (0.05 if harmed else 0.0)


@pytest.mark.parametrize("pair", ["forwarding/epidemic", "cells/durable", "irbr/end_to_end"])
def test_clients_of_varied_schedules_ask_and_publish_beside_their_workload(pair: str) -> None:
    assert {"subscribe", "unsubscribe", "publish"} <= verbs(Quarry.named(f"{pair}/varied"))


@pytest.mark.parametrize("pair", ["forwarding/epidemic", "cells/durable", "irbr/end_to_end"])
def test_in_varied_schedules_all_brokers_go_at_once_or_each_in_turn(pair: str) -> None:
    space = Quarry.named(f"{pair}/varied").space()
    at_once = in_turn = 0
    for seed in range(60):
        with contextlib.suppress(InputError):
            keys = drawn_in_bursts(random.Random(seed), space).keys(space)
            brokers = deployment_of(keys).fault_targets.brokers
            times = defaultdict(set)
            for entry in keys["faults"]:
                if entry.get("kill") in brokers:
                    times[entry["at"]].add(entry["kill"])
            at_once += brokers in times.values()
            in_turn += len(times) >= len(brokers) == len(set().union(*times.values()))
    assert at_once
    assert in_turn


def test_varied_schedules_lose_hosts_and_actors_with_all_nodes_on_them() -> None:
    quarry = Quarry.named("multipath/best_effort/varied")
    assert {"lose_host", "kill_actor"} <= verbs(quarry, 60)


@pytest.mark.parametrize("kind", ["lose_host", "kill_actor"])
def test_where_each_node_has_a_process_of_its_own_and_there_is_one_host_nothing_goes_with_others(kind: str) -> None:
    usual = draw_scenario(random.Random(3), Quarry.named("multipath/best_effort").space())
    space = Quarry.named("multipath/best_effort/varied").space()
    assert Schedule(usual, (DrawnFault(100, kind, 1, 200),)).keys(space)["faults"] == []


@pytest.mark.parametrize("kind", OUTAGES)
def test_an_outage_ends_and_begins_at_the_broker_that_it_is_about(kind: str) -> None:
    brokers = [f"b{number}" for number in range(5)]
    sizes = set()
    for number in range(50):
        entries = outage(brokers, 100, kind, number, None, "b3")
        assert min(entries, key=lambda each: each[0])[1]["kill"] == "b3"
        assert all(entry["for"] for _, entry in entries)
        assert len({entry["kill"] for _, entry in entries}) == len(entries)
        sizes.add(len(entries))
    assert sizes == ({5} if kind == "rolling" else {2, 5})


def test_an_outage_that_was_drawn_for_good_is_over_before_another_one() -> None:
    space = Quarry.named("forwarding/best_effort/varied").space()
    drawn = tuple(DrawnFault(at_ms, "outage", 1, None) for at_ms in (100, 120, 9_000))
    calm = next(
        each for each in (draw_scenario(random.Random(seed), space) for seed in range(9)) if "churn" not in each
    )
    entries = Schedule(calm, drawn).keys(space)["faults"]
    assert {entry["at"] for entry in entries} == {"100 ms", "9000 ms"}, "the second would kill what is dead"


def test_clients_of_varied_schedules_are_at_the_leaves_alone() -> None:
    space = Quarry.named("forwarding/best_effort/varied").space()
    scenarios = [draw_scenario(random.Random(seed), space) for seed in range(40)]
    assert 0 < sum("clients_at" in scenario["workload"] for scenario in scenarios) < 40


@pytest.mark.parametrize("pair", ["forwarding/epidemic", "cells/gryphon"])
def test_users_of_varied_schedules_post_and_read_and_become_fewer(pair: str) -> None:
    space = Quarry.named(f"{pair}/varied").space()
    social = drawn_of_kind("social", space, 60)
    smaller = list(smaller_scenarios(social[0]))
    assert {"posts", "users"} <= {key for each in smaller for key in changed_keys(social[0], each)}
    usual = list(less_varied(social[0]))
    assert {section for each in usual for section in USUAL if each[section] != social[0][section]} == {
        section for section, keys in USUAL.items() if not keys.items() <= social[0][section].items()
    }
    for each in [*smaller, *usual]:
        assert deployment_of(each).scripts
    longer, publishing_ms = publishing_for_long(random.Random(0), space, social[0])
    assert longer["workload"]["posts"] * 1_000 // longer["workload"]["rate_per_s"] == publishing_ms


@pytest.mark.parametrize("pair", ["multipath/best_effort", "cells/durable"])
def test_visitors_of_varied_schedules_come_and_go_and_become_fewer(pair: str) -> None:
    space = Quarry.named(f"{pair}/varied").space()
    paced = drawn_of_kind("paced", space, 80)
    visited = next(
        each for each in paced if len(each["workload"].get("subscribers", ())) > 1 and "visits" in each["workload"]
    )
    smaller = list(smaller_scenarios(visited))
    assert {"visits", "subscribers"} <= {key for each in smaller for key in changed_keys(visited, each)}
    usual = next(each for each in less_varied(visited) if each["workload"]["kind"] == "zipf")
    for each in [visited, usual, *(each for each in smaller if each["workload"]["publishers"])]:
        assert deployment_of({**each, "faults": []}).scripts
    longer, publishing_ms = publishing_for_long(random.Random(0), space, visited)
    assert longer["workload"]["seconds"] == publishing_ms // 1_000 > 1


def drawn_of_kind(kind: str, space: ScheduleSpace, among: int) -> list[dict[str, Any]]:
    """Those of so many scenarios that have such a workload: some have, and fewer than half."""
    drawn = [draw_scenario(random.Random(seed), space) for seed in range(among)]
    found = [dict(scenario) for scenario in drawn if scenario["workload"]["kind"] == kind]
    assert 3 < len(found) < among // 2
    return found


def changed_keys(scenario: Mapping[str, Any], other: Mapping[str, Any]) -> set[str]:
    return {key for key, value in other["workload"].items() if scenario["workload"].get(key) != value}


def test_a_varied_schedule_becomes_a_usual_one_section_by_section() -> None:
    space = Quarry.named("cells/gryphon/varied").space()
    usual = Quarry.named("cells/gryphon").space()
    changed = 0
    for seed in range(20):
        scenario: Mapping[str, Any] = draw_scenario(random.Random(seed), space)
        while (smaller := next(less_varied(scenario), None)) is not None:
            scenario = smaller
            changed += 1
        assert scenario.keys() == draw_scenario(random.Random(seed), usual).keys()
        assert all(keys.items() <= scenario[section].items() for section, keys in USUAL.items())
    assert changed > 20


@pytest.mark.slow
def test_a_hunt_finds_what_only_a_variant_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("murmuration.hunt.hunt._SHRINK_S", 1.0)
    routing, reliability = DRAWN["no newcomer is served"]
    hunted = hunt(tmp_path, 20, Quarry(routing, reliability, variant="replaced"))
    hunted.run(here, silent)
    assert hunted.found.all
    record = json.loads((hunted.found.all[0].folder / "finding.json").read_text())
    assert record["pair"] == f"{routing}/{reliability}/replaced"
    assert any("join" in verb for verb in record["faults"])


def test_a_variant_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="backups, crossed, replaced"):
        Quarry.named("cells/gryphon/replacd").space()


@pytest.mark.parametrize("pair", ["cells/end_to_end", "irbr/end_to_end", "multipath/end_to_end"])
@pytest.mark.parametrize("variant", ["backups", "backups+varied", "crossed+varied"])
def test_every_schedule_with_backups_can_be(pair: str, variant: str) -> None:
    """Brokers with pubends take clients, which can go to a backup."""
    space = Quarry.named(f"{pair}/{variant}").space()
    for seed in range(40):
        deployment_of(draw_schedule(random.Random(seed), space))
