"""Every damage of the zoo is found by name, and nothing is said of the protocol."""

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from murmur_pubsub.errors import InputError
from murmur_pubsub.journal_store import store_at
from murmur_pubsub.run_manifest import read_manifest
from murmuration.commands.main import application
from murmuration.runs.driver import execute
from murmuration.scenario.load import load_scenario
from murmuration.zoo.damages import DAMAGES, flip_bit
from murmuration.zoo.split_run import split_by_node
from spark_analysis.journal_check import Damage, find_damage
from spark_analysis.main import analyze, judge, judge_and_measure

SETTINGS = [
    "workload.publications=200", "overlay.brokers=4", "workload.clients=10", "workload.subscribers_per_actor=5",
]  # fmt: skip
OF_NODES = {
    "a client gone", "half the clients gone", "a broker gone", "segments exchanged", "side files exchanged", "renamed",
}  # fmt: skip


def play(folder: Path, seed: int = 7) -> Path:
    return execute(load_scenario(Path("parity"), [*SETTINGS, f"seed={seed}"]), folder, lambda *_: None).folder


@pytest.fixture(scope="module")
def virtual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return play(tmp_path_factory.mktemp("virtual") / "run")


@pytest.fixture(scope="module")
def split(virtual: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return split_by_node(virtual, tmp_path_factory.mktemp("split") / "run")


def damages_of(run: Path) -> list[Damage]:
    manifest = read_manifest(run)
    return find_damage(store_at(manifest.journal_at(run)), manifest)


def test_a_whole_run_has_no_damage(virtual: Path, split: Path) -> None:
    assert damages_of(virtual) == damages_of(split) == []
    assert len(list((split / "journal").glob("c*-0-00001.seg"))) == 10, "a series has several segments"


@pytest.mark.parametrize("form", ["virtual", "split"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damage_is_named_and_not_blamed_on_the_protocol(
    request: pytest.FixtureRequest, tmp_path: Path, damage: str, form: str
) -> None:
    run = tmp_path / "run"
    shutil.copytree(request.getfixturevalue(form), run)
    if form == "virtual" and damage in OF_NODES:
        with pytest.raises(InputError, match="as in a live run"):
            DAMAGES[damage].do(run)
        return
    expected = DAMAGES[damage].do(run)
    found = damages_of(run)
    assert {each.file for each in found} == set(expected), found
    verdict = judge(run)
    assert (verdict["verdict"], verdict["finding"], verdict["damage"]) == ("unknown", "damage", len(expected))
    assert expected[0] in verdict["reason"]
    counts = {verdict[name] for name in ("missing", "duplicate", "spurious", "out_of_order", "required", "delivered")}
    assert counts == {None}


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("a client gone", "is missing"),
        ("segments exchanged", "holds what c"),
        ("renamed", "is missing"),
        ("copied as the next incarnation", "of an incarnation of"),
        ("copied as the next number", "holds what"),
        ("cut at a row", "was cut at row "),
        ("cut inside a row", "was cut inside row "),
        ("a side file cut", "was cut at byte "),
        ("a kind zeroed", "was changed after it was sealed"),
        ("a block zeroed", "was changed after it was sealed"),
        ("emptied", "has nothing in it"),
        ("of another run", "is of another run"),
        ("a bit turned", "was changed after it was sealed"),
    ],
)
def test_a_damage_is_told_in_plain_words(split: Path, tmp_path: Path, damage: str, words: str) -> None:
    shutil.copytree(split, tmp_path / "run")
    DAMAGES[damage].do(tmp_path / "run")
    assert any(words in each.what for each in damages_of(tmp_path / "run")), damages_of(tmp_path / "run")


@settings(max_examples=300)
@given(data=st.data())
def test_any_bit_that_is_turned_is_found(split: Path, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted((split / "journal").iterdir())))
    bit = data.draw(st.one_of(st.integers(0, 128 * 8 - 1), st.integers(0, path.stat().st_size * 8 - 1)))
    flip_bit(path, bit)
    try:
        assert [each.file for each in damages_of(split)] == [path.name]
    finally:
        flip_bit(path, bit)


@settings(max_examples=60)
@given(data=st.data())
def test_any_bit_of_a_virtual_run_that_is_turned_is_found(virtual: Path, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted((virtual / "journal").iterdir())))
    bit = data.draw(st.one_of(st.integers(0, 128 * 8 - 1), st.integers(0, path.stat().st_size * 8 - 1)))
    flip_bit(path, bit)
    try:
        assert [each.file for each in damages_of(virtual)] == [path.name]
    finally:
        flip_bit(path, bit)


@pytest.mark.parametrize("ending", ["seg", "blob"])
def test_a_file_of_another_seed_is_of_another_run(virtual: Path, tmp_path: Path, ending: str) -> None:
    shutil.copytree(virtual, tmp_path / "run")
    other = play(tmp_path / "other", seed=8)
    name = f"run-0-00000.{ending}"
    shutil.copyfile(other / "journal" / name, tmp_path / "run" / "journal" / name)
    assert damages_of(tmp_path / "run") == [Damage(name, "is of another run")]


def test_segments_of_one_series_that_are_exchanged_are_found(split: Path, tmp_path: Path) -> None:
    shutil.copytree(split, tmp_path / "run")
    first, second = (tmp_path / "run" / "journal" / f"b0-0-0000{number}.seg" for number in (0, 1))
    first.rename(tmp_path / "aside")
    second.rename(first)
    (tmp_path / "aside").rename(second)
    assert [each.file for each in damages_of(tmp_path / "run")] == [first.name, second.name]


def test_a_damaged_run_has_a_report_and_a_table_and_no_figures(split: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(split, run)
    named = DAMAGES["half the clients gone"].do(run)
    verdict = analyze(run)
    assert verdict["reason"].endswith("and 2 more (see the table of damage)")
    page = (run / "report.html").read_text()
    assert "nothing is said of the protocol" in page
    assert all(name in page for name in named)
    assert (run / "analysis" / "damage.csv").read_text().count("is missing") == 5
    assert set(judge_and_measure(run)[1].values()) == {None}
    assert json.loads((run / "analysis" / "verdict.json").read_text()) == verdict


def test_the_command_line_prints_the_damage_instead_of_counts(
    split: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(split, tmp_path / "run")
    (named,) = DAMAGES["emptied"].do(tmp_path / "run")
    assert application(["analyze", str(tmp_path / "run")], standalone_mode=False) == 1
    printed = capsys.readouterr().out
    assert f"{named} has nothing in it" in printed
    assert "the journal is damaged" in printed
    assert "missing" not in printed
