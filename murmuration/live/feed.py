"""The feed of one run: read ten times a second while somebody looks on, and sent to every viewer at its own pace.

While nobody does it is read every few seconds, so that whoever comes back waits for little.

A viewer is sent a snapshot when it joins, and then frames. Nobody waits for a viewer: one that lags is sent a new
snapshot, one that takes nothing for seconds is dropped, and its page joins again.
"""

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aiohttp import web

from murmur_page.growing import GrowingRun
from murmur_page.recorded import judged, recorded
from murmur_pubsub.errors import InputError
from murmuration.live.findings import found

LOOK_EVERY_S = 0.1
_UNSEEN_EVERY_S = 5.0
_BEHIND_MAX = 50
"""A viewer further behind than so many looks gets a snapshot instead."""
_SEND_S = 5.0
_VIEWERS_MAX = 64


class RunFeed:
    """The viewers of one run, and what they are sent."""

    def __init__(self, run: Path, extra: Callable[[], dict[str, Any]] = dict) -> None:
        self._run = run
        self._extra = extra
        """What the page is told beside frames, whenever it changes."""
        self._growing: GrowingRun | None = None
        self._recorded: dict[str, Any] | None = None
        self._updates: deque[str] = deque(maxlen=_BEHIND_MAX)
        self._sent = 0
        """How many updates there have been."""
        self._changed = asyncio.Event()
        self._reading = asyncio.Lock()
        """Held from a look at the journal until its frames are told: a snapshot has all that was told, and no more. It
        is held while the reading begins, too: of two viewers that join at once, one begins it."""
        self._viewers = 0
        self._joined = asyncio.Event()
        """Somebody has come since the last look."""
        self._task: asyncio.Task[None] | None = None
        self._told: dict[str, Any] = {}

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Serve one viewer until it leaves, or is dropped."""
        if self._viewers >= _VIEWERS_MAX:
            raise web.HTTPServiceUnavailable(text=f"{_VIEWERS_MAX} pages look at this run already; close one.")
        socket = web.WebSocketResponse(heartbeat=30.0, max_msg_size=4_096)
        await socket.prepare(request)
        self._viewers += 1
        self._joined.set()
        try:
            await self._start()
            sending = asyncio.create_task(self._send_to(socket))
            listening = asyncio.create_task(_until_closed(socket))
            await asyncio.wait((sending, listening), return_when=asyncio.FIRST_COMPLETED)
            for task in (listening, sending):  # the second may raise what ended the watching
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, ConnectionError, TimeoutError):
                    await task
        except Exception as error:
            text = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
            with contextlib.suppress(Exception):
                await asyncio.wait_for(socket.send_json({"kind": "error", "text": text}), _SEND_S)
        finally:
            self._viewers -= 1
            with contextlib.suppress(Exception):
                await asyncio.wait_for(socket.close(), _SEND_S)
        return socket

    async def close(self) -> None:
        """End the watching, if it has not failed already."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _start(self) -> None:
        async with self._reading:
            if self._recorded is not None or (self._task is not None and not self._task.done()):
                return
            if self._growing is not None:
                self._growing.close()  # whose watching has failed
            growing = await asyncio.to_thread(GrowingRun, self._run)
            if growing.over:
                growing.close()
                self._recorded = await asyncio.to_thread(_whole, self._run)
                self._growing = None
                return
            self._growing = growing
            await asyncio.to_thread(growing.look)
            self._task = asyncio.create_task(self._watch(growing))
            self._task.add_done_callback(self._ended)

    def _ended(self, watching: asyncio.Task[None]) -> None:
        """Whoever waits for more looks why none comes. Without a viewer nobody does, and asyncio would print it."""
        if not watching.cancelled():
            watching.exception()
        self._wake()

    async def _watch(self, growing: GrowingRun) -> None:
        """Read on and tell, as long as the run goes on."""
        while True:
            began = asyncio.get_running_loop().time()
            async with self._reading:
                over = await self._look(growing)
            if over:
                return
            if self._viewers:
                await asyncio.sleep(max(0.01, LOOK_EVERY_S - (asyncio.get_running_loop().time() - began)))
                continue
            self._joined.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._joined.wait(), _UNSEEN_EVERY_S)

    async def _look(self, growing: GrowingRun) -> bool:
        """Tell what is new; True: the run is over, and all of it was told."""
        over = growing.over
        frames = await asyncio.to_thread(growing.look)
        update: dict[str, Any] = {"frames": frames} if frames else {}
        told = self._extra()
        if told != self._told:
            self._told = told
            update["told"] = told
        over = over and not frames
        if over:
            growing.close()
            self._recorded = await asyncio.to_thread(_whole, self._run)
            self._growing = None
            update["over"] = True
        if update:
            self._tell({"kind": "update", **update})
        return over

    def _tell(self, update: dict[str, Any]) -> None:
        self._updates.append(json.dumps(update, separators=(",", ":")))
        self._sent += 1
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _send_to(self, socket: web.WebSocketResponse) -> None:
        """Send a viewer all that is told; raises what ended the watching, once all before it is sent."""
        watching = self._task
        at: int | None = None
        while True:
            changed = self._changed
            behind = None if at is None else self._sent - at
            if behind is None or behind > len(self._updates):
                async with self._reading:
                    at = self._sent
                    text = json.dumps(self._snapshot(), separators=(",", ":"))
                await asyncio.wait_for(socket.send_str(text), _SEND_S)
            elif behind:
                for text in list(self._updates)[-behind:]:
                    await asyncio.wait_for(socket.send_str(text), _SEND_S)
                    at = (at or 0) + 1
            else:
                if watching is not None and watching.done():
                    watching.result()
                await changed.wait()

    def _snapshot(self) -> dict[str, Any]:
        data = self._recorded if self._growing is None else self._growing.snapshot()
        return {"kind": "snapshot", "data": data, "live": self._growing is not None, "told": self._told}


async def _until_closed(socket: web.WebSocketResponse) -> None:
    async for _ in socket:
        pass


def _whole(run: Path) -> dict[str, Any]:
    """All that there is of a run that is over."""
    return recorded(run, in_file=False) | judged(run) | found(run)
