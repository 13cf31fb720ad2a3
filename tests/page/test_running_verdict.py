"""The program that judges a run while it goes on: begun once, and what becomes of it is told."""

import asyncio
from pathlib import Path

import pytest

from murmuration.live import running_verdict
from murmuration.live.running_verdict import RunningVerdictProgram


@pytest.fixture(autouse=True)
def java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_analysis.session.check_java", lambda: "17")


@pytest.mark.parametrize("program", [("/nowhere/nice",), ("echo", "no verdict")], ids=["none", "of other words"])
def test_a_program_that_fails_is_told_and_ended_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: tuple[str, ...]
) -> None:
    monkeypatch.setattr(running_verdict, "_GIVING_WAY", program)

    async def scenario() -> None:
        judge = RunningVerdictProgram(tmp_path)
        await judge.start()
        assert judge._reading is not None
        await asyncio.wait([judge._reading])
        assert judge.told["running"]["trouble"].startswith("The running verdict has ended: ")
        await judge.close()

    asyncio.run(scenario())
