"""What `murmur serve` does: the live page's server in the foreground, until it is interrupted."""

import asyncio
import signal
from pathlib import Path

from murmur_pubsub.errors import InputError
from murmuration.live.server import PageServer


def serve_runs(runs: Path, host: str, port: int) -> None:
    """Serve the folder; raises `InputError` for a place that is none, or an address that cannot be had."""
    if not runs.is_dir():
        raise InputError(str(runs), "no such folder", "a folder with run folders, or one of them")
    asyncio.run(_serve(runs.resolve(), host, port))


async def _serve(runs: Path, host: str, port: int) -> None:
    server, over = PageServer(runs), asyncio.Event()
    await server.start(host, port)
    loop = asyncio.get_running_loop()
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, over.set)
    print(f"{server.link()}\n(Ctrl-C ends it)", flush=True)
    await over.wait()
    await server.stop()
