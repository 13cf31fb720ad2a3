"""`murmur list`: what a scenario may name, and which scenarios and papers there are."""

import json

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from murmuration.papers import PAPERS
from murmuration.registry import RELIABILITIES, ROUTINGS
from murmuration.scenario.load import built_in_scenarios, load_scenario
from routing.local_subscriptions import INDEXES
from workloads import OVERLAYS, WORKLOADS


def print_choices(as_json: bool) -> None:
    """A table and a line for each kind of name, or all as one JSON line."""
    scenarios = {name: load_scenario(path).scenario for name, path in built_in_scenarios().items()}
    names = {
        "overlays": list(OVERLAYS),
        "workloads": list(WORKLOADS),
        "matching": list(INDEXES),
        "routing": list(ROUTINGS),
        "reliability": list(RELIABILITIES),
        "papers": list(PAPERS),
    }
    shown = {name: (each.runtime, each.description.strip()) for name, each in scenarios.items()}
    if as_json:
        told = {name: {"runtime": runtime, "description": words} for name, (runtime, words) in shown.items()}
        print(json.dumps({"scenarios": told, **names}))
        return
    table = Table(box=None, header_style="bold")
    for heading in ("scenario", "runtime", "what it shows"):
        table.add_column(heading)
    for name, (runtime, words) in shown.items():
        table.add_row(name, runtime, escape(words))
    console = Console()
    console.print(table)
    for heading, kind in names.items():
        console.print(f"[bold]{heading}[/bold]: {', '.join(kind)}", highlight=False)
