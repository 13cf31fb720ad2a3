"""The table of hashes on docs/lessons.md is that of the runs; `MURMUR_REWRITE=1` writes it anew."""

import os
import re
from pathlib import Path

import pytest

from murmuration.lessons.witnesses import pairs, table, witness

PAGE = Path(__file__).parents[2] / "docs" / "lessons.md"
TABLE = re.compile(r"(<!-- witnesses: [^\n]*-->\n)(.*?)(<!-- witnesses: end -->)", re.DOTALL)


@pytest.mark.slow
def test_the_page_has_the_hashes_of_all_protocols() -> None:
    text = PAGE.read_text()
    made = "\n".join(table(witness(*pair) for pair in pairs())) + "\n"
    if os.environ.get("MURMUR_REWRITE"):
        text = TABLE.sub(lambda found: found[1] + made + found[3], text)
        PAGE.write_text(text)
    found = TABLE.search(text)
    assert found is not None
    assert found[2] == made, "MURMUR_REWRITE=1 python -m pytest tests/lessons/test_witness_table.py"
