"""The one look of all figures: their colours, and the style of those that matplotlib draws."""

from typing import Any

BLUE, ORANGE, GREY, INK, RED = "#2563a6", "#c2601b", "#8a9199", "#1c2733", "#b3261e"
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8.5,
    "axes.labelsize": 8.5,
    "axes.edgecolor": "#9aa3ad",
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e3e7eb",
    "grid.linewidth": 0.7,
    "text.color": INK,
    "xtick.color": "#55606b",
    "ytick.color": "#55606b",
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "svg.hashsalt": "murmur",
}
