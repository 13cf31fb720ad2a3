"""The running verdict of a run: a program beside the server, whose every line is the verdict so far."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

_GIVING_WAY = ("nice", "-n", "10")
"""It gives way to the run that it judges."""
_END_S = 5.0
"""So long it may take to end: whoever ends the server waits for that."""


class RunningVerdictProgram:
    """Started once somebody asks for it; `told` is what pages are told of it."""

    def __init__(self, run: Path) -> None:
        self._run = run
        self._reading: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._said: dict[str, Any] = {}

    @property
    def told(self) -> dict[str, Any]:
        """The verdict so far; that it is on its way; or nothing."""
        return {"running": self._said} if self._said else {}

    async def start(self) -> None:
        """Begin, unless it goes on already; who asks while it begins waits for that. Raises `InputError` where Spark
        cannot run."""
        from spark_analysis.session import check_java

        async with self._starting:
            if self._reading is None or self._reading.done():
                await asyncio.to_thread(check_java)
                self._said = {"waiting": "Spark is started …"}
                self._reading = asyncio.create_task(self._read())

    async def close(self) -> None:
        """End it."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])

    async def _read(self) -> None:
        try:
            await self._follow()
        except (OSError, ValueError) as error:  # it did not start, or what it says is no verdict
            self._said = {"trouble": f"The running verdict has ended: {error}"}

    async def _follow(self) -> None:
        program = await asyncio.create_subprocess_exec(
            *_GIVING_WAY, sys.executable, "-m", "spark_analysis.running", str(self._run),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        assert program.stdin is not None
        assert program.stdout is not None
        try:
            async for line in program.stdout:
                self._said = json.loads(line)
            if await program.wait():
                self._said = {"trouble": self._said.get("trouble", "Spark has ended: there is no verdict so far.")}
        finally:
            program.stdin.close()  # then it ends by itself
            try:
                await asyncio.wait_for(program.wait(), _END_S)
            except TimeoutError:
                program.kill()
