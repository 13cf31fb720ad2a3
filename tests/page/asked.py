"""A server that is asked by a client with its cookies, and a run that goes on for it to show."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp

from murmuration.live.server import PageServer
from tests.spark.run_folder import RunFolder

Asking = Callable[[PageServer, aiohttp.ClientSession, str], Awaitable[None]]
_HANGS_S = 300
"""Whoever waits so long waits for what will not come."""


def asked(place: Path, ask: Asking) -> None:
    """Start a server for the folder and have it asked, by a client that keeps cookies."""

    async def all_of_it() -> None:
        server = PageServer(place)
        await server.start()
        jar = aiohttp.CookieJar(unsafe=True)  # keeps those of an address too
        try:
            async with aiohttp.ClientSession(cookie_jar=jar) as session:
                await asyncio.wait_for(ask(server, session, server.link().split("/?")[0]), _HANGS_S)
        finally:
            await server.stop()

    asyncio.run(all_of_it())


async def joined(server: PageServer, session: aiohttp.ClientSession, base: str, name: str) -> Any:
    await session.get(server.link())
    return await session.ws_connect(f"{base}/run/{name}/feed", headers={"Origin": base})


class Growing:
    """A run that goes on: rows are written while the server reads."""

    def __init__(self, place: Path) -> None:
        self.built = RunFolder(place / "growing")
        self.built.finish(close=False)
        self.manifest = place / "growing" / "manifest.json"
        self.say("running")
        self.number = 0

    def say(self, status: str) -> None:
        document = json.loads(self.manifest.read_text())
        document["status"] = status
        document["writers"] = None if status == "running" else {"b0": 1}
        draft = self.manifest.with_suffix(".new")
        draft.write_text(json.dumps(document))
        draft.replace(self.manifest)

    def publish(self, times: int) -> None:
        for _ in range(times):
            self.number += 1
            self.built.publish("c0", 50_000 * self.number, 0, self.number, {"a": 1})


def published(frames: list[dict[str, Any]]) -> int:
    return sum(frame.get("p", 0) for frame in frames)
