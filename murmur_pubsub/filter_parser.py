"""The text form of filters, as in JMS selectors: `price > 10 AND symbol = 'IBM' AND volume BETWEEN 100 AND 500`.

Predicates: `= != <> < <= > >=`, `BETWEEN a AND b`, `IN (a, b)`, `NOT IN (a, b)`, `LIKE 'prefix%'`, `LIKE '%suffix'`,
`IS NULL`, `IS NOT NULL`, joined by AND. Keywords in any case; strings in single quotes, a quote in one doubled; TRUE
alone matches everything, FALSE nothing. A subscription may be several such conjunctions, in parentheses or not, joined
by OR, which binds weaker than AND. A mistake is an `InputError` that names the column.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedToken

from murmur_pubsub.errors import InputError
from murmur_pubsub.filter import (
    ABSENT,
    EVERYTHING,
    EXISTS,
    INTEGER_DIGITS_MAX,
    NOTHING,
    RESERVED_WORDS,
    Constraint,
    Filter,
    ending,
    finite,
    interval,
    prefix,
)
from murmur_pubsub.values import Value, domain_of

_GRAMMAR = r"""
    start: nothing_written | _conjunct (_OR _conjunct)*
    nothing_written:
    _conjunct: _conjunction | "(" _conjunction ")"
    _conjunction: conjunction | literal_true | literal_false
    literal_true: TRUE
    literal_false: FALSE
    conjunction: predicate (_AND predicate)*
    predicate: NAME COMPARISON _value       -> comparison
             | NAME _BETWEEN _value _AND _value -> between
             | NAME _IN "(" _value ("," _value)* ")" -> in_list
             | NAME _NOT _IN "(" _value ("," _value)* ")" -> not_in_list
             | NAME _LIKE STRING            -> like
             | NAME _IS _NULL               -> absent
             | NAME _IS _NOT _NULL          -> exists
    _value: NUMBER | STRING | TRUE | FALSE
    COMPARISON: "!=" | "<>" | "<=" | ">=" | "=" | "<" | ">"
    NUMBER: /[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?/
    STRING: /'([^']|'')*'/
    TRUE.2: /true(?![A-Za-z0-9_.])/i
    FALSE.2: /false(?![A-Za-z0-9_.])/i
    _AND.2: /and(?![A-Za-z0-9_.])/i
    _OR.2: /or(?![A-Za-z0-9_.])/i
    _BETWEEN.2: /between(?![A-Za-z0-9_.])/i
    _IN.2: /in(?![A-Za-z0-9_.])/i
    _LIKE.2: /like(?![A-Za-z0-9_.])/i
    _IS.2: /is(?![A-Za-z0-9_.])/i
    _NOT.2: /not(?![A-Za-z0-9_.])/i
    _NULL.2: /null(?![A-Za-z0-9_.])/i
    NAME: /(?!(?i:@RESERVED@)(?![A-Za-z0-9_.]))[A-Za-z_][A-Za-z0-9_.]*/
    %ignore /\s+/
