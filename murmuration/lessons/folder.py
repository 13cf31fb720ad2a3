"""Builds the folder of the lessons: `python -m murmuration.lessons.folder PYODIDE TARGET` (`make play`).

It has all that a browser needs and asks no network: Python as WebAssembly, this project's packages and the few that
they use as one archive, and the page. `PYODIDE` is what scripts/fetch_pyodide.sh has fetched.
"""

import argparse
import gzip
import io
import json
import zipfile
from collections.abc import Iterator
from importlib import metadata, resources
from pathlib import Path, PurePosixPath
from typing import Any

from murmur_page.page_files import picture, read_file
from murmur_pubsub.errors import DiskError, InputError
from murmur_pubsub.whole_files import new_folder, written_to
from murmuration.lessons.lessons import LESSONS
from murmuration.lessons.own_router import STARTER, TASK, TITLE, TRIALS
from murmuration.lessons.witnesses import pairs, witness
from murmuration.version import own_version

_OWN = (
    "murmur_page", "murmur_pubsub", "murmur_virtual", "murmuration", "reliability", "routing", "spark_analysis",
    "workloads",
)  # fmt: skip
_LIBRARIES = (
    "annotated-types", "lark", "msgpack", "networkx", "pydantic", "PyYAML", "typing-inspection", "typing_extensions",
)  # fmt: skip
_AS_IT_IS = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide-lock.json", "python_stdlib.zip")
_PACKED = "pyodide.asm.wasm"
"""Packed it is a third as large; the worker unpacks it as it comes."""
_SCRIPTS = ("lesson", "lessons", "own", "python", "same", "worker")
_OF_PAGES = ("canvas", "course", "hands", "metrics", "overlay", "page", "run", "story", "words")
_WRITTEN = (1980, 1, 1, 0, 0, 0)
"""The time that the archive gives its files, so that it depends on nothing else."""
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>murmur: lessons</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="live.css">
<link rel="stylesheet" href="lessons.css">
</head>
<body>
{lessons}
<script id="built" type="application/json">{built}</script>
<script src="lessons.js" type="module"></script>
</body>
</html>
"""


def build_folder(pyodide: Path, target: Path) -> None:
    """Make the folder anew; raises `InputError` for what is not there, or is not empty and none of these, and
    `DiskError` where there is no room, which leaves the folder as it was."""
    wheels = sorted(pyodide.glob("pydantic_core-*.whl"))
    if not wheels or not all((pyodide / name).exists() for name in (*_AS_IT_IS, _PACKED)):
        raise InputError(str(pyodide), "no Pyodide", "the folder that scripts/fetch_pyodide.sh has filled")
    if target.exists() and not (target / "murmur.zip").exists():
        raise InputError(str(target), "a folder with something else", "a new folder, or one that `make play` made")
    with written_to(target.parent):
        target.parent.mkdir(parents=True, exist_ok=True)
    with new_folder(target) as draft:
        for name, content in _files(pyodide, wheels[-1]):
            with written_to(target / name):
                (draft / name).parent.mkdir(exist_ok=True)
                (draft / name).write_bytes(content)


def _files(pyodide: Path, wheel: Path) -> Iterator[tuple[str, bytes]]:
    """All that the folder has, by name."""
    for name in _AS_IT_IS:
        yield f"pyodide/{name}", (pyodide / name).read_bytes()
    yield f"pyodide/{_PACKED}.packed", gzip.compress((pyodide / _PACKED).read_bytes(), mtime=0)
    yield "pyodide/pydantic_core.whl", wheel.read_bytes()
    yield "murmur.zip", _packages()
    texts = {"index.html": _PAGE.format(lessons=_lessons(), built=json.dumps(_built()))}
    texts |= {"live.css": read_file("live.css"), "lessons.css": _static("lessons.css")}
    texts |= {f"{name}.js": _static(f"{name}.js") for name in _SCRIPTS}
    texts |= {f"{name}.js": read_file(f"{name}.js") for name in _OF_PAGES}
    for name, text in texts.items():
        yield name, text.encode()


def _packages() -> bytes:
    """What Python in the browser imports, as one archive."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted((*_own_files(), *_library_files())):
            archive.writestr(zipfile.ZipInfo(name, _WRITTEN), content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def size_of(folder: Path) -> int:
    """The bytes of all its files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _lessons() -> str:
    return _static("lessons.html").replace("@PICTURE@", picture(alone=False))


def _built() -> dict[str, Any]:
    """What the page is told of where it was built."""
    lessons: list[dict[str, Any]] = [
        {"name": each.name, "title": each.title, "task": list(each.task), "question": each.question}
        for each in LESSONS.values()
    ]
    own = {"name": "own", "title": TITLE, "task": list(TASK), "code": STARTER, "trials": len(TRIALS)}
    return {
        "version": own_version(),
        "lessons": [*lessons, own],
        "witnesses": [witness(*pair)._asdict() for pair in pairs()],
    }


def _static(name: str) -> str:
    return (resources.files("murmuration.lessons") / "static" / name).read_text(encoding="utf-8")


def _own_files() -> Iterator[tuple[str, bytes]]:
    for package in _OWN:
        root = Path(str(resources.files(package)))
        for path in root.rglob("*"):
            if path.suffix in (".py", ".yaml", ".js", ".css", ".html"):
                yield str(PurePosixPath(package, path.relative_to(root).as_posix())), path.read_bytes()


def _library_files() -> Iterator[tuple[str, bytes]]:
    """Sources, and licences; no compiled parts, which are for another processor, and no tests."""
    for library in _LIBRARIES:
        for path in metadata.distribution(library).files or ():
            licence = any(part in path.name.upper() for part in ("LICEN", "COPYING"))
            if path.parts[0] != ".." and "tests" not in path.parts and (path.suffix == ".py" or licence):
                yield str(path), Path(str(path.locate())).read_bytes()


def main() -> None:
    """Build it, and say how it is opened."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pyodide", type=Path)
    parser.add_argument("target", type=Path)
    given = parser.parse_args()
    try:
        build_folder(given.pyodide, given.target)
    except InputError as error:
        parser.exit(2, f"{error}\n")
    except DiskError as error:
        parser.exit(1, f"{error}\n")
    print(
        f"{given.target} is made: {size_of(given.target) / 1e6:.1f} MB that ask no network. Any static server opens it:"
    )
    print(f"  python -m http.server --bind 127.0.0.1 --directory {given.target} 8000")
    print("and then http://127.0.0.1:8000 in a browser.")


if __name__ == "__main__":
    main()
