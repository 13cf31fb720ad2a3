"""The site is built from the pages without a complaint, and can be read and searched without a network."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.page.browser import browser

ROOT = Path(__file__).parents[2]
WIDER_OR_BROKEN = """
const broken = [...document.images].filter(image => !image.complete || !image.naturalWidth).length;
return [document.documentElement.scrollWidth > window.innerWidth, broken];
"""
pytest.importorskip("sphinx", reason="the extra 'docs' is not installed: make docs installs it")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going"]
    built = subprocess.run([*command, ROOT / "docs", folder], cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder


@pytest.mark.slow
def test_the_site_is_built_without_a_complaint_and_asks_for_nothing_elsewhere(site: Path) -> None:
    index = (site / "searchindex.js").read_text()
    assert "recovery_limit" in index
    assert all(f'"{page.stem}"' in index for page in (ROOT / "docs").glob("*.md") if page.stem != "STATUS")
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        asked = re.findall(r"<(?:script|link|img|iframe)[^>]*?(?:src|href)=\"(https?:[^\"]*)\"", page.read_text())
        assert not asked, f"{page.name} loads {asked}"
    states = (site / "protocols" / "irbr.html").read_text()
    assert '<pre class="mermaid">stateDiagram-v2' in states


def misfits(opened: Any, folder: Path) -> list[str]:
    """The pages that are wider than the window, or miss a picture."""
    found = []
    for page in sorted(folder.rglob("*.html")):
        opened.get(f"file://{page}")
        if opened.execute_script(WIDER_OR_BROKEN) != [False, 0]:
            found.append(str(page.relative_to(folder)))
    return found


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize("width", [400, 1280])
def test_no_page_is_wider_than_the_window_or_misses_a_picture(site: Path, width: int) -> None:
    with browser(width, 900) as opened:
        assert misfits(opened, site) == []


@pytest.mark.slow
@pytest.mark.browser
def test_a_page_that_is_too_wide_or_misses_a_picture_is_seen(tmp_path: Path) -> None:
    (tmp_path / "wide.html").write_text('<div style="width: 500px">wide</div>')
    (tmp_path / "broken.html").write_text('<img src="nowhere.png">')
    (tmp_path / "fine.html").write_text("<p>fine</p>")
    with browser(400, 900) as opened:
        assert misfits(opened, tmp_path) == ["broken.html", "wide.html"]
