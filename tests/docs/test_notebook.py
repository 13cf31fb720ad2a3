"""The notebook runs from its first cell to its last, and says what the chapter prints."""

import contextlib
import io
import json
from pathlib import Path

import matplotlib
import pytest

from tests.docs.printed_pages import ROOT, PrintedCommand, steps_of

NOTEBOOK = ROOT / "docs" / "examples" / "results.ipynb"


@pytest.mark.slow
def test_the_notebook_runs_and_says_what_the_chapter_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    matplotlib.use("agg")
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    names: dict[str, object] = {}
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        for cell in cells:
            if cell["cell_type"] == "code":
                exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
    chapter = steps_of((ROOT / "docs" / "notebooks.md").read_text())
    typed = [step for step in chapter if isinstance(step, PrintedCommand) and step.command.startswith("python ")]
    printed = [step.output for step in typed if "spark" not in step.command]
    wanted = [line.split() for output in printed for line in output]
    assert [line.split() for line in said.getvalue().splitlines()] == wanted


def test_the_notebook_is_kept_without_outputs() -> None:
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)
