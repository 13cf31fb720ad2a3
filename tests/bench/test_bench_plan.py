"""What is in the table of all systems, with which means, and what is said of what is not (issue 24, point 7)."""

from pathlib import Path

import pytest

from murmur_pubsub.errors import InputError
from murmuration.bench import matrix
from murmuration.bench.bench import of_each_kind
from murmuration.bench.card import card_of, hash_of
from murmuration.bench.costs import estimate
from murmuration.bench.folder import VERDICT_KEPT, BenchFolder
from murmuration.bench.matrix import FAULTS, WORKLOADS, Cell, System, scenario_of
from murmuration.bench.measure import FIGURES
from murmuration.bench.plan import BenchChoice, cell_named, digest_of, plan_bench
from murmuration.deployment.build import build_overlay, build_workload
from murmuration.deployment.build_deployment import build
from murmuration.registry import RELIABILITIES, ROUTINGS
from murmuration.scenario.load import check_scenario

CARD = "c348cae955d94a00fd24d5e9ea46b8a23bab62b4aff4719b0bc921e414f3ca45"
TREE, STRUCTURED = System("forwarding", "best_effort"), System("irbr", "best_effort")


@pytest.fixture
def without_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MURMUR_DATA", str(tmp_path))


@pytest.mark.usefixtures("without_data")
def test_every_registered_pair_is_in_the_table_or_has_a_reason() -> None:
    plan = plan_bench(BenchChoice(seeds=1))
    inside = {str(cell.system) for cell in plan.cells}
    outside = {name for name in plan.left_out if "/" in name}
    assert inside | outside == {f"{routing}/{reliability}" for routing in ROUTINGS for reliability in RELIABILITIES}
    assert not inside & outside
    assert {"cells/durable", "ferry/best_effort", "rpf/epidemic"} <= inside
    assert "a routing that carries streams" in plan.left_out["irbr/gryphon"]


@pytest.mark.usefixtures("without_data")
def test_every_cell_of_the_table_is_a_scenario_that_can_be_played() -> None:
    plan = plan_bench(BenchChoice(seeds=1, brokers=10))
    for cell in plan.cells:
        if cell.workload == "zipf":
            build(check_scenario(scenario_of(cell, None, None), str(cell)))


@pytest.mark.usefixtures("without_data")
def test_without_data_it_is_said_what_is_missing_and_churn_is_generated_under_its_own_name() -> None:
    plan = plan_bench(BenchChoice(seeds=1))
    assert {cell.workload for cell in plan.cells} == {"uniform", "zipf", "social"}
    assert {cell.fault for cell in plan.cells} == {"none", "loss", "killed", "generated"}
    assert "no padres_stockquotes.tar.xz in " in plan.left_out["quotes"]
    assert "MURMUR_DATA" in plan.left_out["skype"]
    with pytest.raises(InputError, match=r"no skype.avt in"):
        plan_bench(BenchChoice(faults=["skype"]))


def test_with_the_data_the_trace_and_the_quotes_are_in_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MURMUR_DATA", str(tmp_path))
    for name in ("skype.avt", "padres_stockquotes.tar.xz"):
        (tmp_path / name).touch()
    plan = plan_bench(BenchChoice(seeds=1))
    assert {cell.workload for cell in plan.cells} == set(WORKLOADS)
    assert {cell.fault for cell in plan.cells} == set(FAULTS) - {"generated"}


@pytest.mark.parametrize("workload", ["uniform", "zipf", "social"])
@pytest.mark.parametrize("fault", ["killed", "generated"])
def test_systems_on_other_overlays_get_the_same_workload_and_the_same_faults(workload: str, fault: str) -> None:
    hashes, faults = set(), set()
    for system in (TREE, STRUCTURED):
        built = build(check_scenario(scenario_of(Cell(workload, fault, system, 3, 20), None, None), "cell"))
        hashes.add(hash_of(built.workload))
        faults.add((built.deployment.faults, built.deployment.start_down, built.deployment.settings.detection))
    assert len(hashes) == 1
    assert len(faults) == 1
    assert built.deployment.faults


def test_a_card_says_the_same_each_time_and_another_hash_for_any_other_workload() -> None:
    card = card_of("zipf", 1, 10)
    assert card == card_of("zipf", 1, 10)
    assert card["sha256"] == CARD, "a cited workload has changed: then it needs another name"
    assert card["statistics"]["publications"] == 40
    assert card["statistics"]["subscriptions"] == 20
    others = [card_of("zipf", 2, 10), card_of("uniform", 1, 10), card_of("zipf", 1, 11), card_of("social", 1, 10)]
    assert len({each["sha256"] for each in (card, *others)}) == 5


