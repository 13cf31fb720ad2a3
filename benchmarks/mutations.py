"""Small changes of a Python file, one at a time, such as a person might make by mistake.

A comparison moved or turned, a number one more or less, a statement left out, a branch turned, `and` for `or`, plus
for minus, a list that is returned empty. Nothing is changed that cannot matter: docstrings, annotations, assertions,
and the texts of errors.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.FloorDiv: "*", ast.BitAnd: "|", ast.BitOr: "&",
}  # fmt: skip
_DROPPED = (ast.Expr, ast.AugAssign, ast.Delete, ast.Continue, ast.Break)


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change: in `path`, from character `begin` to `end`, `text` stands in place of what was there.

    `lines`: first and last of the statement, or of its head if others stand below it; None if it runs only while its
    module is imported.
    """

    path: str
    line: int
    what: str
    begin: int
    end: int
    text: str
    lines: tuple[int, int] | None

    def applied(self, source: str) -> str:
        """The file with the change."""
        return source[: self.begin] + self.text + source[self.end :]


def mutations_of(root: Path, path: Path) -> list[Mutation]:
    """All changes of that file, by their places, and some that make no Python file of it (`compiles`)."""
    source = path.read_text()
    return list(_Changes(str(path.relative_to(root)), source).of(ast.parse(source)))


def compiles(source: str) -> bool:
    """Is it a Python file?"""
    try:
        compile(source, "mutated", "exec")
    except SyntaxError:
        return False
    return True


class _Changes:
    def __init__(self, path: str, source: str) -> None:
        self._path = path
        self._source = source
        self._lines = [0]
        for line in source.encode().splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))
        self._bytes = source.encode()
        self._functions = 0
        self._statement = (0, 0)

    def of(self, node: ast.AST) -> Iterator[Mutation]:
        """The changes in the node and below it."""
        around = self._statement
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            self._statement = (node.lineno, max(node.lineno, last))
        yield from self._here(node)
        for name, field in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list"):
                continue
            for each in field if isinstance(field, list) else [field]:
                if isinstance(each, ast.Assert | ast.Raise | ast.Import | ast.ImportFrom):
                    continue
                if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
                    continue  # a docstring, or what stands below a field
                if isinstance(each, ast.AST):
                    inside = isinstance(node, ast.FunctionDef) and name == "body"
                    self._functions += inside
                    yield from self.of(each)
                    self._functions -= inside
        self._statement = around

    def _here(self, node: ast.AST) -> Iterator[Mutation]:
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            other = _COMPARISONS.get(type(node.ops[0]))
            if other is not None:
                yield self._between(node.left, node.comparators[0], f" {other} ", "a comparison is another one")
        elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            other = _OPERATORS[type(node.op)]
            yield self._between(node.left, node.right, f" {other} ", f"{other} for another operator")
        elif isinstance(node, ast.BoolOp) and len(node.values) == 2:
            other = "or" if isinstance(node.op, ast.And) else "and"
            yield self._between(node.values[0], node.values[1], f" {other} ", f"{other} for its opposite")
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield self._whole(node, f"({self._text(node.operand)})", "a `not` is left out")
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            yield self._whole(node, f"({node.value} + 1)", "a number is one more")
            yield self._whole(node, f"({node.value} - 1)", "a number is one less")
        elif isinstance(node, ast.Return) and isinstance(node.value, ast.List | ast.Tuple | ast.ListComp | ast.Call):
            if getattr(node.value, "elts", True):
                yield self._whole(node.value, "[]", "nothing is returned")
        elif isinstance(node, _DROPPED) or (
            isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute | ast.Subscript)
        ):
            yield self._whole(node, "pass", "a statement is left out")
        if isinstance(node, ast.If | ast.While | ast.IfExp):
            yield self._whole(node.test, f"not ({self._text(node.test)})", "a condition is turned")

    def _text(self, node: ast.expr) -> str:
        return ast.get_source_segment(self._source, node) or ""

    def _at(self, line: int, column: int) -> int:
        """The place of a byte of a line, in characters."""
        return len(self._bytes[: self._lines[line - 1] + column].decode())

    def _between(self, left: ast.expr, right: ast.expr, text: str, what: str) -> Mutation:
        """What stands between the two operands; brackets around them are left where they are."""
        begin, end = self._at(left.end_lineno or 0, left.end_col_offset or 0), self._at(right.lineno, right.col_offset)
        gap = self._source[begin:end]
        closing, opening = len(gap) - len(gap.lstrip(") \n")), len(gap.rstrip("( \n"))
        kept = gap[:closing].rstrip(" \n"), gap[opening:].lstrip(" \n")
        return self._mutation(left.lineno, what, begin, end, f"{kept[0]}{text}{kept[1]}")

    def _whole(self, node: ast.stmt | ast.expr, text: str, what: str) -> Mutation:
        begin = self._at(node.lineno, node.col_offset)
        end = self._at(node.end_lineno or 0, node.end_col_offset or 0)
        return self._mutation(node.lineno, what, begin, end, text)

    def _mutation(self, line: int, what: str, begin: int, end: int, text: str) -> Mutation:
        return Mutation(self._path, line, what, begin, end, text, self._statement if self._functions else None)
