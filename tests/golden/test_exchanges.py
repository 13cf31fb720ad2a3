"""Golden exchanges: small interleavings written down whole, message by message, to be read by people.

A file holds commands (tests/golden/exchange.py says which) and, below a line of dashes, what they brought about.
Regenerate with `MURMUR_REWRITE=1 pytest tests/golden`, read the difference, and commit only what you can explain.
"""

import os
from pathlib import Path

import pytest

from tests.golden.exchange import Exchange

FOLDER = Path(__file__).parent / "exchanges"
EXCHANGES = sorted(FOLDER.rglob("*.txt"))
RULE = "-" * 20


@pytest.mark.parametrize("path", EXCHANGES, ids=lambda path: path.relative_to(FOLDER).with_suffix("").as_posix())
def test_the_exchange_is_as_written(path: Path, tmp_path: Path) -> None:
    head, _, expected = path.read_text().partition(RULE + "\n")
    happened = "\n".join(Exchange(tmp_path).play(head.splitlines())) + "\n"
    if os.environ.get("MURMUR_REWRITE"):
        path.write_text(f"{head}{RULE}\n{happened}")
    assert happened == expected or os.environ.get("MURMUR_REWRITE")


def test_every_exchange_begins_with_what_to_look_at() -> None:
    assert len(EXCHANGES) > 20
    assert [path.name for path in EXCHANGES if not path.read_text().startswith("# ")] == []
