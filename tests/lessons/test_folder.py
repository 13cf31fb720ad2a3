"""The folder of the lessons is made whole, or stays as it was."""

from pathlib import Path

import pytest

from murmur_pubsub.errors import DiskError, InputError
from murmuration.lessons import folder as building
from murmuration.lessons.folder import build_folder
from tests.unit.test_whole_files import room_for

_FETCHED = (
    "pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "pyodide-lock.json", "python_stdlib.zip",
    "pydantic_core-2.whl",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packages and pairs of protocols of a second."""
    monkeypatch.setattr(building, "_OWN", ("murmur_page",))
    monkeypatch.setattr(building, "_LIBRARIES", ("PyYAML",))
    monkeypatch.setattr(building, "pairs", list)


def _fetched(folder: Path) -> Path:
    folder.mkdir()
    for name in _FETCHED:
        (folder / name).write_text(name)
    return folder


def _content(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("room", "name"), [(5, "pyodide/pyodide.mjs"), (20_000, "murmur.zip")])
def test_where_there_is_no_room_the_file_is_named_and_what_was_there_stays(
    room: int, name: str, tmp_path: Path
) -> None:
    fetched, target = _fetched(tmp_path / "fetched"), tmp_path / "build" / "play"
    for made in (False, True):
        if made:
            build_folder(fetched, target)
        before = _content(tmp_path / "build") if made else {}
        with room_for(room), pytest.raises(DiskError, match=rf"^{target / name}: File too large$"):
            build_folder(fetched, target)
        assert _content(tmp_path / "build") == before


def test_half_of_what_is_fetched_is_no_pyodide_and_what_was_made_stays(tmp_path: Path) -> None:
    fetched, target = _fetched(tmp_path / "fetched"), tmp_path / "play"
    build_folder(fetched, target)
    before = _content(target)
    (fetched / "python_stdlib.zip").unlink()
    with pytest.raises(InputError, match="fetched: found no Pyodide"):
        build_folder(fetched, target)
    assert _content(target) == before