def test_one_event_or_one_filter_that_differs_makes_another_hash() -> None:
    def built(**changes: object) -> str:
        scenario = scenario_of(Cell("zipf", "none", TREE, 1, 10), None, None)
        scenario["workload"].update(changes)
        loaded = check_scenario(scenario, "cell")
        return hash_of(build_workload(loaded, build_overlay(loaded)))

    assert len({built(), built(publications=41), built(matching_rate=0.2), built(rate_per_s=2.0)}) == 4


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        (BenchChoice(systems=["irbr"]), "ROUTING/RELIABILITY"),
        (BenchChoice(systems=["irbr/gryphon"]), "a routing that carries streams"),
        (BenchChoice(systems=["nothing/best_effort"]), "'nothing'"),
        (BenchChoice(workloads=["zip"]), "uniform, zipf, social, quotes"),
        (BenchChoice(faults=["fire"]), "none, loss, killed"),
        (BenchChoice(seeds=0), "1 or more"),
        (BenchChoice(brokers=3), "10 or more"),
    ],
)
def test_what_cannot_be_played_is_refused_with_what_could(choice: BenchChoice, told: str) -> None:
    with pytest.raises(InputError, match=told):
        plan_bench(choice)


@pytest.mark.parametrize(
    "name", ["zipf", "zipf/none/irbr/best_effort/x", "zap/none/irbr/best_effort/1", "zipf/no/irbr/best_effort/1"]
)
def test_a_cell_that_there_is_not_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="--cell"):
        cell_named(name, 10)


def test_what_is_left_to_play_is_estimated_from_what_was_played() -> None:
    done, waiting = Cell("zipf", "none", TREE, 1, 10), [Cell("zipf", "none", TREE, seed, 10) for seed in (2, 3, 4)]
    left = estimate(waiting, {done: {"cpu_s": 2.0}}, 2)
    assert left.cells == 3
    assert left.cpu_s == pytest.approx(6.0)
    assert left.wall_s == pytest.approx(3.0)
    costly = Cell("zipf", "none", System("vinifera", "best_effort"), 1, 10)
    assert estimate([costly], {done: {"cpu_s": 2.0}}, 1).cpu_s > 2.0


def test_a_cell_is_known_again_wherever_its_data_is(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [Cell("quotes", "skype", STRUCTURED, seed, 120) for seed in (1, 2)]
    told = []
    for folder in ("/here", "/there"):
        monkeypatch.setenv("MURMUR_DATA", folder)
        told.append([digest_of(cell) for cell in cells])
    assert told[0] == told[1]
    assert len(set(told[0])) == 2


def test_a_cell_whose_scenario_has_changed_since_is_played_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = Cell("zipf", "none", TREE, 1, 10)
    verdict = {**dict.fromkeys(VERDICT_KEPT, 0), "verdict": "valid", "reason": "all is well"}
    with (written := BenchFolder(tmp_path, 10)).opened():
        written.write_record(cell, {"verdict": verdict, "figures": dict.fromkeys(FIGURES), "cpu_s": 1.0})
    with (again := BenchFolder(tmp_path, 10)).opened():
        record = again.record(cell)
        assert record is not None
        assert record["verdict"] == verdict
        monkeypatch.setattr(matrix, "PUBLISHING_S", matrix.PUBLISHING_S + 1)
        assert again.record(cell) is None


def test_before_a_table_is_begun_each_workload_each_fault_and_each_system_is_checked() -> None:
    workloads, faults, systems = ["zipf", "uniform"], ["none", "loss"], [TREE, STRUCTURED]
    cells = [Cell(workload, fault, system, 1, 10) for workload in workloads for fault in faults for system in systems]
    checked = of_each_kind(cells)
    assert {cell.workload for cell in checked} == set(workloads)
    assert {cell.fault for cell in checked} == set(faults)
    assert {cell.system for cell in checked} == set(systems)
    assert len(checked) < len(cells)


def test_links_and_datagrams_lose_as_much_where_messages_are_lost() -> None:
    scenario = scenario_of(Cell("zipf", "loss", TREE, 1, 10), None, None)
    assert scenario["links"] == scenario["datagrams"] == {"delay": "5 ms", "loss": 0.05}
