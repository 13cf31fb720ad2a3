"""What a page prints: files, commands and their output, in order, and the shell in which a reader has them.

A fenced block whose first line is `# NAME.py` or `# NAME.yaml` is a file. Lines that begin with `$ ` are commands, and
what stands below one is its output: `…` stands for any text, and alone on its line for any lines.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# (\w+\.(?:py|yaml))\n")
_PROGRESS = re.compile(
    r"(starting actors|subscribing|publishing|draining|stopping|checking the journal|starting Spark|reading the journal"
    r"|judging deliveries|measuring|drawing the report)( [\d,]+ of [\d,]+)?(, \d+ s left)?"
)
_STUMBLES = re.compile(r"^murmur: |Traceback|Warning|not to be trusted|command not found")
_RATES = re.compile(r"[\d.,]+(?= (?:ms|s|us|publications|deliveries)\b|/s)|(?<=to )[\d,.]+")
_SLOW_HOST = ("are not to be trusted (raise time_dilation",)
_MARK = "\x1e"


@dataclass(frozen=True)
class PrintedFile:
    """A file that the reader saves."""

    name: str
    text: str


@dataclass(frozen=True)
class PrintedCommand:
    """A command that the reader types, and the lines printed below it."""

    command: str
    output: Sequence[str]


@dataclass(frozen=True)
class Outcome:
    """What came of a command. `seconds`: wall time."""

    command: PrintedCommand
    exit_code: int
    output: str
    seconds: float


def steps_of(page: str) -> Iterator[PrintedFile | PrintedCommand]:
    """Files and commands of a page (Markdown) in its order."""
    for language, text in _BLOCK.findall(page):
        file = _FILE.match(text)
        if file is not None:
            yield PrintedFile(file[1], text)
        elif language in ("", "console") and text.startswith("$ "):
            for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                command, *output = part.rstrip("\n").split("\n")
                while command.endswith("\\"):
                    command = f"{command}\n{output.pop(0)}"
                yield PrintedCommand(command, output)


def play(steps: Sequence[PrintedFile | PrintedCommand], folder: Path) -> list[Outcome]:
    """Save the files and type the commands into one shell, in a folder as a reader has it."""
    commands = [step for step in steps if isinstance(step, PrintedCommand)]
    script = [f"cd {folder}"]
    for number, step in enumerate(steps):
        if isinstance(step, PrintedFile):
            saved = folder.parent / f"step-{number}"
            saved.write_text(step.text)
            script.append(f"cp {saved} {step.name}")
        else:
            script += [f"began=$EPOCHREALTIME; {{ {step.command}\n}} </dev/null"]
            script += [f"printf '\\n{_MARK}%s %s %s\\n' $? $began $EPOCHREALTIME"]
    scripts = folder.parent / "page.sh"
    scripts.write_text("\n".join(script))
    bin_folder = Path(sys.executable).parent
    (folder / ".venv").symlink_to(bin_folder.parent)
    environment = {
        "PATH": f"{bin_folder}:/usr/local/bin:/usr/bin:/bin", "HOME": os.environ.get("HOME", "/root"), "CI": "true",
        "LANG": "C.UTF-8", "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": "-p no:cacheprovider",
    }  # fmt: skip
    done = subprocess.run(
        ["bash", scripts], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, check=False
    )
    parts = re.split(rf"\n{_MARK}(\d+) ([\d.]+) ([\d.]+)\n", done.stdout)
    said, codes, begins, ends = parts[:-1:4], parts[1::4], parts[2::4], parts[3::4]
    return [
        Outcome(command, int(code), text, float(end) - float(begin))
        for command, text, code, begin, end in zip(commands, said, codes, begins, ends, strict=True)
    ]


def difference(outcome: Outcome, masked: bool) -> str | None:
    """What the command does that the page does not say, or the other way round (None: nothing).

    The printed lines have to come in their order. Others may come between them, but no warnings and no errors.
    `masked`: rates, times and how far actors fell behind are not compared, since they are those of the computer.
    """
    actual = [line.rstrip() for line in outcome.output.splitlines() if line and not _PROGRESS.fullmatch(line.strip())]
    wanted = [line.rstrip() for line in outcome.command.output]
    wanted = [line for line in wanted if line.strip() and not _PROGRESS.fullmatch(line.strip())]
    rest = iter(actual)
    seen: list[str] = []
    for line in (each for each in wanted if each.strip() != "…"):
        found = next((other for other in rest if _alike(line, other, masked)), None)
        if found is None:
            return f"printed, and not said by the command: {line}"
        seen.append(found)
    of_the_host = _SLOW_HOST if masked else ()
    stumbles = [line for line in actual if _STUMBLES.search(line) and line not in seen]
    stumbles = [line for line in stumbles if not any(words in line for words in of_the_host)]
    if stumbles:
        return f"said by the command, and not printed: {stumbles[0]}"
    expects_failure = any(
        re.match(r"invalid: |unknown: |murmur: |.*\d+ failed", line.strip()) for line in outcome.command.output
    )
    if expects_failure != (outcome.exit_code != 0):
        return f"exit code {outcome.exit_code}"
    return None


def _alike(printed: str, actual: str, masked: bool) -> bool:
    if masked:
        printed, actual = _RATES.sub("0", printed), _RATES.sub("0", actual)
    pattern = re.escape(" ".join(printed.split())).replace("…", ".*")
    return re.match(f"{pattern}$", " ".join(actual.split())) is not None
