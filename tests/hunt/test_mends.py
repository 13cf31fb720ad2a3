"""Mends that `benchmarks.broken_promises` takes out, and docs/promises.md, which says what happened without them."""

import re
from pathlib import Path

from benchmarks.mends import MENDS, NO_SCHEDULE
from benchmarks.planted_bugs import changed_source

PAGE = Path(__file__).parents[2] / "docs" / "promises.md"


def rows_of_broken_promises() -> list[str]:
    """What had happened, of each row of the page's tables that names the tests which hold a promise."""
    tables = PAGE.read_text().partition("## Found again")[0]
    first_cells = re.findall(r"^\| ([^|]+) \|", tables, re.MULTILINE)
    return [each for each in first_cells if each not in ("what happened", "---")]


def test_each_mend_can_be_taken_out() -> None:
    for mend in MENDS:
        assert changed_source(mend.without), mend.without.name


def test_each_broken_promise_has_a_mend_to_be_taken_out_or_a_reason_why_no_schedule_finds_it() -> None:
    begins = [*(mend.promise for mend in MENDS), *NO_SCHEDULE]
    rows = rows_of_broken_promises()
    assert len(rows) > 30
    for row in rows:
        assert any(row.startswith(each) for each in begins), row
    for each in begins:
        assert sum(row.startswith(each) for row in rows) == 1, each


def test_the_page_says_of_each_mend_which_schedule_finds_that_it_is_gone() -> None:
    found_again = PAGE.read_text().partition("## Found again")[2]
    for mend in MENDS:
        assert mend.without.name in found_again
    for reason in NO_SCHEDULE.values():
        assert reason in found_again