""".replace("@RESERVED@", "|".join(RESERVED_WORDS))

_WORDS = {
    "NAME": "an attribute name",
    "COMPARISON": "a comparison (= != < <= > >=)",
    "NUMBER": "a number",
    "STRING": "a 'string'",
    "TRUE": "TRUE",
    "FALSE": "FALSE",
    "_AND": "AND",
    "_OR": "OR",
    "_BETWEEN": "BETWEEN",
    "_IN": "IN",
    "_LIKE": "LIKE 'prefix%' or '%suffix'",
    "_IS": "IS NULL",
    "_NOT": "NOT",
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
            raise _Mistake(_column(operator), f"{operator} with a boolean", "= or !=")
        if operator in (">", ">="):
            return str(name), interval(domain, value, operator == ">")
        return str(name), interval(domain, None, False, value, operator == "<")

    def between(self, items: list[Token]) -> tuple[str, Constraint | None]:
        name, low, high = str(items[0]), _value(items[1]), _value(items[2])
        domain = _domain(low)
        if domain == "boolean" or _domain(high) != domain:
            raise _Mistake(_column(items[1]), f"BETWEEN {items[1]} AND {items[2]}", "two numbers or two strings")
        return name, interval(domain, low, False, high, False)

    def in_list(self, items: list[Token]) -> tuple[str, Constraint | None]:
        return str(items[0]), finite(*self._listed(items))

    def not_in_list(self, items: list[Token]) -> tuple[str, Constraint | None]:
        domain, values = self._listed(items)
        return str(items[0]), interval(domain, excluded=values)

    def _listed(self, items: list[Token]) -> tuple[Any, list[Value]]:
        """(domain, values) of a list, behind the name."""
        values = [_value(token) for token in items[1:]]
        domain = _domain(values[0])
        for token, value in zip(items[1:], values, strict=True):
            if _domain(value) != domain:
                raise _Mistake(_column(token), f"{token} in a list of the {domain} domain", "values of one type")
        return domain, values

    def like(self, items: list[Token]) -> tuple[str, Constraint | None]:
        pattern = str(_value(items[1]))
        if pattern.count("%") != 1 or "_" in pattern or "%" not in (pattern[0], pattern[-1]):
            raise _Mistake(_column(items[1]), f"LIKE {items[1]}", "one %, behind a prefix or before a suffix")
        return str(items[0]), prefix(pattern[:-1]) if pattern[-1] == "%" else ending(pattern[1:])

    def absent(self, items: list[Token]) -> tuple[str, Constraint | None]:
        return str(items[0]), ABSENT

    def exists(self, items: list[Token]) -> tuple[str, Constraint | None]:
        return str(items[0]), EXISTS

    def nothing_written(self, _: list[Token]) -> Filter:
        return EVERYTHING

    literal_true = nothing_written

    def literal_false(self, _: list[Token]) -> Filter:
        return NOTHING

    def conjunction(self, items: list[tuple[str, Constraint | None]]) -> Filter:
        return Filter.conjunction(items)

    def start(self, items: list[Filter]) -> tuple[Filter, ...]:
        return _widest(items)


def _widest(filters: Sequence[Filter]) -> tuple[Filter, ...]:
    """Of the filters those that no other one covers; the first of equal ones."""
    found: list[Filter] = []
    for wanted in filters:
        if not any(known.covers(wanted) for known in found):
            found = [known for known in found if not wanted.covers(known)]
            found.append(wanted)
    return tuple(found)


def _value(token: Token) -> Value:
    if token.type == "STRING":
        return str(token[1:-1]).replace("''", "'")
    if token.type in ("TRUE", "FALSE"):
        return token.type == "TRUE"
    digits = token.lstrip("+-")
    if digits.isdigit():
        if len(digits) > INTEGER_DIGITS_MAX:
            raise _Mistake(_column(token), f"{token[:12]}… of {len(digits)} digits", f"up to {INTEGER_DIGITS_MAX}")
        return int(token)
    value = float(token)
    if math.isinf(value):
        raise _Mistake(_column(token), f"{token}, which is beyond every float", "a finite number")
    return value


def _column(token: Token) -> int:
    return (token.start_pos or 0) + 1


def _domain(value: Value) -> Any:
    return domain_of(value)


@lru_cache(maxsize=1)
def _parser() -> Lark:
    return Lark(_GRAMMAR, parser="lalr", transformer=_Meaning())


@lru_cache(maxsize=_CACHE_SIZE)
def _parse(text: str) -> tuple[Filter, ...]:
    meaning: Any = _parser().parse(text)
    result: tuple[Filter, ...] = meaning
    return result


def parse_filter(text: str, place: str = "filter") -> Filter:
    """The filter that the text means; raises `InputError` as `parse_subscription`, and if it means several."""
    wanted, *others = parse_subscription(text, place)
    if others:
        raise InputError(place, f"{len(others) + 1} conjunctions joined by OR", "one")
    return wanted


def parse_subscription(text: str, place: str = "filter") -> tuple[Filter, ...]:
    """The filters that the text asks for, whose events it wants once each: one for each conjunction that no other one
    covers. Raises `InputError` whose place is `place` and the column."""
    try:
        text.encode()
        return _parse(text)
    except UnicodeEncodeError as error:
        column, found, allowed = error.start + 1, "half of a surrogate pair", "Unicode text"
    except UnexpectedToken as error:
        at_end = error.token.type == "$END"
        column = len(text) + 1 if at_end else _column(error.token)
        found = "the end" if at_end else f"{str(error.token)!r:.40}"
        allowed = _in_words(error.accepts or error.expected)
    except UnexpectedCharacters as error:
        column = (error.pos_in_stream or 0) + 1
        found, allowed = repr(text[column - 1 : column + 11]), _in_words(error.allowed or set())
    except _Mistake as mistake:
        column, found, allowed = mistake.column, mistake.found, mistake.allowed
    except ValueError as error:  # the predicates taken together
        column, found, allowed = 1, str(error), "strings with fewer NULs at the end"
    raise InputError(f"{place}, column {column}", found, allowed)


def subscription_text(filters: Sequence[Filter]) -> str:
    """A text that means these filters, the same in whatever order they are."""
    return " OR ".join(sorted(map(str, filters)))


def _in_words(terminals: Any) -> str:
    return ", ".join(sorted({_WORDS.get(name, name) for name in terminals})) or "a predicate"
