"""The page's own files: one style sheet, one script put together from its modules, and the frame that they fill.

A browser that opens a file from disk loads no modules from beside it. The modules are therefore put one after the
other, without their imports and exports; a test sees to it that none defines a name of another.
"""

import re
from importlib import resources

_MODULES = ("words", "canvas", "run", "metrics", "story", "overlay", "course", "hands", "page")
"""In an order in which each comes after those that it imports."""
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./\w+\.js";\n', re.MULTILINE)
_FOR_READERS = re.compile(r"^ *(?://.*\n)?", re.MULTILINE)
"""Indentation, and lines that are comments: no text of the scripts goes over more than one line."""
_EXPORT = re.compile(r"^export ", re.MULTILINE)


def read_file(name: str) -> str:
    """One of the page's files, by its name."""
    return (resources.files("murmur_page") / "static" / name).read_text(encoding="utf-8")


def script(entry: str) -> str:
    """The script of a page that begins with that module: "frozen" or "watching"."""
    parts = [_EXPORT.sub("", _IMPORT.sub("", read_file(f"{name}.js"))) for name in (*_MODULES, entry)]
    return _FOR_READERS.sub("", "\n".join(('"use strict";', "{", *parts, "}")))


def picture(alone: bool) -> str:
    """The frame of the page; `alone`: nothing else is on it."""
    return read_file("picture.html").replace("@ALONE@", " data-alone" if alone else "")
