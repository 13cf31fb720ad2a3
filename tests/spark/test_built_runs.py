"""Run folders that are built row by row, of what seldom happens: the judges say the same, number by number."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from spark_analysis.main import judge
from spark_analysis.plain_judge import judge_run
from tests.judge.test_given_up_order import settled_without_b0
from tests.judge.test_odd_journals import ODD

pytestmark = pytest.mark.spark
BUILT: dict[str, Callable[[Path], Path]] = {
    "a subscription settled without a broker that was given up": settled_without_b0,
    **ODD,
}


@pytest.mark.parametrize("name", BUILT)
def test_the_judges_agree(spark: Any, tmp_path: Path, name: str) -> None:
    run = BUILT[name](tmp_path / "run")
    verdict, plain = judge(run), judge_run(run)
    assert {key: verdict[key] for key in plain.numbers} == dict(plain.numbers)
    if plain.excused:
        told = pd.read_csv(run / "analysis" / "findings.csv")["explanation"]
        assert sorted(told) == sorted(excuse.text for excuse in plain.excused.values())
