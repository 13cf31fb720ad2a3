"""Sweep files: the runs that they mean, and what is refused before anything starts, by line or by point."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from murmur_pubsub.errors import InputError
from murmuration.bench.folder import BenchFolder
from murmuration.hunt.folder import HuntFolder
from murmuration.sweeps.folder import SweepFolder, play_point
from murmuration.sweeps.plan import SweepPlan, read_sweep

SMALL = "scenario: parity\nset: {workload.publications: 5, overlay.brokers: 3, workload.clients: 3}\n"


def plan(folder: Path, text: str) -> SweepPlan:
    file = folder / "some.yaml"
    file.write_text(SMALL + text)
    return read_sweep(file)


def test_a_grid_is_every_combination_for_every_seed(tmp_path: Path) -> None:
    made = plan(tmp_path, "grid: {links.loss: [0.0, 0.1], workload.rate_per_s: [50, 100, 200]}\nseeds: [3, 5]\n")
    assert made.name == "some"
    assert made.keys == ("links.loss", "workload.rate_per_s")
    assert [point.number for point in made.points] == list(range(1, 13))
    settings = {(*point.parameters.values(), point.seed) for point in made.points}
    assert settings == {(loss, rate, seed) for loss in (0.0, 0.1) for rate in (50, 100, 200) for seed in (3, 5)}
    last = made.points[-1].scenario
    assert (last["links"]["loss"], last["workload"]["rate_per_s"], last["seed"]) == (0.1, 200, 5)
    assert last["workload"]["publications"] == 5
    assert len({point.digest for point in made.points}) == 12


def test_a_count_of_seeds_goes_on_from_the_scenarios(tmp_path: Path) -> None:
    made = plan(tmp_path, "points: [{links.loss: 0.1}, {links.loss: 0.2}]\nseeds: 2\n")
    assert [(point.parameters["links.loss"], point.seed) for point in made.points] == [
        (0.1, 7), (0.1, 8), (0.2, 7), (0.2, 8),
    ]  # fmt: skip


def test_a_sweep_plays_in_virtual_time_unless_it_says_ray(tmp_path: Path) -> None:
    assert [point.live for point in plan(tmp_path, "points: [{links.loss: 0.1}]\n").points] == [False]
    both = plan(tmp_path, "grid: {runtime: [ray, virtual], links.loss: [0.0, 0.1]}\n").points
    assert [point.live for point in both] == [True, True, False, False]


def test_points_do_not_share_what_they_change(tmp_path: Path) -> None:
    made = plan(tmp_path, "grid: {links: [{loss: 0.1}], links.delay: [1 ms, 2 ms]}\n")
    assert [point.scenario["links"] for point in made.points] == [
        {"loss": 0.1, "delay": "1 ms"}, {"loss": 0.1, "delay": "2 ms"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("grid: {}\n", r"line 3, key grid: found no key"),
        ("grid: {links.loss: []}\n", r"key grid.links.loss: found an empty list"),
        ("seeds: 2\n", "neither grid nor points"),
        ("grid: {links.loss: [0.1]}\npoints: [{links.loss: 0.1}]\n", "grid and points"),
        ("grids: {links.loss: [0.1]}\n", r"line 3, key grids: found an unknown key"),
        ("grid: {links.los: [0.1]}\n", r"point links.los=0.1.*key links.los: found an unknown key"),
        ("grid: {links.loss: [0.1, 1.5]}\n", r"point links.loss=1.5.*key links.loss"),
        ("grid: {overlay.degree: [3, 0]}\n", r"point overlay.degree=0"),
        ("grid: {broker.routing: [forwarding, nowhere]}\n", r"point broker.routing=nowhere"),
        ("grid: {workload.publications: [1]}\n", r"key set.workload.publications: found a key of grid too"),
        ("grid: {seed: [1, 2]}\n", "seeds under their own key"),
        ("grid: {links.loss: [0.1, 0.1]}\n", "point links.loss=0.1: found it twice"),
        ("grid: {links.loss: [0.1]}\nseeds: []\n", "key seeds"),
        ("grid: {links.loss: [0.1]}\nseeds: 0\n", "key seeds: found 0; allowed: greater than or equal to 1$"),
        ("grid: {links.loss: [0.1]}\nseeds: x\n", "key seeds: found x; allowed: a valid integer$"),
        ("grid: {links.loss: [0.1]}\nseeds: [1, x]\n", "line 4, key seeds.1: found x; allowed: a valid integer$"),
        (
            f"grid: {{links.loss: [0.1, 0.2]}}\nseeds: [1, {10**20}]\n",
            f"line 4, key seeds.1: found {10**20}; allowed: less than {2**63}$",
        ),
        (
            f"grid: {{links.loss: [0.1]}}\nseeds: [{-(10**20)}]\n",
            f"key seeds.0: found -{10**20}; allowed: greater than or equal to -{2**63}$",
        ),
        (
            "grid: {links.loss: [0.1]}\nname: a/b\n",
            "line 4, key name: found a/b; allowed: letters, digits, '-' and '_'",
        ),
        ("grid: {links.loss: [0.1, 0.2]}\nseeds: 1000000000\n", "seeds: found 2,000,000,000 runs of 2 settings"),
        ("grid: {runtime: [virtual, cluster]}\n", "point runtime=cluster.*key runtime"),
        ("points: [{links.loss: 0.1}, {links.delay: 1 ms}]\n", r"key points.1: found links.delay"),
        ("grid: {links.loss: 0.1}\n", r"key grid.links.loss"),
    ],
)
def test_what_no_run_can_be_made_of_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=f"(?s){message}"):
        plan(tmp_path, text)


def test_seeds_that_are_counted_end_where_seeds_do(tmp_path: Path) -> None:
    file = tmp_path / "some.yaml"
    file.write_text(f"scenario: parity\nset: {{seed: {2**63 - 2}}}\ngrid: {{links.loss: [0.1]}}\nseeds: 3\n")
    found = f"line 4, key seeds: found 3, from the scenario's {2**63 - 2} on; allowed: seeds below {2**63}$"
    with pytest.raises(InputError, match=found):
        read_sweep(file)
    file.write_text(file.read_text().replace("seeds: 3", "seeds: 2"))
    assert [point.seed for point in read_sweep(file).points] == [2**63 - 2, 2**63 - 1]


def test_a_folder_is_one_sweeps_and_one_process(tmp_path: Path) -> None:
    first = plan(tmp_path, "grid: {links.loss: [0.0, 0.1]}\n")
    folder = SweepFolder(tmp_path / "sweep")
    with folder.opened(first), pytest.raises(InputError, match="a sweep that is writing in it"):
        folder.opened(first).__enter__()
    with folder.opened(first):
        pass
    other = plan(tmp_path, "grid: {links.loss: [0.0, 0.2]}\n")
    with pytest.raises(InputError, match=r"another point 2: links.loss=0.1, seed=7, now links.loss=0.2"):
        folder.opened(other).__enter__()
    more = plan(tmp_path, "grid: {links.loss: [0.0, 0.1]}\nseeds: 2\n")
    with pytest.raises(InputError, match="another point"):
        folder.opened(more).__enter__()


def test_what_was_half_done_is_cleared_away_and_what_is_whole_stays(tmp_path: Path) -> None:
    made = plan(tmp_path, "grid: {links.loss: [0.0, 0.1]}\n")
    folder = SweepFolder(tmp_path / "sweep")
    with folder.opened(made):
        play_point(folder.work(made.points[0]))
        folder.write_record(made.points[1], {"point": 2})
    (folder.runs / ".draft-0002-ab").mkdir()
    (folder.runs / ".draft-0002-ab" / "manifest.json").write_text("{")
    (folder.points / ".draft-0001.json").write_text("{")
    with folder.opened(made):
        assert [each.name for each in folder.runs.iterdir()] == ["0001"]
        assert [each.name for each in folder.points.iterdir()] == ["0002.json"]
        assert folder.is_played(made.points[0])
        assert not folder.is_played(made.points[1])
        assert folder.record(made.points[1]) == {"point": 2}
        play_point(folder.work(made.points[0]))  # as a task may that outlived the sweep that started it
        assert [each.name for each in folder.runs.iterdir()] == ["0001"]


def test_runs_in_a_folder_that_is_no_sweeps_are_left_alone(tmp_path: Path) -> None:
    made = plan(tmp_path, "grid: {links.loss: [0.0]}\n")
    folder = SweepFolder(tmp_path)
    (folder.runs / "mine").mkdir(parents=True)
    with pytest.raises(InputError, match=r"no sweep.json"):
        folder.opened(made).__enter__()
    assert (folder.runs / "mine").is_dir()


OPENED: dict[str, Callable[[Path], AbstractContextManager[None]]] = {
    "sweep": lambda folder: SweepFolder(folder).opened(SweepPlan("none", "", (), (), "scenario: none\n")),
    "bench": lambda folder: BenchFolder(folder, 10).opened(),
    "hunt": lambda folder: HuntFolder(folder).opened((), 1, True),
}


@pytest.mark.parametrize("kind", OPENED)
def test_a_folder_with_other_things_in_it_is_refused_and_left_as_it_was(kind: str, tmp_path: Path) -> None:
    for name in ("a.html", "b.csv", "c.json", "d.yaml"):
        (tmp_path / name).write_text("mine")
    with pytest.raises(InputError, match=rf"found a.html, b.csv, c.json, …, and no {kind}.json") as refused:
        OPENED[kind](tmp_path).__enter__()
    assert refused.value.allowed == f"the folder of a {kind}, or a new one (--out)"
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.parametrize("kind", OPENED)
def test_a_folder_that_was_killed_before_it_said_whose_it_is_goes_on(kind: str, tmp_path: Path) -> None:
    for name in ("runs", "points", "scratch", "findings"):
        (tmp_path / name).mkdir()
    (tmp_path / "lock").touch()
    (tmp_path / f".draft-{kind}.json").write_text("{")
    for _ in range(2):
        with OPENED[kind](tmp_path):
            assert (tmp_path / f"{kind}.json").exists()
            assert (kind != "sweep") or (tmp_path / "sweep.yaml").read_text() == "scenario: none\n"


def test_a_file_that_is_not_there_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.yaml: found no such file; allowed: a sweep file"):
        read_sweep(tmp_path / "none.yaml")
