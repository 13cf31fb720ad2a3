"""What was refused and is delivered all the same: both judges find it, in the same words, and name the first event."""

from pathlib import Path
from typing import Any

import pytest

from murmuration.commands.trace import judged
from murmuration.zoo.play import play_and_judge
from murmuration.zoo.registry import SABOTEURS
from murmuration.zoo.sighting import see_on_spark, see_plainly
from spark_analysis.given_up import REFUSED_AND_DELIVERED
from spark_analysis.main import judge
from spark_analysis.plain_judge import judge_run
from tests.judge.test_refused import REFUSED, refused_run

pytestmark = pytest.mark.spark
HISTORIES: dict[str, dict[str, Any]] = {
    "nobody got it": {},
    "nobody got it, and it was told twice": {"told_us": (1_450, 1_700), "restarted": False},
    "somebody got it before the word": {"delivered_us": (1_440,)},
    "somebody got it after the word, twice": {"delivered_us": (1_460, 1_470)},
    "somebody got it who had not asked": {"delivered_us": (1_460, 1_470), "stray": True},
    "it was refused for nothing, and that was told twice": {"told_us": (1_110, 1_600), "number": 1},
}


@pytest.mark.parametrize("name", HISTORIES)
def test_the_judges_agree(spark: Any, tmp_path: Path, name: str) -> None:
    run = refused_run(tmp_path / "run", **HISTORIES[name])
    verdict, plain = judge(run), judge_run(run)
    assert {key: verdict[key] for key in plain.numbers} == dict(plain.numbers)
    told = list(judged(run / "analysis" / "findings.csv", f"0:{REFUSED}"))
    assert any(each.endswith(REFUSED_AND_DELIVERED) for each in told) == bool(plain.pairs.refused), told
    if plain.pairs.refused:
        assert f"{REFUSED_AND_DELIVERED}, the first 0:{REFUSED}" in verdict["reason"]
    assert bool(plain.pairs.refused) == name.startswith("somebody")


def test_the_judges_agree_on_a_broker_that_goes_back_on_a_refusal(spark: Any, tmp_path: Path) -> None:
    [saboteur] = [each for each in SABOTEURS if each.name == "goes back on it"]
    plain, on_spark = play_and_judge(saboteur.scenario, tmp_path / "run", see_plainly, see_on_spark)
    assert on_spark == plain
    assert on_spark.is_of(saboteur), on_spark
    assert f"{REFUSED_AND_DELIVERED}, the first {on_spark.events.split(',')[0]}" in on_spark.reason
