"""What the reference tells by hand names all that there is: scenario keys, tables and their columns."""

import re
from pathlib import Path

import pandas as pd
import pytest
from pydantic import BaseModel

import murmuration
from murmuration.results.run_tables import RunTables
from murmuration.scenario.schema import Scenario

PAGE = (Path(__file__).parents[2] / "docs" / "reference.md").read_text()
KEYS = PAGE[PAGE.index("\n## Scenario") : PAGE.index("\n## Protocols")]
TABLES = PAGE[PAGE.index("\n## Tables") : PAGE.index("\n## Journal")]


def keys_of(model: type[BaseModel]) -> set[str]:
    """The names of a section's keys and of those in the sections below it."""
    found = set(model.model_fields)
    for field in model.model_fields.values():
        for kind in (field.annotation, *getattr(field.annotation, "__args__", ())):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                found |= keys_of(kind)
    return found


def named(text: str) -> set[str]:
    """All words in backquotes, of dotted keys each part."""
    return {word for quoted in re.findall(r"`([^`]+)`", text) for word in re.findall(r"\w+", quoted)}


def test_every_key_of_a_scenario_is_in_the_reference() -> None:
    assert keys_of(Scenario) - named(KEYS) == set()
    assert {"quiet", "trace", "delivery_rate", "on_overflow"} <= keys_of(Scenario)


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
