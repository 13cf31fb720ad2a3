"""The tables of docs/reference.md that are made from declarations: `python -m murmuration.reference FILE`.

They are those of commands, scenario keys, overlays, workloads, random faults, protocols, the tables of an analysis and
the journal.

What a field means stands below it in the source, as text; its type, unit and default are the field's own.
"""

import dataclasses
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_type_hints

from murmur_pubsub.faults import NewLinks
from murmur_pubsub.promise import Promise
from murmuration.command_reference import commands, journal_rows
from murmuration.field_reference import default_words, field_texts, value_words
from murmuration.registry import RELIABILITIES, ROUTINGS, ReliabilityDeclaration, RoutingDeclaration
from murmuration.scenario.options import keys_of
from murmuration.scenario_reference import scenario_keys
from murmuration.table_reference import analysis_tables
from workloads import OVERLAYS, WORKLOADS
from workloads.random_faults import RandomFaults


def protocols() -> str:
    """All routing and reliability protocols, as Markdown."""
    lines = ["### Routing", ""]
    for routing in ROUTINGS.values():
        lines += [f"**`{routing.name}`**", "", *_facts(_of_routing(routing)), *_parameters(routing.parameters)]
    lines += ["### Reliability", ""]
    for reliability in RELIABILITIES.values():
        facts = _facts(_of_reliability(reliability))
        lines += [f"**`{reliability.name}`**", "", *facts, *_parameters(reliability.parameters)]
    return "\n".join(lines).rstrip() + "\n"


def kinds(known: Mapping[str, tuple[type[Any], Any]]) -> str:
    """Overlays or workloads by their kind, as Markdown; those of one class are told together."""
    named: dict[type[Any], list[str]] = {}
    for kind, (options, _) in known.items():
        named.setdefault(options, []).append(f"`{kind}`")
    lines = []
    for options, names in named.items():
        lines += [f"**{', '.join(names)}**", "", _first_line(options), "", *_parameters(options)]
    return "\n".join(lines).rstrip() + "\n"


def random_faults() -> str:
    """What `random:` takes under `faults`, as Markdown."""
    return "\n".join(_parameters(RandomFaults)).rstrip() + "\n"


SECTIONS: Mapping[str, Callable[[], str]] = {
    "scenario keys": scenario_keys,
    "overlays": lambda: kinds(OVERLAYS),
    "workloads": lambda: kinds(WORKLOADS),
    "random faults": random_faults,
    "protocols": protocols,
    "commands": commands,
    "analysis tables": analysis_tables,
    "journal rows": journal_rows,
}


def brought_up_to_date(page: str) -> str:
    """The page with each section between its two marks made anew. Raises ValueError for a page without them."""
    for name, section in SECTIONS.items():
        before, rest = page.split(f"<!-- {name}: made by murmuration.reference -->\n")
        _, after = rest.split(f"<!-- {name}: end -->")
        begin, end = f"<!-- {name}: made by murmuration.reference -->\n", f"<!-- {name}: end -->"
        page = f"{before}{begin}{section()}{end}{after}"
    return page


def _first_line(kind: type[Any]) -> str:
    return (inspect.getdoc(kind) or "").split("\n\n")[0].replace("\n", " ")


def _of_routing(routing: RoutingDeclaration) -> Iterator[str]:
    yield f"Runs on {routing.runs_on.value}."
    if routing.new_links is not NewLinks.ANY:
        yield f"Between which brokers there may be a new link: {routing.new_links.value}."
    if routing.offers:
        yield f"Offers {' and '.join(sorted(each.value for each in routing.offers))}."
    if not routing.keeps_order:
        yield "Events of one publisher may overtake each other."
    yield from _orders(routing.orders)


def _of_reliability(reliability: ReliabilityDeclaration) -> Iterator[str]:
    yield f"Promises {_promise(reliability.guarantee)}."
    if reliability.needs:
        yield f"Needs a routing that carries {' and '.join(sorted(each.value for each in reliability.needs))}."
    yield from _orders(reliability.orders)


def _orders(orders: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The verbs as a scenario writes them, each with the keys that stand beside it."""
    if orders:
        told = (
            f"`{verb}`" + (f" ({', '.join(f'`{key}`' for key in keys)})" if keys else "")
            for verb, keys in orders.items()
        )
        yield f"Takes the orders {', '.join(told)}."


def _promise(promise: Promise) -> str:
    order = {"publisher": "in the publisher's order", "total": "in one order for all"}.get(
        promise.order, "in any order"
    )
    return f"{promise.delivery.replace('_', ' ')}, {order}; survives {promise.survives}"


def _facts(facts: Iterator[str]) -> list[str]:
    return [" ".join(facts), ""]


def _parameters(kind: type[Any]) -> list[str]:
    keys = keys_of(kind)
    if not keys:
        return ["No parameters.", ""]
    fields = {each.name: each for each in dataclasses.fields(kind)}
    hints = get_type_hints(kind, include_extras=True)
    texts = field_texts(kind)
    rows = [
        f"| `{key}` | {value_words(hints[name])} | {_default(fields[name], hints[name])} | {texts[name]} |"
        for key, name in keys.items()
    ]
    return ["| parameter | value | default | meaning |", "| --- | --- | --- | --- |", *rows, ""]


def _default(field: "dataclasses.Field[Any]", annotation: Any) -> str:
    if field.default is dataclasses.MISSING:
        return "required" if field.default_factory is dataclasses.MISSING else "none"
    return default_words(field.default, annotation)


def main(path: Path) -> None:
    """Bring the page up to date."""
    path.write_text(brought_up_to_date(path.read_text()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
