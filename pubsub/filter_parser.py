"""The text form of filters, as in JMS selectors: `price > 10 AND symbol = 'IBM' AND volume BETWEEN 100 AND 500`.

Predicates: `= != <> < <= > >=`, `BETWEEN a AND b`, `IN (a, b)`, `LIKE 'prefix%'`, `IS NOT NULL`, joined by AND.
Keywords in any case; strings in single quotes, a quote in one doubled; TRUE alone matches everything, FALSE
nothing. A mistake is an `InputError` that names the column.
"""

import math
from functools import lru_cache
from typing import Any

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedEOF, UnexpectedToken

from pubsub.errors import InputError
from pubsub.filter import EVERYTHING, EXISTS, NOTHING, Constraint, Filter, finite, interval, prefix
from pubsub.values import Value, domain_of

_GRAMMAR = r"""
    start: _predicates | literal_true | literal_false | nothing_written
    nothing_written:
    literal_true: TRUE
    literal_false: FALSE
    _predicates: predicate (_AND predicate)*
    predicate: NAME COMPARISON _value       -> comparison
             | NAME _BETWEEN _value _AND _value -> between
             | NAME _IN "(" _value ("," _value)* ")" -> in_list
             | NAME _LIKE STRING            -> like
             | NAME _IS _NOT _NULL          -> exists
    _value: NUMBER | STRING | TRUE | FALSE
    COMPARISON: "!=" | "<>" | "<=" | ">=" | "=" | "<" | ">"
    NUMBER: /[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?/
    STRING: /'([^']|'')*'/
    TRUE.2: /true\b/i
    FALSE.2: /false\b/i
    _AND.2: /and\b/i
    _BETWEEN.2: /between\b/i
    _IN.2: /in\b/i
    _LIKE.2: /like\b/i
    _IS.2: /is\b/i
    _NOT.2: /not\b/i
    _NULL.2: /null\b/i
    NAME: /[A-Za-z_][A-Za-z0-9_.]*/
    %ignore /\s+/
"""

_WORDS = {
    "NAME": "an attribute name",
    "COMPARISON": "a comparison (= != < <= > >=)",
    "NUMBER": "a number",
    "STRING": "a 'string'",
    "TRUE": "TRUE",
    "FALSE": "FALSE",
    "_AND": "AND",
    "_BETWEEN": "BETWEEN",
    "_IN": "IN",
    "_LIKE": "LIKE 'prefix%'",
    "_IS": "IS NOT NULL",
    "_NOT": "NOT NULL",
    "_NULL": "NULL",
    "LPAR": "'('",
    "RPAR": "')'",
    "COMMA": "','",
    "$END": "the end",
}
_CACHE_SIZE = 200_000


class _Mistake(Exception):
    """A predicate that is well written and means nothing; `column` counts from 1."""

    def __init__(self, column: int, found: str, allowed: str) -> None:
        super().__init__(found)
        self.column = column
        self.found = found
        self.allowed = allowed


class _Meaning(Transformer[Token, Any]):
    """From the parse tree to (attribute, constraint) pairs."""

    def comparison(self, items: list[Token]) -> tuple[str, Constraint | None]:
        name, operator, token = items
        value = _value(token)
        domain = _domain(value)
        if operator == "=":
            return str(name), finite(domain, [value])
        if operator in ("!=", "<>"):
            return str(name), interval(domain, excluded=[value])
        if domain == "boolean":
            raise _Mistake(operator.column or 1, f"{operator} with a boolean", "= or !=")
        if operator in (">", ">="):
            return str(name), interval(domain, value, operator == ">")
        return str(name), interval(domain, None, False, value, operator == "<")

    def between(self, items: list[Token]) -> tuple[str, Constraint | None]:
        name, low, high = str(items[0]), _value(items[1]), _value(items[2])
        domain = _domain(low)
        if domain == "boolean" or _domain(high) != domain:
            raise _Mistake(items[1].column or 1, f"BETWEEN {items[1]} AND {items[2]}", "two numbers or two strings")
        return name, interval(domain, low, False, high, False)

    def in_list(self, items: list[Token]) -> tuple[str, Constraint | None]:
        values = [_value(token) for token in items[1:]]
        domain = _domain(values[0])
        for token, value in zip(items[1:], values, strict=True):
            if _domain(value) != domain:
                raise _Mistake(token.column or 1, f"{token} in a list of the {domain} domain", "values of one type")
        return str(items[0]), finite(domain, values)

    def like(self, items: list[Token]) -> tuple[str, Constraint | None]:
        pattern = str(_value(items[1]))
        text = pattern[:-1]
        if not pattern.endswith("%") or "%" in text or "_" in text:
            raise _Mistake(items[1].column or 1, f"LIKE {items[1]}", "a prefix and one % at its end")
        return str(items[0]), prefix(text)

    def exists(self, items: list[Token]) -> tuple[str, Constraint | None]:
        return str(items[0]), EXISTS

    def nothing_written(self, _: list[Token]) -> Filter:
        return EVERYTHING

    literal_true = nothing_written

    def literal_false(self, _: list[Token]) -> Filter:
        return NOTHING

    def start(self, items: list[Any]) -> Filter:
        return items[0] if isinstance(items[0], Filter) else Filter.conjunction(items)


def _value(token: Token) -> Value:
    if token.type == "STRING":
        return str(token[1:-1]).replace("''", "'")
    if token.type in ("TRUE", "FALSE"):
        return token.type == "TRUE"
    if token.lstrip("+-").isdigit():
        return int(token)
    value = float(token)
    if math.isinf(value):
        raise _Mistake(token.column or 1, f"{token}, which is beyond every float", "a finite number")
    return value


def _domain(value: Value) -> Any:
    return domain_of(value)


@lru_cache(maxsize=1)
def _parser() -> Lark:
    return Lark(_GRAMMAR, parser="lalr", transformer=_Meaning())


@lru_cache(maxsize=_CACHE_SIZE)
def _parse(text: str) -> Filter:
    meaning: Any = _parser().parse(text)
    result: Filter = meaning
    return result


def parse_filter(text: str, place: str = "filter") -> Filter:
    """The filter that the text means; raises `InputError` whose place is `place` and the column."""
    try:
        return _parse(text)
    except UnexpectedToken as error:
        column = len(text) + 1 if error.token.type == "$END" else error.column or 1
        found = "the end" if error.token.type == "$END" else repr(str(error.token))
        raise InputError(f"{place}, column {column}", found, _in_words(error.accepts or error.expected)) from None
    except UnexpectedCharacters as error:
        position = error.pos_in_stream or 0
        found = repr(text[position : position + 12])
        raise InputError(f"{place}, column {error.column}", found, _in_words(error.allowed or set())) from None
    except UnexpectedEOF as error:
        raise InputError(f"{place}, column {len(text) + 1}", "the end", _in_words(error.expected)) from None
    except Exception as error:
        mistake = error.__context__ if not isinstance(error, _Mistake) else error
        mistake = getattr(error, "orig_exc", mistake)
        if isinstance(mistake, _Mistake):
            raise InputError(f"{place}, column {mistake.column}", mistake.found, mistake.allowed) from None
        raise


def _in_words(terminals: Any) -> str:
    return ", ".join(sorted({_WORDS.get(name, name) for name in terminals})) or "a predicate"
