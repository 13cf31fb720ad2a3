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


def test_two_who_ask_at_once_are_told_by_one_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = tmp_path / "begun"
    monkeypatch.setattr(running_verdict, "_GIVING_WAY", ("sh", "-c", f"echo >> {begun}; echo '{{}}'; cat"))

    async def scenario() -> None:
        judge = RunningVerdictProgram(tmp_path)
        await asyncio.gather(judge.start(), judge.start())
        async with asyncio.timeout(20):
            while judge.told:  # until the program has said something
                await asyncio.sleep(0.01)
        await judge.start()
        await judge.close()

    asyncio.run(scenario())
    assert begun.read_text().count("\n") == 1
