"""The page of the bench: what its means are means of, and what its charts show."""

import math
import re
from pathlib import Path

import pandas as pd
import pytest

from murmuration.bench.card import card_of
from murmuration.bench.page import overview, write_page
from murmuration.bench.plan import BenchPlan


def cell(workload: str, seed: int, messages: float) -> dict[str, object]:
    """One row of the table, of one system that nothing befalls."""
    return {
        "routing": "irbr", "reliability": "epidemic", "workload": workload, "fault": "none", "seed": seed,
        "delivery_rate": 1.0, "rate_present": 1.0, "messages": messages, "event_messages": messages, "hops": 3.0,
        "overhead": 0.5, "delay_p50_us": 1_000.0, "delay_p99_us": 2_000.0, "recovery_us": None,
    }  # fmt: skip


def test_each_workload_counts_once_where_only_some_have_a_second_seed() -> None:
    table = pd.DataFrame([cell("uniform", 1, 10.0), cell("uniform", 2, 20.0), cell("social", 1, 45.0)])
    shown = overview(table)
    (row,) = shown.rows
    at = next(number for number, (title, _) in enumerate(shown.titles) if title == "all messages")
    assert row[0] == "irbr/epidemic"
    assert row[1][at] == "30", "the mean of 15 and 45"


SYSTEMS = {
    ("irbr", "epidemic"): (0.9731, 12.0, 250_000.0),
    ("cells", "gryphon"): (1.0, 310.0, 1_250_000.0),
    ("flooding", "best_effort"): (0.611, 47.0, 37_000.0),
}
"""Of each system: the share delivered, messages an event, and the delay of the slowest hundredth in microseconds."""


class Chart:
    """What a reader sees: marks with their words beside both axes, and dots with their numbers."""

    def __init__(self, html: str) -> None:
        self.words = re.findall(r'<div class="(?:head"><span|words")>([^<]*)<', html)
        beside = re.findall(r'class="mark" style="top:(.*?)%">(.*?)<', html)
        self.up = [(1 - float(top) / 100, each) for top, each in beside]
        below = html.partition('<div class="below">')[2].partition("</div>")[0]
        self.across = [(float(left) / 100, each) for left, each in re.findall(r'left:(.*?)%">(.*?)<', below)]
        self.dots = [(int(x) / 1_000, 1 - int(y) / 1_000) for x, y in re.findall(r'd="M(\d+) (\d+)h0"', html)]
        self.notes = re.findall(r'class="note-in" style="left:(.*?)%;top:(.*?)%">(.*?)<', html)


def read_off(marks: list[tuple[float, str]], place: float, logarithmic: bool = False) -> float:
    """The value at that place, by the words of the first mark and of the last one."""
    scaled = math.log if logarithmic else float
    (first, low), (last, high) = ((at, scaled(float(words.replace(",", "")))) for at, words in (marks[0], marks[-1]))
    found = low + (place - first) / (last - first) * (high - low)
    return math.exp(found) if logarithmic else found


@pytest.mark.parametrize("fault", ["none", "killed"])
def test_what_is_read_off_the_axes_of_a_chart_is_what_the_table_says(fault: str, tmp_path: Path) -> None:
    rows = [
        {
            **cell("uniform", seed, messages), "routing": routing, "reliability": reliability, "fault": fault,
            "rate_present": rate, "delivery_rate": rate, "delay_p99_us": delay_us * seed / 1.5, "recovery_us": 1e6,
            "duplicates": 0.0, "message_bytes": 1_000.0, "verdict": "valid", "reason": "", "cpu_s": 1.0,
        }
        for seed in (1, 2)
        for (routing, reliability), (rate, messages, delay_us) in SYSTEMS.items()
    ]  # fmt: skip
    page = write_page(tmp_path, pd.DataFrame(rows), BenchPlan((), {}), [card_of("uniform", 1, 10)], 10).read_text()
    (drawn,) = re.findall(r'<div class="chart".*?role="status" hidden></div></div>', page, re.DOTALL)
    chart = Chart(drawn)
    up = "delay of the slowest hundredth (ms)" if fault == "none" else "delivered (% of required)"
    assert chart.words == [up, "messages an event, logarithmic"]
    assert len(chart.up) >= 3
    assert len(chart.across) >= 3
    for marks, logarithmic in ((chart.up, False), (chart.across, True)):
        for place, words in marks:
            assert read_off(marks, place, logarithmic) == pytest.approx(float(words.replace(",", "")), rel=2e-3)
    assert len(chart.dots) == len(SYSTEMS)
    for number, (dot, (rate, messages, delay_us)) in enumerate(zip(chart.dots, SYSTEMS.values(), strict=True), 1):
        wanted = delay_us / 1e3 if fault == "none" else 100 * rate
        height = read_off(chart.up, 1.0) - read_off(chart.up, 0.0)
        assert read_off(chart.up, dot[1]) == pytest.approx(wanted, abs=2e-3 * height)
        assert read_off(chart.across, dot[0], logarithmic=True) == pytest.approx(messages, rel=5e-3)
        left, top, words = chart.notes[number - 1]
        assert words == str(number)
        assert (float(left) / 100, 1 - float(top) / 100) == pytest.approx(dot, abs=1e-3)
