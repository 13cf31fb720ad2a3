"""One event's way through the overlay as a Lamport diagram: a line for each node, an arrow for each message.

Time runs downwards, a step for each visit, so that what happened within a microsecond can still be told apart; the
times are at the left. Nodes stand in the order in which the event spread, from parent to child, which keeps arrows
short.
"""

from collections.abc import Sequence
from pathlib import Path

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from murmur_pubsub.whole_files import whole
from spark_analysis.event_way import EventWay, Visit
from spark_analysis.look import BLUE, GREY, INK, RED, STYLE

VISITS_MAX = 150
_STEP, _COLUMN = 0.24, 0.62
_ARROW = {"arrowstyle": "-|>", "shrinkA": 3, "shrinkB": 3, "linewidth": 0.9, "mutation_scale": 8}


def draw_way(way: EventWay, path: Path) -> int:
    """Write the diagram (the format is the name's: svg, png, pdf); how many visits are in it, from the first on."""
    visits = list(way.visits)[:VISITS_MAX]
    places = {id(visit): place for place, visit in enumerate(visits)}
    columns = {name: column for column, name in enumerate(_order(visits))}
    height, width = 1.3 + _STEP * len(visits), 1.6 + _COLUMN * len(columns)
    with rc_context({**STYLE, "axes.grid": False}):
        figure = Figure(figsize=(max(width, 4.5), height), layout="constrained")
        axes = figure.add_subplot()
        for name, column in columns.items():
            axes.plot([column, column], [-0.6, len(visits) - 0.4], color="#c9ced4", linewidth=0.8, zorder=1)
            axes.annotate(name, (column, -0.8), ha="center", va="bottom", fontsize=8)
        for visit in visits:
            x, y = columns[visit.node], places[id(visit)]
            filled = BLUE if visit.delivered or visit.published else "white"
            axes.plot(
                x, y, marker="s" if visit.published else "o", color=filled, markeredgecolor=BLUE, markersize=5, zorder=3
            )
            if visit.delivered:
                axes.annotate(
                    _subscribers(visit), (x + 0.13, y), ha="left", va="center", fontsize=6.5, color=BLUE, zorder=4
                )
            for message in visit.sent:
                end = columns.get(message.receiver, x)
                if message.received is not None and id(message.received) in places:
                    colour = GREY if message.copy else INK
                    target = (end, places[id(message.received)])
                    axes.annotate("", target, (x, y), arrowprops={**_ARROW, "color": colour}, zorder=2)
                elif message.received is None:
                    middle = (x + 0.55 * (end - x), y + 0.55)
                    axes.annotate("", middle, (x, y), arrowprops={**_ARROW, "arrowstyle": "-", "color": RED}, zorder=2)
                    axes.plot(*middle, marker="x", color=RED, markersize=5, zorder=3)
        _mark_incidents(axes, way, visits)
        axes.set_yticks(
            range(len(visits)), [f"{(visit.time_us - way.published_us) / 1e3:,.3f}" for visit in visits], fontsize=6.5
        )
        axes.set(ylabel="ms after publication", xlim=(-0.6, len(columns) - 0.2), ylim=(len(visits) - 0.2, -1.8))
        axes.set_xticks([])
        axes.spines[["bottom", "left"]].set_visible(False)
        axes.set_title(f"event {way.source}:{way.sequence}", loc="left", fontsize=9.5)
        with whole(path) as draft:
            figure.savefig(draft, metadata={"Date": None} if path.suffix == ".svg" else None)
    return len(visits)


def _order(visits: Sequence[Visit]) -> list[str]:
    """Nodes in preorder of the tree of first arrivals; one that only a lost message was for is its sender's child."""
    parents: dict[str, str | None] = {}
    for visit in visits:
        parents.setdefault(visit.node, None if visit.cause is None else visit.cause.sender)
    for visit in visits:
        for message in visit.sent:
            parents.setdefault(message.receiver, visit.node)
    children: dict[str, list[str]] = {}
    roots = []
    seen: set[str | None] = set()
    for name, parent in parents.items():
        seen.add(name)
        if parent in seen:  # and not the other way round, as clocks of two hosts may have it
            children.setdefault(str(parent), []).append(name)
        else:
            roots.append(name)
    order, waiting = [], roots[::-1]
    while waiting:
        name = waiting.pop()
        order.append(name)
        waiting += children.get(name, [])[::-1]
    return order


def _subscribers(visit: Visit) -> str:
    shown = ", ".join(map(str, visit.delivered[:3]))
    return shown + (f" and {len(visit.delivered) - 3} more" if len(visit.delivered) > 3 else "")


def _mark_incidents(axes: Axes, way: EventWay, visits: Sequence[Visit]) -> None:
    texts: dict[int, list[str]] = {}
    for incident in way.incidents:
        texts.setdefault(sum(visit.time_us <= incident.time_us for visit in visits), []).append(incident.text)
    for before, listed in texts.items():
        shown = ", ".join(listed[:3]) + (f" and {len(listed) - 3} more" if len(listed) > 3 else "")
        axes.axhline(before - 0.5, color=RED, linestyle=":", linewidth=0.8, zorder=0)
        axes.annotate(
            shown,
            (1.0, before - 0.5),
            xycoords=("axes fraction", "data"),
            ha="right",
            va="bottom",
            fontsize=6.5,
            color=RED,
        )
