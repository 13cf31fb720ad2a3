"""The tables of the reference that are made from declarations say what those say."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from murmuration.command_reference import journal_rows
from murmuration.field_reference import field_texts
from murmuration.reference import brought_up_to_date
from murmuration.registry import RELIABILITIES, ROUTINGS
from murmuration.scenario.schema import BrokerParts, ChurnSection, Detection, Drain, Expect, Links, Scenario
from spark_analysis.table_columns import check_columns
from workloads import OVERLAYS, WORKLOADS
from workloads.random_faults import RandomFaults

PAGE = Path(__file__).parents[2] / "docs" / "reference.md"
DECLARED: dict[str, Any] = {
    **{name: each.parameters for name, each in ROUTINGS.items()},
    **{name: each.parameters for name, each in RELIABILITIES.items()},
    **{f"overlay {name}": options for name, (options, _) in OVERLAYS.items()},
    **{f"workload {name}": options for name, (options, _) in WORKLOADS.items()},
    "random faults": RandomFaults,
}


def test_the_reference_has_the_protocols_as_they_are_declared() -> None:
    page = PAGE.read_text()
    assert page == brought_up_to_date(page), "python -m murmuration.reference docs/reference.md"


def test_a_page_that_says_something_else_is_not_taken_for_it() -> None:
    page = PAGE.read_text()
    changed = page.replace("| `fanout` |", "| `fan_out` |")
    assert changed != page
    assert brought_up_to_date(changed) == page


@pytest.mark.parametrize("model", [Scenario, Links, BrokerParts, Drain, Detection, ChurnSection, Expect])
def test_every_key_of_a_scenario_says_what_it_means(model: type[BaseModel]) -> None:
    texts = field_texts(model)
    sections = (BrokerParts, Drain, Detection, Expect)  # these have no row of their own
    told = [name for name, field in model.model_fields.items() if field.annotation not in sections]
    assert not [name for name in told if len(texts.get(name, "")) < 8]
    assert told


def test_every_row_of_the_journal_and_every_number_in_it_says_what_it_means() -> None:
    rows = [line.split("|") for line in journal_rows().splitlines() if line.startswith("| `")]
    assert [row[1] for row in rows if len(row[3].strip()) < 4] == []
    assert len(rows) > 30


def test_a_table_is_not_written_with_other_columns_than_are_told_of_it() -> None:
    check_columns("phases", ["phase", "begin_us"])
    for columns in (["phase"], ["begin_us", "phase"], ["phase", "begin_us", "end_us"]):
        with pytest.raises(ValueError, match="phases"):
            check_columns("phases", columns)


@pytest.mark.parametrize("name", DECLARED)
def test_every_parameter_says_what_it_means(name: str) -> None:
    texts = field_texts(DECLARED[name])
    assert not [each.name for each in dataclasses.fields(DECLARED[name]) if len(texts.get(each.name, "")) < 8]
