"""Run the benchmarks of murmur's own parts, each beside its yardstick. Systems are compared by `murmur bench`.

    python -m benchmarks [NAME ...] [--out FOLDER] [--before CHECKOUT] [--quotes RECORDING]

Each benchmark runs in a process of its own, one after the other; a computer that does other work meanwhile measures
that. With a folder, what each prints is kept there as NAME.txt, with the code and the computer that it was measured on.
With a checkout of another state of murmur, each is run over that code, too, right after.
"""

import argparse
import os
import platform
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil

from benchmarks.other_code import HERE, environment_of, with_path


@dataclass(frozen=True)
class Benchmark:
    """A module of this package. `minutes`: about what it takes on two cores, once."""

    name: str
    minutes: float
    arguments: Sequence[str] = ()
    compares_itself: bool = False
    """It is told of the other checkout, and shows both codes in one table."""
    has_before: bool = True
    """The code that it measures was there before."""
    by_name: bool = False
    """It is run where it is named, and not with all."""


WHOLE = (
    Benchmark("matching", 1.5),
    Benchmark("matching_million", 3, compares_itself=True),
    Benchmark("engine", 1),
    Benchmark("profiles", 1),
    Benchmark("epidemic", 1),
    Benchmark("journal", 0.5),
    Benchmark("judge_default", 1.5),
    Benchmark("judge_scale", 15, ("--where", "local")),
    Benchmark("live", 3),
    Benchmark("live_hop", 0.5),
    Benchmark("dense", 4, has_before=False),
    Benchmark("recovery", 1.5),
    Benchmark("pool", 4, has_before=False),
    Benchmark("peers", 2, has_before=False),
    Benchmark("live_peers", 1.5, has_before=False),
    Benchmark("month", 45, has_before=False, by_name=True),
)
"""All that `make bench` runs, and what takes too long for that."""


def code_of(checkout: Path) -> str:
    """The checkout's commit and its day."""
    asked = ["git", "-C", str(checkout), "log", "-1", "--format=%h of %cs"]
    found = subprocess.run(asked, capture_output=True, text=True)
    return found.stdout.strip() or "no commit"


def computer() -> str:
    """What the figures were measured on, and how busy it was before."""
    names = [line.split(":")[1].strip() for line in _cpu_lines() if line.startswith("model name")]
    memory_gb = psutil.virtual_memory().total / 1e9
    load = os.getloadavg()[0]
    return (
        f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores, {memory_gb:.0f} GB, "
        f"{platform.system()}, Python {platform.python_version()}, load before {load:.1f}"
    )


def _cpu_lines() -> Sequence[str]:
    try:
        return Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ()


def played(
    module: str, arguments: Sequence[str], environment: Mapping[str, str], folder: Path = HERE
) -> tuple[str, bool]:
    """What the benchmark prints, which is shown meanwhile, and whether it came to its end. `folder`: where it runs;
    Ray's workers look for code there first."""
    command = [sys.executable, "-P", "-m", f"benchmarks.{module}", *arguments]
    lines = []
    with subprocess.Popen(command, env=environment, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    return "".join(lines), process.returncode == 0


def run(benchmark: Benchmark, before: Path | None, quotes: Path | None, out: Path | None) -> bool:
    """Measure, and keep what was measured; False if something failed."""
    arguments = list(benchmark.arguments)
    if benchmark.compares_itself:
        arguments += [] if before is None else ["--before", str(before)]
        arguments += [] if quotes is None else ["--quotes", str(quotes)]
    said = f"python -m benchmarks.{' '.join([benchmark.name, *arguments])}"
    heading = f"{said}\ncode: {code_of(HERE)}; {datetime.now(UTC):%Y-%m-%d %H:%M} UTC\n{computer()}"
    print(f"\n{'=' * 100}\n{heading}", flush=True)
    began = time.monotonic()
    printed, ended = played(benchmark.name, arguments, with_path(HERE))
    if before is not None and benchmark.has_before and not benchmark.compares_itself:
        printed += played_before(benchmark, arguments, before)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        file = out / f"{benchmark.name}.txt"
        file.write_text(f"{heading}\ntook {time.monotonic() - began:.0f} s\n{printed}")
        print(f"kept: {file}", flush=True)
    return ended


def played_before(benchmark: Benchmark, arguments: Sequence[str], before: Path) -> str:
    """What the benchmark prints over the other checkout's code; where that code lacks what it asks for, what the
    checkout's own benchmark of that name prints, if there is one."""
    said = f"\n--- the same over the code of {code_of(before)} ---\n"
    print(said, end="", flush=True)
    with environment_of(before) as environment:
        printed, ended = played(benchmark.name, arguments, environment, before)
    said += printed
    if not ended:
        line = "That code lacks what this benchmark asks for"
        if (before / "benchmarks" / f"{benchmark.name}.py").exists():
            line += "; its own benchmark of that name:\n"
            print(line, flush=True)
            line += played(benchmark.name, (), with_path(before.resolve()), before)[0]
        said += f"{line}\n"
    return said


def _place(given: str) -> Path:
    """From wherever the command is typed: benchmarks run in another folder."""
    return Path(given).resolve()


def main(arguments: Sequence[str]) -> int:
    """Print the tables; 1 if a benchmark failed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [each.name for each in WHOLE]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}; most without any")
    parser.add_argument("--out", type=Path, metavar="FOLDER")
    parser.add_argument("--before", type=_place, metavar="CHECKOUT")
    parser.add_argument("--quotes", type=_place, metavar="RECORDING")
    given = parser.parse_args(arguments)
    for name in given.names:
        if name not in names:
            parser.error(f"there is no benchmark {name}; allowed: {', '.join(names)}")
    if given.before is not None and not (given.before / "murmur_pubsub").is_dir():
        parser.error(f"--before {given.before}: that folder is no checkout of murmur, which has a folder murmur_pubsub")
    chosen = [each for each in WHOLE if each.name in given.names or not (given.names or each.by_name)]
    failed = []
    try:
        for number, benchmark in enumerate(chosen):
            left = sum(each.minutes * (1 + (given.before is not None and each.has_before)) for each in chosen[number:])
            print(f"{number + 1} of {len(chosen)}, about {left:.0f} min left", file=sys.stderr, flush=True)
            if not run(benchmark, given.before, given.quotes, given.out):
                failed.append(benchmark.name)
    except KeyboardInterrupt:
        where = "nowhere: no --out was given" if given.out is None else f"in {given.out}"
        print(f"interrupted; what had ended is kept {where}")
        return 130
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
