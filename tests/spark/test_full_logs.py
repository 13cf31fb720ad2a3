"""Publishers wait for room in a log: both judges say the same of those that have to, and of those that need not."""

from pathlib import Path
from typing import Any

import pytest

from murmuration.zoo.entry import Honest, Saboteur
from murmuration.zoo.play import play_and_judge
from murmuration.zoo.registry import HONEST, SABOTEURS
from murmuration.zoo.sighting import see_on_spark, see_plainly

pytestmark = pytest.mark.spark
NAMES = ("never goes on", "pretends to be full", "full log", "full log gryphon")
ENTRIES: dict[str, Saboteur | Honest] = {
    **{each.name: each for each in SABOTEURS},
    **{each.name: each for each in HONEST},
}


@pytest.mark.parametrize("name", NAMES)
def test_the_judges_agree(spark: Any, tmp_path: Path, name: str) -> None:
    entry = ENTRIES[name]
    plain, on_spark = play_and_judge(entry.scenario, tmp_path / "run", see_plainly, see_on_spark)
    assert on_spark == plain
    if isinstance(entry, Saboteur):
        assert on_spark.is_of(entry), on_spark
    else:
        assert on_spark.verdict == "valid", on_spark
