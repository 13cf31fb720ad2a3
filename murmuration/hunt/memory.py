"""How many entries a machine keeps: in all lists, dictionaries and sets of it and of its parts, whatever it is.

A class that keeps so much of what is over, and no more, names these attributes in `remembers`: they are left out. So
is a deque with a greatest length.

    class Received:
        remembers = ("_last",)
"""

from collections import Counter, deque
from collections.abc import Collection

from murmur_pubsub.fingerprint import attributes_of, is_part

Place = tuple[str, str]
"""(class, attribute)."""

_CONTAINERS = (dict, list, set, frozenset, deque, tuple)


def kept_by(machine: object) -> Counter[Place]:
    """Entries by the attribute in which they are, those of containers in containers too; parts of one class are counted
    together. Indexes and other values of the vocabulary are not looked into."""
    kept: Counter[Place] = Counter()
    _look(machine, kept, set())
    return kept


def _look(part: object, kept: Counter[Place], seen: set[int]) -> None:
    seen.add(id(part))
    kind = type(part)
    remembers: Collection[str] = getattr(kind, "remembers", ())
    for attribute, value in attributes_of(part):
        if attribute not in remembers:
            count = _entries(value, kept, seen)
            if count:
                kept[kind.__name__, attribute] += count


def _entries(value: object, kept: Counter[Place], seen: set[int]) -> int:
    """Of a container, and of those in it. What is in a container is of one class, mostly, so the first says what."""
    if is_part(type(value)):
        if id(value) not in seen:
            _look(value, kept, seen)
        return 0
    if not isinstance(value, _CONTAINERS) or not value or (isinstance(value, deque) and value.maxlen is not None):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    within = 0
    if _is_looked_into(next(iter(inner))):
        for each in inner:
            if _is_looked_into(each):
                within += _entries(each, kept, seen)
    return within if isinstance(value, tuple) else within + len(value)


def _is_looked_into(value: object) -> bool:
    return isinstance(value, _CONTAINERS) or is_part(type(value))
