"""What the reference tells by hand names all that there is: the tables of a run and their columns."""

import re
from pathlib import Path

import pandas as pd
import pytest

import murmuration
from murmuration.results.run_tables import RunTables

PAGE = (Path(__file__).parents[2] / "docs" / "reference.md").read_text()
TABLES = PAGE[PAGE.index("\n## Tables") : PAGE.index("\n## Journal")]


def named(text: str) -> set[str]:
    """All words in backquotes, of dotted keys each part."""
    return {word for quoted in re.findall(r"`([^`]+)`", text) for word in re.findall(r"\w+", quoted)}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> RunTables[pd.DataFrame]:
    folder = tmp_path_factory.mktemp("runs") / "small"
    changes = {"workload.publications": 10}
    return murmuration.load_run(murmuration.run("parity", changes=changes, folder=folder).folder)


@pytest.mark.parametrize("table", ["nodes", "rows", "events", "subscriptions", "deliveries", "faults"])
def test_every_column_of_a_table_is_in_the_reference(table: str, tables: RunTables[pd.DataFrame]) -> None:
    (row,) = re.findall(rf"^\| `{table}` \| (.*)$", TABLES.split("`murmur analyze` writes")[0], flags=re.MULTILINE)
    columns = set(getattr(tables, table).columns)
    assert columns - named(row) == set()
    assert len(columns) > 3
