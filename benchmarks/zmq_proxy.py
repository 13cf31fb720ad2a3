"""ZeroMQ's own proxy between publishers, at the port given, and subscribers, at the next one.

`python -m benchmarks.zmq_proxy PORT`, which `benchmarks.live_peers` runs.
"""

import importlib
import sys
from typing import Any


def main() -> None:
    """Serve until the process is ended."""
    zmq: Any = importlib.import_module("zmq")
    context = zmq.Context()
    publishers, subscribers = context.socket(zmq.XSUB), context.socket(zmq.XPUB)
    for place, each in enumerate((publishers, subscribers)):
        each.set_hwm(0)
        each.bind(f"tcp://127.0.0.1:{int(sys.argv[1]) + place}")
    zmq.proxy(publishers, subscribers)


if __name__ == "__main__":
    main()
