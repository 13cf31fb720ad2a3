"""Protocols and workloads are pure: no Ray, clock, socket, identity or unseeded randomness inside them.

Names are followed through the imports that bind them, so that `import numpy as np; np.random.rand()` is seen for
what it is. What cannot be seen in the text (an object handed in that reads a clock) is left to the tests that run a
scenario twice.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PURE = ("murmur_pubsub", "routing", "reliability", "workloads")
BANNED_MODULES = (
    "asyncio", "concurrent", "datetime", "importlib", "mmap", "multiprocessing", "numpy.random", "os", "pyspark", "ray",
    "secrets", "selectors", "signal", "socket", "subprocess", "threading", "time", "uuid",
)  # fmt: skip
BANNED_CALLS = ("__import__", "eval", "exec", "input", "open", "print")
BANNED_NAMES = ("hash", "id")
"""Differ between processes; banned as values too, for `sorted(nodes, key=id)` calls nothing by name."""
BANNED_WITHIN_ALLOWED = ("os.urandom", "os.getrandom", "os.getpid", "os.times")
"""Banned in a module that may import `os`, as well."""

EXCEPTIONS: dict[tuple[str, str], str] = {
    ("murmur_pubsub/journal_space.py", "os"): "the journal's space is the one module of the floor that makes files",
    ("murmur_pubsub/journal_space.py", "mmap"): "a row must outlive the kill of its process, which a mapped file gives",
    (
        "murmur_pubsub/deployment.py",
        "importlib",
    ): "machines are made from dotted paths, so that no protocol is known by name",
    (
        "murmur_pubsub/message_reader.py",
        "exec",
    ): "it writes out a function for each class of messages, from annotations alone",
    ("murmur_pubsub/fingerprint.py", "id"): "it tells apart objects that hold each other; no fact is made of it",
    ("murmur_pubsub/filter.py", "hash"): "kept for __hash__, which is called often; unpickling computes it anew",
}


def bindings(tree: ast.AST) -> dict[str, str]:
    """The local names that imports bind, each with the dotted name it stands for."""
    bound = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                bound[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return bound


def dotted(node: ast.AST, bound: dict[str, str]) -> str | None:
    """The full name of what an expression such as `np.random.rand` refers to, or None if it starts elsewhere."""
    if isinstance(node, ast.Name):
        return bound.get(node.id)
    if isinstance(node, ast.Attribute):
        start = dotted(node.value, bound)
        return start and f"{start}.{node.attr}"
    return None


def within(name: str, module: str) -> bool:
    return name == module or name.startswith(f"{module}.")


def imported(node: ast.AST) -> list[str]:
    """Every dotted name that an import statement brings in."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def impurities(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The line and the banned thing, for each one found."""
    bound = bindings(tree)
    in_hash_method = {
        inner
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef) and function.name == "__hash__"
        for inner in ast.walk(function)
    }
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        reached = dotted(node, bound) if isinstance(node, ast.Attribute) else None
        yield from ((line, module) for name in imported(node) for module in BANNED_MODULES if within(name, module))
        for name in [*imported(node), *([reached] if reached else [])]:
            if within(name, "random") and name != "random" and not within(name, "random.Random"):
                yield line, name
            if name in BANNED_WITHIN_ALLOWED:
                yield line, name
        if reached and within(reached, "numpy.random"):
            yield line, "numpy.random"
        if isinstance(node, ast.Call):
            if dotted(node.func, bound) == "random.Random" and not node.args and not node.keywords:
                yield line, "random.Random without a seed"
            if isinstance(node.func, ast.Name) and node.func.id in BANNED_CALLS:
                yield line, node.func.id
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in BANNED_NAMES:
            if not (node.id == "hash" and node in in_hash_method):
                yield line, node.id


def violations(source: str, name: str) -> list[str]:
    """What a module does that a pure one must not, with its line; exceptions with a reason left out."""
    found = impurities(ast.parse(source))
    return [f"{name}:{line} {what}" for line, what in found if (name, what) not in EXCEPTIONS]


def pure_files() -> list[tuple[str, str]]:
    """The name from the root, and the text, of every module of the pure floors."""
    paths = [path for package in PURE for path in sorted((ROOT / package).rglob("*.py"))]
    return [(path.relative_to(ROOT).as_posix(), path.read_text()) for path in paths]


def test_the_pure_floors_are_pure() -> None:
    files = pure_files()
    assert files, "no module was looked at"
    found = [each for name, source in files for each in violations(source, name)]
    assert not found, "\n".join(found)


def test_every_exception_is_still_needed() -> None:
    used = {(name, what) for name, source in pure_files() for _, what in impurities(ast.parse(source))}
    assert EXCEPTIONS.keys() <= used, f"no longer needed: {EXCEPTIONS.keys() - used}"


@pytest.mark.parametrize("module", BANNED_MODULES)
@pytest.mark.parametrize("form", ["import {}", "import {}.inner", "from {} import inner", "import {} as other"])
def test_each_banned_module_is_caught(module: str, form: str) -> None:
    assert violations(form.format(module), "planted.py")


@pytest.mark.parametrize("call", BANNED_CALLS)
def test_each_banned_call_is_caught(call: str) -> None:
    assert violations(f"x = {call}('here')", "planted.py")


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("planted.py", "import random\nrandom.random()"),
        ("planted.py", "import random as r\nr.shuffle(x)"),
        ("planted.py", "import random\npick = random.choice"),
        ("planted.py", "from random import choice"),
        ("planted.py", "from random import *"),
        ("planted.py", "import random\nrandom.SystemRandom()"),
        ("planted.py", "import random\nrandom.Random()"),
        ("planted.py", "from random import Random\nRandom()"),
        ("planted.py", "import numpy as np\nnp.random.rand()"),
        ("planted.py", "from numpy import random"),
        ("planted.py", "from numpy import random as r"),
        ("murmur_pubsub/journal.py", "import os\nos.urandom(4)"),
        ("murmur_pubsub/journal.py", "from os import urandom"),
        ("planted.py", "x = hash('a')"),
        ("planted.py", "sorted(x, key=hash)"),
        ("planted.py", "class A:\n    def __init__(self): self.k = hash('a')"),
        ("planted.py", "x = id(object())"),
        ("planted.py", "sorted(x, key=id)"),
        ("murmur_pubsub/filter.py", "x = id(object())"),
    ],
)
def test_each_ban_catches_a_planted_example(name: str, source: str) -> None:
    assert violations(source, name)


@pytest.mark.parametrize(
    "source",
    [
        "import random\nrng = random.Random('1/b7/gossip')\nrng.shuffle(x)",
        "from random import Random\nrng = Random(seed)",
        "import random\ndef draw(rng: random.Random) -> None: rng.choice(x)",
        "class A:\n    def __hash__(self) -> int: return hash(self.key)",
        "import numpy as np\nnp.searchsorted(x, y)",
        "def handle(input): return input",
    ],
)
def test_what_is_pure_is_allowed(source: str) -> None:
    assert not violations(source, "planted.py")
