"""What holds for all tests: Ray only where it is asked for, one hypothesis profile, where the real data is."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("ci", derandomize=True, print_blob=True, deadline=None)
settings.register_profile("dev", print_blob=True, deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


@pytest.fixture(autouse=True)
def _no_ray_unless_marked(request: pytest.FixtureRequest) -> Iterator[None]:
    """`ray.init` raises outside tests marked `ray`: a test that needs it by accident is a slow test unseen."""
    ray: Any = sys.modules.get("ray")
    if ray is None or request.node.get_closest_marker("ray"):
        yield
        return

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("only tests marked `ray` may start Ray")

    original, ray.init = ray.init, refuse
    try:
        yield
    finally:
        ray.init = original


@pytest.fixture(scope="session")
def data_directory() -> Path:
    """The folder of real data: MURMUR_DATA, or ../shared/data beside the checkout."""
    folder = Path(os.environ.get("MURMUR_DATA", Path(__file__).parents[1] / "../shared/data")).resolve()
    if not folder.is_dir():
        pytest.skip(f"the real data is not in {folder} (set MURMUR_DATA to where it is)")
    return folder
