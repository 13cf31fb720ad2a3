"""How fast the page is drawn while it plays: `python -m benchmarks.drawing [BROKERS | PAGE.html ...]`.

A tree of so many brokers (by default 100, then 5,000), with half of its links busy in each of 60 frames, or the page
that `murmur page` has made of a run, is played by a frozen page in Chromium. Drawing is in software there, as on a
computer without a graphics card. Printed are how often the page was drawn in a second, and the median of what one
drawing of the overlay took.
"""

import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import networkx as nx

from murmur_page.frozen import write_page
from murmur_page.graph_layout import positions
from murmur_page.head import PAGE_VERSION
from tests.page.browser import browser
from tests.page.played import is_ready, until

_FRAMES = 60
_FRAME_US = 1_000_000
_SECONDS = 8.0


def data_of(brokers: int) -> dict[str, Any]:
    """The page's data of a run of so many brokers."""
    draw = random.Random(1)
    names = [f"b{number}" for number in range(brokers)]
    tree: nx.Graph[str] = nx.Graph()
    tree.add_nodes_from(names)
    tree.add_edges_from((names[a], names[b]) for a, b in nx.random_labeled_tree(brokers, seed=1).edges)
    placed, numbers = positions(tree), {name: number for number, name in enumerate(names)}
    links = [[numbers[a], numbers[b]] for a, b in tree.edges]
    up = {"n": [[number, "up"] for number in numbers.values()], "l": [[*sorted(link), "up"] for link in links]}
    frames: list[dict[str, Any]] = [{"b": -1, "t": 0, **up}]
    for number in range(_FRAMES):
        busy = draw.sample(links, len(links) // 2)
        moved = [[a, b, draw.randint(1, 90), 0, 0] for a, b in busy]
        active = {to: count for _, to, count, *_ in moved}
        frames.append(
            {"b": number * _FRAME_US, "t": (number + 1) * _FRAME_US, "m": moved, "p": brokers, "v": brokers}
            | {"a": [[to, count, 1, 0] for to, count in active.items()], "d": [[100, brokers]]}
        )
    head = {
        "version": PAGE_VERSION, "name": f"{brokers} brokers", "folder": "none", "runtime": "virtual", "seed": 1,
        "status": "complete", "inputs": False, "description": "", "protocols": ["forwarding", "best_effort"],
        "measures": [], "layout": "graph", "boxes": [], "links": links,
        "nodes": [[name, "b", *(round(each, 4) for each in placed[name])] for name in numbers],
    }  # fmt: skip
    return {"head": head, "frames": frames}


_TIMED = """
const page = document.querySelector('.live').page, took = [];
for (let number = 0; number < 40; number += 1) {
  if (number % 4 === 0) page.step(1); // about as often as while it plays
  const began = performance.now();
  page.overlay.draw(page.moment(), number);
  took.push(performance.now() - began);
}
return took.sort((a, b) => a - b)[20];
"""


def drawn(page_file: Path) -> tuple[float, float]:
    """How often the page was drawn in a second of its playing, and in how many milliseconds the overlay."""
    with browser(1280, 900) as driver:
        driver.get(page_file.resolve().as_uri())
        until(lambda: is_ready(driver))
        page = "const page = document.querySelector('.live').page;"
        driver.execute_script(f"{page} page.goTo(0); page.toggle();")
        before, began = driver.execute_script(f"{page} return page.drawn"), time.perf_counter()
        time.sleep(_SECONDS)
        often = (driver.execute_script(f"{page} return page.drawn") - before) / (time.perf_counter() - began)
        driver.execute_script(f"{page} page.toggle(); page.goTo(0);")
        return float(often), float(driver.execute_script(_TIMED))


def main() -> None:
    """Play each page, and print how fast it was drawn."""
    with tempfile.TemporaryDirectory() as folder:
        for given in sys.argv[1:] or ["100", "5000"]:
            path, what = Path(given), given
            if given.isdecimal():
                path, what = Path(folder) / f"{given}.html", f"{int(given):,} brokers"
                write_page(path, data_of(int(given)))
            often, took_ms = drawn(path)
            print(f"{what}: drawn {often:.0f} times a second; the overlay in {took_ms:.1f} ms", flush=True)


if __name__ == "__main__":
    main()
