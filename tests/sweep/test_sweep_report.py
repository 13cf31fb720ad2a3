"""The table and report of a sweep: numbers worked out by hand, and what a judged sweep of three runs leaves."""

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from murmuration.sweeps.plan import SweepPoint
from murmuration.sweeps.sweep import _row
from spark_analysis.sweep_plots import LINES_MAX, lines_of, sweep_figure
from spark_analysis.sweep_report import measures, write_sweep_report

ROOT = Path(__file__).parents[2]


def table(losses: list[float], sizes: list[int], seeds: int) -> pd.DataFrame:
    rows = [
        {
            "point": 0, "loss": loss, "size": size, "seed": seed, "verdict": "invalid" if loss else "valid",
            "published": 10, "required": 100, "delivered": 100 - int(100 * loss), "missing": int(100 * loss),
            "duplicate": 0, "spurious": 0, "out_of_order": 0, "explained": 0, "delivery_rate": 1 - loss,
            "delay_p50_us": 1000.0 * size + seed, "delay_p99_us": 2000.0 * size, "hops": 2.0, "yield": None,
            "messages_per_publication": 3.0, "bytes_per_publication": 1234.0, "wall_s": 0.5, "reason": "why & <so>",
        }
        for loss in losses for size in sizes for seed in range(seeds)
    ]  # fmt: skip
    frame = pd.DataFrame(rows)
    frame["point"] = range(1, len(frame) + 1)
    return frame


def test_the_report_has_every_setting_and_says_what_did_not_vary(tmp_path: Path) -> None:
    path = write_sweep_report(tmp_path, table([0.0, 0.5], [2, 4], 3), ["loss", "size"], "n", "d", 12, "grid: <x>")
    page = path.read_text()
    assert "6 of 12 runs are valid" in page
    assert "2.001<small>2 to 2.002</small>" in page, "mean, least and greatest of three seeds, in ms"
    assert "hops of a delivery: 2 (" in page
    assert "nothing delivered: yield" in page
    assert page.count("<figure>") == 3, "delivery rate and two delays vary"
    assert page.count('class="chart"') == 2 * 3, "each against loss and size"
    assert "<img" not in page
    assert "why &amp; &lt;so&gt;" in page
    assert 'src="http' not in page


def test_a_sweep_that_lost_points_says_so(tmp_path: Path) -> None:
    page = write_sweep_report(tmp_path, table([0.0], [2, 4], 1), ["loss", "size"], "n", "", 5, "").read_text()
    assert "2 of 5 points are judged" in page


def test_a_sweep_over_seeds_alone_has_no_figure(tmp_path: Path) -> None:
    page = write_sweep_report(tmp_path, table([0.0], [2], 3), ["loss", "size"], "n", "", 3, "").read_text()
    assert "3 runs in virtual time over seeds alone" in page
    assert "<figure>" not in page


def test_parameters_get_lines_as_long_as_they_can_be_told_apart() -> None:
    frame = table([0.0, 0.1, 0.2], [1, 2, 3, 4], 1)
    frame["third"] = frame["size"] % 2
    assert lines_of(frame, ["loss", "size", "third"], "loss") == ["size", "third"]
    assert lines_of(frame, ["loss", "size", "third"], "third") == ["loss"]
    assert LINES_MAX < 12, "as many lines as loss and size together would have"


def test_nothing_measured_or_varied_is_no_figure() -> None:
    frame = table([0.0], [1, 2], 1)
    by_column = {measure.column: measure for measure in measures(frame)}
    assert sweep_figure(frame, ["size"], by_column["yield"]) == []
    assert sweep_figure(frame, ["loss"], by_column["hops"]) == []
    assert len(sweep_figure(frame, ["size"], by_column["delay_p50_us"])) == 1


@pytest.mark.ray
@pytest.mark.spark
@pytest.mark.slow
def test_a_judged_sweep_leaves_table_and_report_and_keeps_what_went_wrong(tmp_path: Path) -> None:
    file, folder = tmp_path / "s.yaml", tmp_path / "sweep"
    file.write_text(
        "scenario: parity\nset: {overlay.brokers: 3, workload.clients: 3, workload.publications: 40}\n"
        "grid: {links.loss: [0.0, 0.5]}\n"
    )
    command = [sys.executable, "-m", "murmuration.commands.main", "sweep", str(file), "--json", "--out", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 1, done.stderr
    said = json.loads(done.stdout)
    assert (said["done"], said["verdicts"]) == (2, {"valid": 1, "invalid": 1})
    assert [each.name for each in (folder / "runs").iterdir()] == ["0002"]
    rows = pd.read_csv(folder / "table.csv")
    assert rows["links.loss"].tolist() == [0.0, 0.5]
    assert rows["delivery_rate"].tolist()[0] == 1
    assert 0 < rows["delivery_rate"].tolist()[1] < 1
    assert pd.read_parquet(folder / "table.parquet")["missing"].tolist() == rows["missing"].tolist()
    before = (folder / "points" / "0001.json").stat().st_mtime_ns
    (folder / "report.html").unlink()
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=280)
    assert json.loads(again.stdout)["kept"] == 2, again.stderr
    assert (folder / "points" / "0001.json").stat().st_mtime_ns == before
    assert (folder / "report.html").exists()


def test_the_figures_of_a_point_are_for_each_publication() -> None:
    """Ten publications for 40 deliveries, of which 4 are missing, in 120 messages of 6,000 bytes."""
    counts = {"published": 10, "required": 40, "delivered": 36, "missing": 4, "duplicate": 0, "spurious": 0}
    figures = {"delay_p50_us": 1, "delay_p99_us": 2, "hops": 3.0, "yield": 0.5, "messages": 120, "message_bytes": 6_000}
    verdict = {**counts, "out_of_order": 0, "explained": 0, "verdict": "valid", "reason": ""}
    played = {"judge": "plain", "verdict": verdict, "figures": figures, "wall_seconds": {"publishing": 3}}
    row = _row(SweepPoint(1, {"links.loss": 0.1}, 7, {}), played)
    assert (row["messages_per_publication"], row["bytes_per_publication"], row["delivery_rate"]) == (12, 600, 0.9)
    assert (row["links.loss"], row["wall_s"]) == (0.1, 3)
