"""The tables of docs/reference.md that are made from declarations: `python -m murmuration.reference FILE`.

They are those of commands, overlays, workloads, random faults, protocols and the journal.

What a field means stands below it in the source, as text; its type, unit and default are the field's own.
"""

import ast
import dataclasses
import inspect
import sys
import textwrap
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from murmur_pubsub.faults import NewLinks
from murmur_pubsub.promise import Promise
from murmuration.command_reference import commands, journal_rows
from murmuration.registry import RELIABILITIES, ROUTINGS, ReliabilityDeclaration, RoutingDeclaration
from murmuration.scenario.durations import duration_text
from murmuration.scenario.options import keys_of, unit_of
from workloads import OVERLAYS, WORKLOADS
from workloads.random_faults import RandomFaults

_PLURALS = {int: "whole numbers", float: "numbers", str: "texts"}
_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


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
    "overlays": lambda: kinds(OVERLAYS),
    "workloads": lambda: kinds(WORKLOADS),
    "random faults": random_faults,
    "protocols": protocols,
    "commands": commands,
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


def field_texts(kind: type[Any]) -> Mapping[str, str]:
    """What stands below each field of a dataclass, those of its bases included."""
    texts: dict[str, str] = {}
    for base in reversed(kind.__mro__[:-1]):
        (declared,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        assert isinstance(declared, ast.ClassDef)
        for field, below in zip(declared.body, declared.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
                    texts[field.target.id] = " ".join(str(below.value.value).split())
    return texts


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
    order = "in the publisher's order" if promise.order == "publisher" else "in any order"
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
        f"| `{key}` | {_value(hints[name])} | {_default(fields[name], hints[name])} | {texts[name]} |"
        for key, name in keys.items()
    ]
    return ["| parameter | value | default | meaning |", "| --- | --- | --- | --- |", *rows, ""]


def _value(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if unit_of(annotation) is not None:
        return "two times" if origin is tuple else "a time"
    if origin is Literal:
        return ", ".join(f"`{each}`" for each in arguments)
    if origin in (Union, types.UnionType):
        return " or ".join(_value(each) for each in arguments if each is not type(None))
    if origin in (tuple, list):
        return f"a list of {_PLURALS.get(arguments[0], 'pairs')}"
    return _WORDS.get(annotation, "a mapping")


def _default(field: "dataclasses.Field[Any]", annotation: Any) -> str:
    if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
        return "required"
    if field.default_factory is not dataclasses.MISSING or field.default is None or field.default == ():
        return "none"
    unit = unit_of(annotation)
    if unit is not None:
        times = field.default if isinstance(field.default, tuple) else (field.default,)
        return " to ".join(duration_text(each * unit.value) for each in times)
    if isinstance(field.default, tuple):
        return ", ".join(f"`{each}`" for each in field.default)
    return str(field.default).lower() if isinstance(field.default, bool) else f"{field.default}"


def main(path: Path) -> None:
    """Bring the page up to date."""
    path.write_text(brought_up_to_date(path.read_text()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
