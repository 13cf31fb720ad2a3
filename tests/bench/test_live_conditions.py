"""What links and faults do to events, live beside virtual time."""

import sys

import pytest

from benchmarks import live_conditions
from murmuration.scenario.load import check_scenario


@pytest.mark.parametrize("condition", live_conditions.CONDITIONS)
def test_each_condition_is_a_scenario(condition: str) -> None:
    check_scenario(live_conditions.scenario_of(condition), condition)


@pytest.mark.ray
def test_a_condition_comes_to_the_same_deliveries_live_and_in_virtual_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["live_conditions", "slow"])
    live_conditions.main()
    virtual, live = (line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("slow "))
    assert (virtual[1], live[1]) == ("virtual", "live")
    assert virtual[2:4] == live[2:4]
    assert live[2] == "valid"
