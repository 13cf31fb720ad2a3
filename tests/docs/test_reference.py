"""The tables of protocols in the reference are those of their declarations."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from murmuration.reference import field_texts, with_protocols
from murmuration.registry import RELIABILITIES, ROUTINGS

PAGE = Path(__file__).parents[2] / "docs" / "reference.md"
PROTOCOLS: list[Any] = [*ROUTINGS.values(), *RELIABILITIES.values()]


def test_the_reference_has_the_protocols_as_they_are_declared() -> None:
    page = PAGE.read_text()
    assert page == with_protocols(page), "python -m murmuration.reference docs/reference.md"


def test_a_page_that_says_something_else_is_not_taken_for_it() -> None:
    page = PAGE.read_text()
    changed = page.replace("| `fanout` |", "| `fan_out` |")
    assert changed != page
    assert with_protocols(changed) == page


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)
def test_every_parameter_says_what_it_means(protocol: Any) -> None:
    texts = field_texts(protocol.parameters)
    unsaid = [each.name for each in dataclasses.fields(protocol.parameters) if len(texts.get(each.name, "")) < 10]
    assert not unsaid
