"""What the commands say of a run that has ended: its verdict, its rates, and what is to be known about both."""

import csv
import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from murmur_pubsub.run_manifest import Lateness
from spark_analysis.wording import duration, late_words

_COUNTS = ("missing", "duplicate", "spurious", "out_of_order")
_DAMAGES_PRINTED = 20


def print_analysis(verdict: Mapping[str, Any], folder: Path) -> None:
    """The verdict and the rates, or the damage if the journal is damaged, and where the report is."""
    if verdict.get("finding") == "damage":
        _print_damage(verdict, folder / "analysis" / "damage.csv")
    else:
        print_verdict(verdict)
        _print_rates(folder / "analysis")
    print(f"report: {folder / 'report.html'}")


def warn_of_lateness(lateness: Lateness) -> None:
    """Say so if actors were so often late that delays mean little."""
    if lateness.sound_percentile is not None:
        Console(stderr=True).print(
            f"[yellow]{late_words(lateness)} (raise time_dilation, or publish more slowly)[/yellow]",
            highlight=False,
            soft_wrap=True,
        )


def tell_missing(hosts: Mapping[str, str]) -> None:
    """Name the hosts whose journals could not be gathered, and why."""
    for name, why in hosts.items():
        Console(stderr=True).print(
            f"[yellow]the journals of {name} are not here ({escape(why)});"
            " `murmur gather` fetches them when it is back[/yellow]",
            highlight=False,
            soft_wrap=True,
        )


def print_verdict(verdict: Mapping[str, Any]) -> None:
    """The verdict, its counts, the faults, and the reason."""
    rare = [name for name in ("misplaced", "altered") if verdict[name]]
    counts = ", ".join(f"{verdict[name]:,} {name.replace('_', ' ')}" for name in (*_COUNTS, *rare))
    colour = {"valid": "green", "invalid": "red"}.get(verdict["verdict"], "yellow")
    console = Console()
    console.print(f"[bold {colour}]{verdict['verdict']}[/bold {colour}]: {counts}", highlight=False, soft_wrap=True)
    console.print(
        f"{verdict['published']:,} published, {verdict['required']:,} deliveries required,"
        f" {verdict['delivered']:,} made",
        highlight=False,
        soft_wrap=True,
    )
    faults = [
        f"{verdict[f'faults_{name}']:,} {name.replace('_', ' ')}"
        for name in ("took_effect", "not_exercised", "failed")
        if verdict[f"faults_{name}"]
    ]
    if faults:
        told = f"faults: {', '.join(faults)}; {verdict['explained']:,} findings explained by them"
        if verdict["recovery_us"] is not None:
            told += f"; recovered from each within {duration(verdict['recovery_us'])}"
        if verdict["catch_up_us"] is not None:
            told += f"; clients that came back caught up within {duration(verdict['catch_up_us'])}"
        console.print(told, highlight=False, soft_wrap=True)
    if verdict.get("reason"):
        console.print(verdict["reason"], highlight=False, soft_wrap=True)


def _print_damage(verdict: Mapping[str, Any], table: Path) -> None:
    """The damaged files: nothing else is known of such a run."""
    console = Console()
    console.print(
        f"[bold yellow]{verdict['verdict']}[/bold yellow]: the journal is damaged", highlight=False, soft_wrap=True
    )
    with table.open(newline="") as opened:
        for row in itertools.islice(csv.DictReader(opened), _DAMAGES_PRINTED):
            print(f"  {row['file']} {row['what']}")
    if verdict["damage"] > _DAMAGES_PRINTED:
        print(f"  and {verdict['damage'] - _DAMAGES_PRINTED:,} more: {table}")


def _print_rates(analysis: Path) -> None:
    """Rates over the publishing phase and times of hops and deliveries, from the tables of the analysis."""
    rates, hop, delivery = (_first_row(analysis / f"{name}.csv") for name in ("rates", "hop_latency", "delivery_delay"))
    parts = []
    if rates:
        parts.append(f"{float(rates['publications_per_second']):,.0f} publications/s")
        parts.append(f"{float(rates['deliveries_per_second']):,.0f} deliveries/s")
    for words, row in (("hop latency", hop), ("delivery delay", delivery)):
        if row.get("p50_us"):
            parts.append(f"{words} p50 {float(row['p50_us']) / 1e3:.1f} ms, p99 {float(row['p99_us']) / 1e3:.1f} ms")
    print("; ".join(parts))


def _first_row(path: Path) -> dict[str, str]:
    with path.open(newline="") as table:
        return next(iter(csv.DictReader(table)), {})
