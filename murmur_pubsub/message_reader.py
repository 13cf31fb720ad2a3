"""From an unpacked array to a message, after the annotations of its fields: type, range, and what is inside.

A function is written out for each class of messages, as `collections.namedtuple` writes its constructors: this is done
for every message of a run, and going through a list of checks instead made decoding 1.3 to 1.8 times as slow.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from types import CodeType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from murmur_pubsub.errors import WireError
from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.message import INT64, Like

FieldCheck = Callable[[Any], bool]

_PLAIN = (str, bytes, bool)


def write_reader(message_type: type, make: Mapping[Any, Callable[[Any], Any]]) -> Callable[[list[Any]], Any]:
    """A function that makes a message of its array (kind first) or raises `WireError`. `make`: how an event and a
    filter are made of what stands for them. Raises TypeError for an annotation that no field may have."""
    hints = get_type_hints(message_type, include_extras=True)
    names = [f"field{number}" for number in range(len(hints))]
    known: dict[str, Any] = {
        "new": tuple.__new__,
        "message_type": message_type,
        "WireError": WireError,
        "make_event": make[Event],
        "make_filter": make[Filter],
    }
    wrong, made = ["type(body) is not list", "type(kind) is not int"], []
    for name, hint in zip(names, hints.values(), strict=True):
        wrong.append(_wrong(name, hint, known))
        made.append(_made(name, hint))
    # Only annotations get into the source, nothing from the wire. Unpacking `body` into its names counts the fields, so
    # `new` may leave out the constructor that would count them again. A text or mapping of that length unpacks too, and
    # is told by its type afterwards. `type(...) is not int`, since a bool is an instance of int.
    source = f"""
def read(body):
    try:
        {", ".join(["kind", *names])}, = body
    except ValueError:
        raise WireError(f"a {message_type.__name__} has not the {{len(body)}} fields of {{body!r:.80}}") from None
    if {" or ".join(wrong)}:
        raise WireError(f"a {message_type.__name__} has other fields than {{body!r:.80}}")
    return new(message_type, ({"".join(each + ", " for each in made)}))
"""
    return _compiled(source, "read", known)


def _wrong(name: str, hint: Any, known: dict[str, Any]) -> str:
    """The condition, as source, under which a field cannot be read."""
    origin, arguments = get_origin(hint) or hint, get_args(hint)
    if origin is Annotated:
        (note,) = arguments[1:]
        if isinstance(note, Like):
            parts = [_wrong(f"{name}[{at}]", each, known) for at, each in enumerate(note.elements)]
            return " or ".join([f"type({name}) is not list", f"len({name}) != {len(parts)}", *parts])
    if hint is int or origin is Annotated:
        low, high = INT64 if hint is int else note
        return f"type({name}) is not int or not {low} <= {name} <= {high}"
    if origin in _PLAIN:
        return f"type({name}) is not {origin.__name__}"
    if origin is float:
        return f"type({name}) is not float and type({name}) is not int"
    if origin is Filter:
        return f"type({name}) is not list and {name} is not None"  # None is the filter that matches nothing
    if origin is Event:
        return f"type({name}) is not list"
    if origin not in (list, Sequence, dict):
        raise TypeError(f"a message field cannot be annotated {hint!r}")
    outside = f"type({name}) is not {'dict' if origin is dict else 'list'}"
    inside = _of_dict(*arguments) if origin is dict else _of_list(arguments[0])
    if inside is None:
        return outside
    right = f"right{len(known)}"
    known[right] = inside
    return f"{outside} or {name} and not {right}({name})"


def _made(name: str, hint: Any) -> str:
    """The value of the field, as source."""
    if hint is Event:
        return f"make_event({name})"
    if hint is Filter:
        return f"make_filter({name})"
    if hint == Sequence[Filter]:
        return f"[make_filter(each) for each in {name}]"
    return name


def _of_list(element: Any) -> FieldCheck | None:
    """Whether the elements of a list are right; None if they are not looked at here."""
    if element in (Any, Filter):
        return None
    known: dict[str, Any] = {}
    source = f"""
def right(values):
    for each in values:
        if {_wrong("each", element, known)}:
            return False
    return True
"""
    return _compiled(source, "right", known)


def _of_dict(key: Any, value: Any) -> FieldCheck | None:
    keys, values = _of_list(key), _of_list(value)
    return lambda held: (keys is None or keys(held)) and (values is None or values(held.values()))


def _compiled(source: str, name: str, known: dict[str, Any]) -> Callable[[Any], Any]:
    exec(_code(source), known)
    function: Callable[[Any], Any] = known[name]
    return function


@functools.lru_cache(maxsize=1_024)
def _code(source: str) -> CodeType:
    # A process that plays many runs makes a codec for each, of the same classes.
    return compile(source, "<a reader of messages>", "exec")
