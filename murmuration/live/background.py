"""The live page's server in a thread of its own, beside a run."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from murmuration.live.server import LOOPBACK, PageServer


@contextmanager
def page_server(place: Path, host: str = LOOPBACK, port: int = 0) -> Iterator[PageServer]:
    """Serve the runs in the folder for the length of the block; raises `InputError` for an address that cannot be
    had."""
    server = PageServer(place)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(server.start(host, port))
    thread = threading.Thread(target=loop.run_forever, name="live page", daemon=True)
    thread.start()
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(10.0)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10.0)
        loop.close()
