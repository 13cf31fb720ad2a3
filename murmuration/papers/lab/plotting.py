"""The frame of every chart of a reproduction: panels of one look, and a file of one resolution."""

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

from murmur_pubsub.whole_files import whole

DPI = 150


def panels(count: int = 1, *, width: float = 5.6, share_y: bool = False) -> tuple[Any, list[Any]]:
    """A figure and so many panels, up to four in a row; width of each in inches."""
    columns = count if count <= 4 else 3
    rows = -(-count // columns)
    size = (width * columns, 0.72 * width * rows)
    figure, axes = pyplot.subplots(rows, columns, figsize=size, squeeze=False, sharey=share_y, layout="constrained")
    found = list(axes.flat)
    for each in found:
        each.spines[["top", "right"]].set_visible(False)
        each.grid(alpha=0.3)
    for each in found[count:]:
        each.set_axis_off()
    return figure, found[:count]


def save(figure: Any, folder: Path, name: str) -> Path:
    """Write the figure, and let go of it."""
    path = folder / f"{name}.png"
    with whole(path) as draft:
        figure.savefig(draft, dpi=DPI)
    pyplot.close(figure)
    return path
