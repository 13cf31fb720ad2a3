"""Links between the pages, to headings and to files of the source lead somewhere; the site has every page."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
UNLISTED = {"docs/STATUS.md", "docs/index.md"}
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def text_of(page: Path) -> str:
    """The page without what stands in fences and in backquotes."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL))


def anchors_of(page: Path) -> set[str]:
    """The headings as GitHub and the site name them in addresses."""
    outside = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", outside, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> Iterator[str]:
    for link in _LINK.findall(text_of(page)):
        if link.startswith(("http://", "https://")):
            continue
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        if not target.exists() or (anchor and anchor not in anchors_of(target)):
            yield link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    assert not list(broken_links(page))


def test_links_that_lead_nowhere_are_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Here\n[a](#here) [b](#there) [c](none.md) [d](page.md#here) `[e](none.md)`\n")
    assert list(broken_links(page)) == ["#there", "none.md"]


def test_the_site_lists_every_page() -> None:
    listed = {line.strip() for line in (ROOT / "docs" / "index.md").read_text().splitlines()}
    unlisted = [
        str(page.relative_to(ROOT))
        for page in PAGES
        if page.is_relative_to(ROOT / "docs")
        and str(page.relative_to(ROOT)) not in UNLISTED
        and page.parent.name != "decisions"
        and str(page.relative_to(ROOT / "docs").with_suffix("")) not in listed
    ]
    assert not unlisted


def test_sentences_of_the_chapters_are_short() -> None:
    """Nine of ten sentences of every page have at most 30 words."""
    too_long = {}
    for page in sorted({*(ROOT / "docs").glob("*.md")} - {ROOT / "docs" / "STATUS.md"}):
        prose = re.sub(r"^(\|.*|#.*|!\[.*|<!--.*)$", ".", text_of(page), flags=re.MULTILINE)
        sentences = [each.split() for each in re.split(r"(?<=[.!?:])\s+|\n\n|\n- |\n\d+\. ", prose)]
        lengths = sorted(len(words) for words in sentences if len(words) > 2)
        if lengths and lengths[int(len(lengths) * 0.9)] > 30:
            too_long[page.name] = lengths[int(len(lengths) * 0.9)]
    assert not too_long
