"""The parts of docs/reference.md that are made from the command line and from the journal's enumerations."""

import ast
import inspect
from collections.abc import Iterator
from enum import IntEnum

import typer

from murmur_pubsub import journal
from murmur_pubsub.journal import DropReason, FaultStage, Phase, Refusal, RowKind
from murmuration.commands.main import application

_ENUMERATIONS: tuple[type[IntEnum], ...] = (DropReason, Refusal, FaultStage, Phase)


def commands() -> str:
    """All commands with their arguments and options, as Markdown."""
    group = typer.main.get_command(application)
    lines = []
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        shown = [each for each in command.params if not each.hidden] if command.params else []
        lines += [f"**`murmur {name}`**", "", (command.help or "").split("\n\n")[0].replace("\n", " "), ""]
        if shown:
            lines += ["| argument or option | default | meaning |", "| --- | --- | --- |"]
            lines += [
                f"| {_named(each)} | {_default(each)} | {(each.help or '').replace('|', '&#124;')} |" for each in shown
            ]
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _named(parameter: typer.core.TyperOption | typer.core.TyperArgument) -> str:
    if isinstance(parameter, typer.core.TyperArgument):
        return f"`{(parameter.metavar or parameter.name or '').upper()}`"
    return ", ".join(f"`{option}`" for option in (*parameter.opts, *parameter.secondary_opts))


def _default(parameter: typer.core.TyperOption | typer.core.TyperArgument) -> str:
    if parameter.required:
        return "required"
    value = getattr(parameter.default, "value", parameter.default)
    if value is None or value == [] or callable(value):
        return ""
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else f"`{value}`"


def journal_rows() -> str:
    """The kinds of rows and what their fields stand for, as Markdown."""
    lines = ["| kind | number | fields in use, besides `time_us` and `node` |", "| --- | --- | --- |"]
    lines += [f"| `{name}` | {number} | {text} |" for name, number, text in _members(RowKind)]
    for kind in _ENUMERATIONS:
        lines += ["", f"**{kind.__name__}**: {(inspect.getdoc(kind) or '').replace(chr(10), ' ')}", ""]
        lines += ["| name | number | meaning |", "| --- | --- | --- |"]
        lines += [f"| `{name}` | {number} | {text} |" for name, number, text in _members(kind)]
    return "\n".join(lines) + "\n"


def _members(kind: type[IntEnum]) -> Iterator[tuple[str, int, str]]:
    """Name, number and the comment behind it, of each member as it stands in the source."""
    source = inspect.getsource(journal).splitlines()
    (found,) = (
        each
        for each in ast.parse("\n".join(source)).body
        if isinstance(each, ast.ClassDef) and each.name == kind.__name__
    )
    for statement in found.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
            yield name, kind[name].value, source[statement.lineno - 1].partition("  # ")[2].replace("|", "\\|")
