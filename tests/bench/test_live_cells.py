"""Cells of the bench played on Ray beside virtual time."""

import sys

import pytest

from benchmarks import live_cells


@pytest.mark.ray
def test_a_cell_comes_to_the_same_counts_live_and_in_virtual_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["live_cells", "forwarding/best_effort", "--brokers", "10"])
    live_cells.main()
    virtual, live = (line.split() for line in capsys.readouterr().out.splitlines() if "/best_effort" in line)
    named = dict(zip(live_cells.HEADINGS, range(len(virtual)), strict=False))
    assert (virtual[1], live[1]) == ("virtual", "ray")
    for counted in ("judged", "required", "missing", "twice", "hops"):
        assert virtual[named[counted]] == live[named[counted]]
    assert int(live[named["required"]].replace(",", "")) > 0
