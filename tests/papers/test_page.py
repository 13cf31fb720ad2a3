"""The page of a reproduction: whole in one file, missed criteria first, paper beside measured."""

import re
from pathlib import Path

from murmuration.papers.lab.page import write_page
from murmuration.papers.lab.plotting import panels, save
from murmuration.papers.lab.results import Beside, Figure, PaperResult, ResultTable


class Example:
    """A paper of nothing."""

    name = "example"
    title = "An <example>"
    about = "How it is measured."


def result(folder: Path) -> PaperResult:
    figure, (axes,) = panels(width=4.0)
    axes.plot([1, 2])
    found = PaperResult(scaled_down=True)
    rows = [("a & b", Beside("38 %", "34.5 %"), "0 / 0"), ("c", Beside("-", "1,234"), "about 2")]
    drawn = [Figure(save(figure, folder, "drawn"), "What was drawn")]
    found.tables.append(ResultTable("t", "Table 1", ("what", "yield", "note"), rows, drawn))
    found.judge("held", "above 0", 12.3456789, True, at_any_size=True)
    found.judge("large", "above 9", 1, False, "64 nodes")
    found.judge("broken", "0", 3, False, at_any_size=True)
    return found


def test_the_page_needs_no_other_file_and_escapes_what_it_shows(tmp_path: Path) -> None:
    page = write_page(Example(), result(tmp_path), tmp_path).read_text()  # type: ignore[arg-type]
    assert not re.search(r'(src|href)="(?!data:)', page)
    assert page.count('src="data:image/png;base64,') == 1
    assert "An &lt;example&gt;" in page
    assert "a &amp; b" in page
    assert '<span class="paper">38 %</span> 34.5 %' in page


def test_missed_criteria_come_first_and_those_of_full_size_are_not_judged(tmp_path: Path) -> None:
    found = result(tmp_path)
    page = write_page(Example(), found, tmp_path).read_text()  # type: ignore[arg-type]
    assert "1 of 2 criteria is missed." in page
    assert re.findall(r'<span class="mark">(.*?)</span>', page) == ["missed", "met", "not judged"]
    assert "64 nodes; scaled down: judged at full size only" in page
    assert '<span class="value">12.3457</span>' in page
    assert not found.all_met


def test_tables_and_criteria_are_files_too(tmp_path: Path) -> None:
    result(tmp_path).write(tmp_path)
    assert (tmp_path / "t.csv").read_text().splitlines()[1] == "a & b,38 % | 34.5 %,0 / 0"
    assert (tmp_path / "criteria.csv").read_text().splitlines()[3] == "broken,0,3,NO,"
