"""A frozen page is one file: its own script and no other, its data in it, and no address of anything."""

import base64
import gzip
import hashlib
import json
import re
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from typer.testing import CliRunner

from murmur_page.columns import in_columns
from murmur_page.frozen import content_policy, freeze, write_page
from murmur_page.page_files import _MODULES, read_file, script
from murmur_page.recorded import recorded
from murmuration.commands.main import application
from tests.spark.run_folder import RunFolder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    built = RunFolder(tmp_path / "run")
    built.publish("c0", 1_000, 0, 0, {"a": 1})
    built.deliver("c1", 3_000, 0, 0, subscriber=1)
    return built.finish()


def test_the_data_comes_out_as_it_went_in(run: Path) -> None:
    data = recorded(run)
    body = freeze(data).body
    packed = re.search(r'id="live-data">([^<]*)<', body)
    assert packed is not None
    found = json.loads(gzip.decompress(base64.b64decode(packed[1])))
    assert {**found, "frames": None} == {**data, "frames": None}
    assert in_rows(found["frames"]) == [ordered(frame) for frame in data["frames"]]


def in_rows(columns: dict[str, Any]) -> list[dict[str, Any]]:
    """The way back, as frozen.js has it."""
    frames = [dict(frame) for frame in columns.pop("rows")]
    for part, keyed in columns.items():
        for row in keyed:
            key = [each for each in row if type(each) is int]
            plain = [
                [n for each in column for n in ([0] * -each if each < 0 else [each])] for column in row[len(key) :]
            ]
            assert {len(column) for column in plain} == {len(frames)}
            for frame, counts in zip(frames, zip(*plain, strict=True), strict=True):
                if any(counts):
                    frame.setdefault(part, []).append([*key, *counts])
    for frame in frames:
        sent: Counter[int] = Counter()
        for _, receiver, events, others, _ in frame.get("m", ()):
            sent[receiver] += events + others
        own = {broker: [0, 0, 0] for broker in sent} | {row[0]: row[1:] for row in frame.pop("a", ())}
        whole = [
            [broker, sent[broker] + (-(more + 1) // 2 if more % 2 else more // 2), *rest]
            for broker, (more, *rest) in own.items()
        ]
        if any(any(counts) for _, *counts in whole):
            frame["a"] = [row for row in whole if any(row[1:])]
    return [ordered(frame) for frame in frames]


def ordered(frame: dict[str, Any]) -> dict[str, Any]:
    return frame | {part: sorted(frame[part]) for part in ("m", "a", "d") if part in frame}


def test_counts_in_columns_are_the_same_counts_in_fewer_bytes() -> None:
    draw = Random(1)
    frames: list[dict[str, Any]] = [
        {"b": at, "t": at + 1, "s": [{"t": at}]}
        | {"m": [[a, a + 1, draw.randint(1, 90), 0, 0] for a in range(20) if draw.random() < 0.7]}
        | ({"d": [[80, at], [91, 1]]} if at % 7 else {})
        for at in range(300)
    ]
    for at, frame in enumerate(frames):  # a message may arrive a frame later, or be lost
        sent = {to: count for _, to, count, *_ in frame["m"]}
        if at % 3:
            received = [(broker, sent.get(broker, 0) + draw.choice([-1, 0, 0, 1])) for broker in range(20)]
            frame["a"] = [[broker, max(0, count), 0, draw.randint(0, 3)] for broker, count in received if count > 0]
    columns = in_columns(frames)
    sizes = [len(gzip.compress(json.dumps(each, separators=(",", ":")).encode())) for each in (columns, frames)]
    assert sizes[0] < 0.75 * sizes[1]
    assert in_rows(columns) == [ordered(frame) for frame in frames]


def test_the_policy_lets_the_page_s_own_script_run_and_nothing_else(run: Path) -> None:
    parts = freeze(recorded(run))
    (unpack,) = re.findall(r"<script>(.*?)</script>", parts.body, re.DOTALL)
    packed = re.search(r'id="live-script">([^<]*)<', parts.body)
    assert packed is not None
    own = gzip.decompress(base64.b64decode(packed[1])).decode()
    assert own == script("frozen")
    digests = [base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in (unpack, own)]
    policy = dict(part.strip().split(" ", 1) for part in content_policy(*parts.scripts).split(";"))
    assert policy == {
        "default-src": "'none'", "img-src": "data:", "style-src": "'unsafe-inline'",
        "script-src": f"'sha256-{digests[0]}' 'sha256-{digests[1]}'",
    }  # fmt: skip


def test_a_page_names_no_other_place(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    write_page(path, recorded(run))
    text = re.sub(r'(id="live-\w+">)[^<]*', r"\1", path.read_text()) + script("frozen")
    assert not re.findall(r"(?:https?:)?//[a-z]", re.sub(r"(?m)^\s*//.*$|\s// .*$", "", text))
    assert not re.findall(r"<(?:link|img|iframe)\b|\bsrc=", text)


def test_a_name_in_a_run_cannot_become_markup(run: Path, tmp_path: Path) -> None:
    data = recorded(run)
    data["head"]["name"] = "</title><script>alert(1)</script>"
    path = tmp_path / "page.html"
    write_page(path, data)
    assert "alert(1)" not in path.read_text().replace("&lt;script&gt;alert(1)", "")


def test_modules_put_together_define_no_name_twice_and_import_only_what_comes_before() -> None:
    defined: set[str] = set()
    for name in (*_MODULES, "frozen"):
        text = read_file(f"{name}.js")
        for found in re.findall(r'^import \{([^}]*)\} from "\./(\w+)\.js";$', text, re.MULTILINE):
            wanted = {each.strip() for each in found[0].split(",")}
            assert wanted <= defined, f"{name}.js imports {wanted - defined} before it is there"
        own = re.findall(r"^(?:export )?(?:async )?(?:function|const|let|class) (\w+)", text, re.MULTILINE)
        assert len(own) == len(set(own))
        assert not defined & set(own), f"{name}.js defines {defined & set(own)} again"
        defined |= set(own)
    for name in (*_MODULES, "frozen"):
        assert not re.findall(r"^(?:import|export) ", script("frozen"), re.MULTILINE), name


def test_the_page_itself_is_small(run: Path) -> None:
    """Without the data of a run: what a viewer loads once."""
    whole = script("frozen") + read_file("live.css") + read_file("picture.html")
    assert len(gzip.compress(whole.encode())) < 30_000


def test_the_command_writes_a_page_of_a_run_that_was_not_judged(run: Path) -> None:
    done = CliRunner().invoke(application, ["page", str(run)])
    assert done.exit_code == 0, done.output
    assert (run / "page.html").stat().st_size > 10_000


@pytest.mark.parametrize(("damage", "words"), [("manifest", "manifest"), ("journal", "schema version")])
def test_a_damaged_run_is_named_in_a_sentence(run: Path, damage: str, words: str) -> None:
    if damage == "manifest":
        (run / "manifest.json").write_text("{")
    else:
        for path in (run / "journal").glob("*.seg"):
            data = bytearray(path.read_bytes())
            data[8] += 1
            path.write_bytes(data)
    done = CliRunner().invoke(application, ["page", str(run)])
    assert words in str(done.exception)
    assert not (run / "page.html").exists()
