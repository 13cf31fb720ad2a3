"""What journals, manifests and messages of other versions rely on, written down whole: numbers, fields and defaults.

A difference is a change of format: readers of older journals meet it, and brokers of another version. Regenerate with
`MURMUR_REWRITE=1 pytest tests/golden/test_formats.py`, and say in the commit who can still read what.
"""

import dataclasses
import os
import re
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from murmur_pubsub import faults, journal, journal_format, run_manifest
from murmur_pubsub.message import INT64
from tests.conformance.test_every_message import MESSAGES

FILE = Path(__file__).parent / "formats.txt"
TREE = Path(__file__).parents[2]
_TOPIC = re.compile(r'^([A-Z][A-Z_]+) = (\d+)\n"""Topic', re.MULTILINE)


def _kinds() -> Iterator[type[IntEnum]]:
    for module in (faults, journal, journal_format):
        for kind in vars(module).values():
            if isinstance(kind, type) and issubclass(kind, IntEnum) and kind.__module__ == module.__name__:
                yield kind


def _numbers() -> Iterator[str]:
    for kind in _kinds():
        yield f"{kind.__name__}: {', '.join(f'{name} {each.value}' for name, each in kind.__members__.items())}"


def _topics() -> Iterator[str]:
    for folder in ("murmur_pubsub", "reliability", "routing"):
        for path in sorted((TREE / folder).rglob("*.py")):
            for name, number in _TOPIC.findall(path.read_text()):
                yield f"topic {number}: {path.relative_to(TREE).as_posix()} {name}"


def _bytes() -> Iterator[str]:
    yield f"schema {journal_format.SCHEMA_VERSION}"
    yield f"row {journal_format.ROW.format}, its kind at {journal_format.KIND_AT}"
    yield f"side record {journal_format.RECORD.format}"
    for header in ("_HEADER", "_CHECKSUM"):
        yield f"{header} {getattr(journal_format, header).format} of {journal_format.HEADER_BYTES} bytes"
    yield f"{journal_format.MAGIC_ROWS!r}, {journal_format.MAGIC_SIDE!r}"
    yield f"an open segment: {[int(each) for each in dataclasses.astuple(journal_format.SegmentHeader(1, 2, 3))]}"


def _manifest() -> Iterator[str]:
    for name, kind in vars(run_manifest).items():
        if isinstance(kind, type) and dataclasses.is_dataclass(kind) and kind.__module__ == run_manifest.__name__:
            given = (
                each.name if each.default is dataclasses.MISSING else f"{each.name} = {each.default!r}"
                for each in dataclasses.fields(kind)
            )
            yield f"manifest {name}: {', '.join(given)}"


def _said(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else repr(hint)


def _messages() -> Iterator[str]:
    yield f"integers from {INT64.low} to {INT64.high}"
    for path, kind in sorted(MESSAGES.items(), key=lambda each: each[1].KIND):  # type: ignore[attr-defined]
        marks: Any = kind
        how = [marks.WAY.value, *(["control"] if marks.CONTROL else []), *(["datagram"] if marks.DATAGRAM else [])]
        hints = get_type_hints(kind, include_extras=True)
        fields = "; ".join(f"{name} {_said(hint)}" for name, hint in hints.items())
        yield f"message {marks.KIND}: {path} ({', '.join(how)}) {fields}"


def test_formats_are_as_written() -> None:
    text = "".join(f"{line}\n" for part in (_bytes, _numbers, _topics, _manifest, _messages) for line in part())
    if os.environ.get("MURMUR_REWRITE"):
        FILE.write_text(text)
    assert text == FILE.read_text()


def test_every_sort_of_line_is_there() -> None:
    text = FILE.read_text()
    for begin, at_least in (("topic ", 9), ("manifest ", 5), ("message ", 80), ("FaultKind: KILL 1", 1)):
        assert len(re.findall(f"^{begin}", text, re.MULTILINE)) >= at_least, begin


@pytest.mark.parametrize("kind", list(_kinds()), ids=lambda kind: kind.__name__)
def test_numbers_follow_one_another_and_none_has_two_names(kind: type[IntEnum]) -> None:
    numbers = [each.value for each in kind.__members__.values()]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
