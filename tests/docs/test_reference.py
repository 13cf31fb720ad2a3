"""The tables of the reference that are made from declarations say what those say."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from murmuration.reference import brought_up_to_date, field_texts
from murmuration.registry import RELIABILITIES, ROUTINGS
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


@pytest.mark.parametrize("name", DECLARED)
def test_every_parameter_says_what_it_means(name: str) -> None:
    texts = field_texts(DECLARED[name])
    assert not [each.name for each in dataclasses.fields(DECLARED[name]) if len(texts.get(each.name, "")) < 8]
