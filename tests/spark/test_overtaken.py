"""A link that reorders excuses what was overtaken there, and not what came over it in order: both judges say so."""

from pathlib import Path
from typing import Any

import pytest

from murmuration.zoo.play import play_and_judge
from murmuration.zoo.registry import SABOTEURS
from murmuration.zoo.sighting import see_on_spark, see_plainly

pytestmark = pytest.mark.spark
BEHIND = next(each for each in SABOTEURS if each.name == "swaps behind a link")
HONEST = BEHIND.harmless


def test_what_is_exchanged_behind_the_link_is_found(spark: Any, tmp_path: Path) -> None:
    plain, on_spark = play_and_judge(BEHIND.scenario, tmp_path / "run", see_plainly, see_on_spark)
    assert on_spark == plain
    assert on_spark.is_of(BEHIND), on_spark


def test_what_the_link_exchanges_is_excused(spark: Any, tmp_path: Path) -> None:
    plain, on_spark = play_and_judge(HONEST, tmp_path / "run", see_plainly, see_on_spark)
    assert on_spark == plain
    assert on_spark.verdict == "valid", on_spark
    assert "out of order" in on_spark.reason
