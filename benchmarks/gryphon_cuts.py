"""Does guaranteed delivery serve every subscriber that a path of links is left to, and is the log cut then?

`python -m benchmarks.gryphon_cuts [--links 3] [--sizes 2,3,4]` plays all cuts of at most so many links that leave a
subscribers' broker a path to the publishers' broker, in cells of these sizes. Each is played for good, and healed in
every order. It prints a table, and each run that went wrong with the line of Python that plays it again. Nothing is
left out for symmetry: brokers of a cell take turns, so they are not alike. Two cells of four in a row have 36 links;
there cuts of three are played for good and healed in one order of the six, drawn for each.
"""

import argparse
import itertools
import random
import time
from collections.abc import Callable, Iterable

from benchmarks.table import print_table
from murmur_pubsub.places import CellPlan
from tests.protocols.gryphon.cuts import LinkName, cuts, links_of, one_cell, play_cut, two_cells

OVERLAYS: dict[str, tuple[str, Callable[[int], CellPlan]]] = {
    "one subscribers' broker": ("one_cell({})", one_cell),
    "two subscribers' brokers": ('one_cell({}, ("s", "t"))', lambda size: one_cell(size, ("s", "t"))),
    "two cells in a row": ("two_cells({})", two_cells),
}
"""Each with the words that make it, for cells of a size."""
LINKS_HEALED = 30
"""In an overlay of more links, a cut of three is healed in one order."""


def orders(cut: tuple[LinkName, ...], links: int) -> Iterable[tuple[LinkName, ...]]:
    """In which orders the links of a cut are healed; in the first, none is."""
    if links > LINKS_HEALED and len(cut) > 2:
        return (), tuple(random.Random(repr(cut)).sample(cut, len(cut)))
    return (), *itertools.permutations(cut)


def play_all(words: str, plan: CellPlan, most: int) -> list[object]:
    """How many links, cuts and runs there are, what was wrong in how many, and the seconds that it took."""
    began = time.perf_counter()
    links = len(links_of(plan))
    sets = runs = starving = kept = broken = 0
    for cut in cuts(plan, most):
        sets += 1
        for order in orders(cut, links):
            runs += 1
            outcome = play_cut(plan, cut, order)
            starving += bool(outcome.starving)
            kept += bool(outcome.kept)
            broken += bool(outcome.broken)
            if not outcome.is_well:
                print(f"play_cut({words}, {cut}, {order})  # {outcome}", flush=True)
    return [links, sets, runs, starving, kept, broken, f"{time.perf_counter() - began:.0f}"]


def main() -> None:
    """Parse the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--links", type=int, default=3)
    parser.add_argument("--sizes", default="2,3,4")
    options = parser.parse_args()
    rows: list[list[object]] = []
    for size in map(int, options.sizes.split(",")):
        for name, (words, make) in OVERLAYS.items():
            rows.append([f"{name}, cells of {size}", *play_all(words.format(size), make(size), options.links)])
            print(*rows[-1], flush=True)
    headings = ["overlay", "links", "cuts", "runs", "starving", "log kept", "twice or disorder", "seconds"]
    print_table(f"Cuts of up to {options.links} links", headings, rows)


if __name__ == "__main__":
    main()
