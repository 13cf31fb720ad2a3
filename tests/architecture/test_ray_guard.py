"""The guard in tests/conftest.py holds, however and whenever a test comes by Ray.

It is tried in a pytest of its own over a stand-in for Ray, so that a guard that fails starts nothing.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"
STAND_IN = "def init(**options):\n    return 'started'\n"
MARKED = "import pytest\n@pytest.mark.ray\n"


def run_inner(folder: Path, test: str) -> subprocess.CompletedProcess[str]:
    """A pytest over one test file, with this project's conftest and the stand-in in place of Ray."""
    (folder / "ray.py").write_text(STAND_IN)
    shutil.copy(CONFTEST, folder / "conftest.py")
    (folder / "test_inner.py").write_text(test)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = ray\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_inner.py"]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "test",
    [
        "import ray\ndef test_it():\n    ray.init()\n",
        "from ray import init\ndef test_it():\n    init()\n",
        "def test_it():\n    import ray\n    ray.init(address='auto')\n",
        MARKED
        + "def test_marked():\n    import ray\n    ray.init()\ndef test_next():\n    import ray\n    ray.init()\n",
    ],
    ids=["imported at the top", "the function imported", "imported within the test", "after a marked test"],
)
def test_an_unmarked_test_cannot_start_ray(tmp_path: Path, test: str) -> None:
    result = run_inner(tmp_path, test)
    assert result.returncode == 1, result.stdout
    assert "only tests marked `ray` may start Ray" in result.stdout
    assert "1 failed" in result.stdout


def test_collecting_cannot_start_ray(tmp_path: Path) -> None:
    result = run_inner(tmp_path, "import ray\nray.init()\ndef test_it():\n    pass\n")
    assert result.returncode != 0
    assert "only tests marked `ray` may start Ray" in result.stdout


def test_a_marked_test_and_its_wide_fixtures_start_ray(tmp_path: Path) -> None:
    fixture = "import pytest\n@pytest.fixture(scope='session')\ndef live():\n    import ray\n    return ray.init()\n"
    result = run_inner(tmp_path, fixture + MARKED + "def test_it(live):\n    assert live == 'started'\n")
    assert result.returncode == 0, result.stdout


def test_the_guard_does_not_import_ray(tmp_path: Path) -> None:
    result = run_inner(tmp_path, "import sys\ndef test_it():\n    assert 'ray' not in sys.modules\n")
    assert result.returncode == 0, result.stdout


def test_the_shared_ray_is_not_begun_before_a_test_that_has_a_ray_of_its_own(tmp_path: Path) -> None:
    test = MARKED + "def test_it(request):\n    request.getfixturevalue('live_ray')\n"
    result = run_inner(tmp_path, test)
    assert result.returncode == 1, result.stdout
    assert "only a test that names `live_ray` comes last" in result.stdout
