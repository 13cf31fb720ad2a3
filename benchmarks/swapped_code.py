"""A change of a Python file, made in a process that has imported the file already.

Whatever holds a function holds the function object, so it is enough to give that another code object: importing
everything anew takes seconds. What runs while a module is imported cannot be changed that way.
"""

import gc
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType, FunctionType

_OPTIMIZED = 0x0001
"""The flag of a function's code; a class body has none."""


class CannotSwapError(Exception):
    """The change has to be made before the module is imported."""


def functions_by_code() -> Mapping[CodeType, Sequence[FunctionType]]:
    """All functions that there are, by their code."""
    found: dict[CodeType, list[FunctionType]] = {}
    for each in gc.get_objects():
        if type(each) is FunctionType:
            found.setdefault(each.__code__, []).append(each)
    return found


def swap(
    functions: Mapping[CodeType, Sequence[FunctionType]], path: str, before: str, after: str
) -> Sequence[CodeType]:
    """Let all functions of the file at that path, as it was imported, do what the changed file says.

    Returns what those that differ did before.

    Raises:
        CannotSwapError: the change is not one of functions that are in use.
    """
    old, new = (dict(_functions_in(compile(text, path, "exec", dont_inherit=True))) for text in (before, after))
    if old.keys() != new.keys():
        raise CannotSwapError("there are other functions")
    changed = [place for place, code in old.items() if code != new[place]]
    for place in changed:
        live = [each for each in functions.get(old[place], ()) if each.__code__.co_filename == path]
        if not live:
            raise CannotSwapError(f"{place} is not in use")
        for function in live:
            try:
                function.__code__ = new[place]
            except ValueError as error:
                raise CannotSwapError(str(error)) from error
    if not changed:
        raise CannotSwapError("no function differs")
    return [old[place] for place in changed]


def _functions_in(code: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    """Functions and methods, not those within them, by name and the how many-eth of that name."""
    seen: dict[str, int] = {}

    def walk(outer: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
        for each in outer.co_consts:
            if not isinstance(each, CodeType):
                continue
            if not each.co_flags & _OPTIMIZED:
                yield from walk(each)
                continue
            number = seen[each.co_qualname] = seen.get(each.co_qualname, 0) + 1
            yield (each.co_qualname, number), each

    yield from walk(code)
