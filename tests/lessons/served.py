"""The folder of the lessons, built as `make play` does, and a static server for it."""

import functools
import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from murmuration.lessons.folder import build_folder

_FETCH = Path(__file__).parents[2] / "scripts" / "fetch_pyodide.sh"


def built(folder: Path) -> Path:
    """The folder; skips the test, with the reason, where what it is built of cannot be fetched."""
    fetched = folder / "pyodide"
    done = subprocess.run(
        ["sh", str(_FETCH), str(fetched), sys.executable], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(done.stderr.strip())
    build_folder(fetched, folder / "play")
    return folder / "play"


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of the folder on a static server that knows nothing of it."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
