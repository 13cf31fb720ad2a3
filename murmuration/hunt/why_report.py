"""What `murmur hunt --why` writes: the share of failing forks over time, and what happened where it jumps."""

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from murmur_pubsub.whole_files import whole, write_text
from murmuration.hunt.difference import RowWords, began_us_of, play_rows
from murmuration.hunt.trial import deployment_of
from murmuration.hunt.why import Why
from spark_analysis.look import STYLE

_SHOWN = 40
_SHARE_WIDTH = 40


def write_why(why: Why, keys: Mapping[str, Any], folder: Path) -> str:
    """Write `why.txt` and `why.svg` into the folder; the text."""
    text = "\n".join(_lines(why, keys)) + "\n"
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "why.txt", text)
    _draw(why, folder / "why.svg")
    return text


def _lines(why: Why, keys: Mapping[str, Any]) -> Iterator[str]:
    yield f"{why.symptom.words.partition(chr(10))[0]}"
    yield ""
    yield "time since publishing began, share of the forks that fail"
    for point in why.points:
        bar = "#" * round(point.share * _SHARE_WIDTH)
        yield f"{point.at_us / 1e6:>12.3f} s  {point.share:>5.0%}  {bar}"
    yield ""
    shares = {point.at_us: point.share for point in why.points}
    before, after = shares[why.before_us], shares[why.certain_us]
    if after <= before:
        yield "The share rises nowhere: every fork fails, or chance has no part in it."
        return
    yield (
        f"It rises from {before:.0%} to {after:.0%} between {why.before_us / 1e6:.3f} s and "
        f"{why.certain_us / 1e6:.3f} s. What happened then:"
    )
    yield from steps_between(keys, why.before_us, why.certain_us)


def steps_between(keys: Mapping[str, Any], begin_us: int, end_us: int) -> Iterator[str]:
    """The rows of the journal in that stretch, in words; times count from the beginning of publishing."""
    deployment = deployment_of(keys)
    with tempfile.TemporaryDirectory() as folder:
        rows = play_rows(deployment, Path(folder))
    began_us = began_us_of(rows)
    words = RowWords(deployment, began_us)
    inside = rows[(rows["time_us"] > began_us + begin_us) & (rows["time_us"] <= began_us + end_us)]
    for number, row in enumerate(inside.tolist()):
        if number == _SHOWN:
            yield f"  and {len(inside) - _SHOWN:,} more"
            break
        yield f"  {words.of(row)}"


def _draw(why: Why, path: Path) -> None:
    with rc_context({**STYLE, "svg.hashsalt": "murmur"}):
        figure = Figure(figsize=(7.0, 3.5), layout="constrained")
        axes = figure.subplots()
        axes.plot([each.at_us / 1e6 for each in why.points], [each.share for each in why.points], marker="o")
        axes.axvspan(why.before_us / 1e6, why.certain_us / 1e6, alpha=0.2)
        axes.set_xlabel("forked so long after publishing began (s)")
        axes.set_ylabel("share of the forks that fail")
        axes.set_ylim(-0.03, 1.03)
        with whole(path) as draft:
            figure.savefig(draft, format="svg", metadata={"Date": None})
