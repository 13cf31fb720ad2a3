"""The site is built from the pages without a complaint, and can be read and searched without a network."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytest.importorskip("sphinx", reason="the extra 'docs' is not installed: make docs installs it")


@pytest.mark.slow
def test_the_site_is_built_without_a_complaint_and_asks_for_nothing_elsewhere(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going"]
    built = subprocess.run([*command, ROOT / "docs", tmp_path], cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    index = (tmp_path / "searchindex.js").read_text()
    assert "recovery_limit" in index
    assert all(f'"{page.stem}"' in index for page in (ROOT / "docs").glob("*.md") if page.stem != "STATUS")
    pages = sorted(tmp_path.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        asked = re.findall(r"<(?:script|link|img|iframe)[^>]*?(?:src|href)=\"(https?:[^\"]*)\"", page.read_text())
        assert not asked, f"{page.name} loads {asked}"
    states = (tmp_path / "protocols" / "irbr.html").read_text()
    assert '<pre class="mermaid">stateDiagram-v2' in states
