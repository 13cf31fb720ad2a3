"""What holds for all tests: Ray only where it is asked for, one hypothesis profile, where the real data is.

Ray is not imported here, for its import takes longer than most tests. Its `init` is wrapped as the module is loaded,
whoever loads it and when, so that a test which imports it itself, or by way of the driver, meets the same refusal.
"""

import functools
import importlib.machinery
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import settings

from murmuration.papers.lab.real_data import data_folder

settings.register_profile("ci", derandomize=True, print_blob=True, deadline=None)
settings.register_profile("dev", print_blob=True, deadline=None)
settings.register_profile("long", max_examples=2_000, print_blob=True, deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


class RayGuard:
    """A finder of modules that wraps `ray.init`: it raises unless `open`, which it is during tests marked `ray`."""

    def __init__(self) -> None:
        self.open = False

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != "ray":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            load = loader.exec_module

            def load_and_wrap(module: Any) -> None:
                load(module)
                module.init = self.wrap(module.init)

            loader.exec_module = load_and_wrap
        return spec

    def wrap(self, init: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(init)
        def guarded(*positional: Any, **named: Any) -> Any:
            if not self.open:
                raise AssertionError("only tests marked `ray` may start Ray")
            return init(*positional, **named)

        return guarded


GUARD = RayGuard()
if "ray" in sys.modules:
    sys.modules["ray"].init = GUARD.wrap(sys.modules["ray"].init)  # type: ignore[attr-defined]
else:
    sys.meta_path.insert(0, GUARD)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """The whole of a test, its fixtures of any scope included: these run before any fixture of ours could act."""
    GUARD.open = item.get_closest_marker("ray") is not None
    try:
        return (yield)
    finally:
        GUARD.open = False


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A small local Spark session for all tests that ask for one; `analyze` finds it as the active one."""
    from spark_analysis.session import start_session

    session = start_session("local[2]", "1g", small=True)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def data_directory() -> Path:
    """The folder of real data: MURMUR_DATA, or ../shared/data beside the checkout."""
    folder = data_folder()
    if not folder.is_dir():
        pytest.skip(f"the real data is not in {folder} (set MURMUR_DATA to where it is)")
    return folder
