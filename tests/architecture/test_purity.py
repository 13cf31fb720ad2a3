"""Protocols and workloads are pure: no Ray, clock, socket, identity or unseeded randomness inside them."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PURE = ("pubsub", "routing", "reliability", "workloads")
BANNED_MODULES = {
    "ray", "pyspark", "time", "datetime", "socket", "asyncio", "uuid", "secrets", "threading", "multiprocessing",
    "subprocess", "selectors", "signal",
}  # fmt: skip
BANNED_CALLS = {"hash", "id", "open", "print", "input"}
ALLOWED_FROM_OS = {"pubsub/journal.py": "the journal is the one module of the floor that writes files"}


def violations(source: str, name: str) -> list[str]:
    """What a module does that a pure one must not, with its line."""
    found = []
    tree = ast.parse(source)
    inside_hash = {
        node
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef) and function.name in ("__hash__", "__init__")
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        modules: list[str] = []
        if isinstance(node, ast.Import):
            modules = [alias.name.split(".")[0] for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules = [node.module.split(".")[0]]
        found += [f"{name}:{line} imports {module}" for module in modules if module in BANNED_MODULES]
        if "os" in modules and name not in ALLOWED_FROM_OS:
            found.append(f"{name}:{line} imports os")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in BANNED_CALLS:
            if not (node.func.id == "hash" and node in inside_hash):
                found.append(f"{name}:{line} calls {node.func.id}()")
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "random":
            if node.attr != "Random":
                found.append(f"{name}:{line} uses random.{node.attr}")
        if isinstance(node, ast.ImportFrom) and node.module == "random":
            found.append(f"{name}:{line} imports from random")
    return found


def test_the_pure_floors_are_pure() -> None:
    found = [
        each
        for package in PURE
        for path in sorted((ROOT / package).rglob("*.py"))
        for each in violations(path.read_text(), str(path.relative_to(ROOT)))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "source",
    [
        "import ray", "import time", "from datetime import datetime", "import socket", "import asyncio", "import uuid",
        "import os\nos.urandom(4)", "import random\nrandom.random()", "from random import choice", "x = hash('a')",
        "x = id(object())", "print('here')",
    ],
)  # fmt: skip
def test_each_ban_catches_a_planted_example(source: str) -> None:
    assert violations(source, "planted.py")


def test_seeded_randomness_is_allowed() -> None:
    assert not violations("import random\nrng = random.Random('1/b7/gossip')", "planted.py")
