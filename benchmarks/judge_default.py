"""The judge over the default run: seconds beyond Spark's start, of a warm Spark, and without Spark.

    python -m benchmarks.judge_default [SCENARIO]

The scenario is played in virtual time once. Then each judge judges the run in processes of its own, of which the
median counts: `start` is Spark's, until it has counted one row; `first` and `again` are what the same process takes to
judge after that. Spark's event log of one further process says what the first judgment is made of.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.table import print_table

_ROUNDS = 3
_MS = 1_000.0


def judged_by_spark(run: Path) -> dict[str, float]:
    """Seconds of one process: Spark's start, the first judgment, another."""
    began = time.perf_counter()
    from spark_analysis.main import judge
    from spark_analysis.session import spark_session

    size = sum(path.stat().st_size for path in (run / "journal").iterdir())
    with spark_session(None, size, None) as spark:
        assert spark.range(1).count() == 1
        seconds = {"start": time.perf_counter() - began}
        for name in ("first", "again"):
            began = time.perf_counter()
            assert judge(run)["verdict"] == "valid"
            seconds[name] = time.perf_counter() - began
    return seconds


def judged_plainly(run: Path) -> dict[str, float]:
    """The same without Spark."""
    began = time.perf_counter()
    from spark_analysis.plain_judge import judge_run

    seconds = {"start": time.perf_counter() - began}
    for name in ("first", "again"):
        began = time.perf_counter()
        assert judge_run(run).numbers["verdict"] == "valid"
        seconds[name] = time.perf_counter() - began
    return seconds


def apart(run: Path, by: str, **environment: str) -> dict[str, float]:
    """The seconds that one process takes."""
    command = [sys.executable, "-P", "-m", "benchmarks.judge_default", "--by", by, str(run)]
    found = subprocess.run(command, env={**os.environ, **environment}, check=True, capture_output=True, text=True)
    seconds: dict[str, float] = json.loads(found.stdout.splitlines()[-1])
    return seconds


def parts_of(run: Path, folder: Path) -> list[tuple[str, str]]:
    """What the first judgment of one process is made of, by Spark's event log."""
    (folder / "events").mkdir()
    settings = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file://{folder / 'events'}"}
    settings["spark.eventLog.rolling.enabled"] = "false"
    settings["spark.eventLog.compress"] = "false"
    (folder / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    seconds = apart(run, "spark", SPARK_CONF_DIR=str(folder))
    (log,) = (path for path in (folder / "events").rglob("*") if path.is_file() and not path.name.startswith("."))
    jobs: dict[int, list[float]] = {}
    tasks: Counter[str] = Counter()
    of_first: set[int] = set()
    for line in log.read_text().splitlines():
        event = json.loads(line)
        if event["Event"] == "SparkListenerJobStart":
            jobs[event["Job ID"]] = [event["Submission Time"] / _MS]
            if _is_first(len(jobs), jobs, seconds):
                of_first |= set(event["Stage IDs"])
        elif event["Event"] == "SparkListenerJobEnd":
            jobs[event["Job ID"]].append(event["Completion Time"] / _MS)
        elif event["Event"] == "SparkListenerTaskEnd" and event["Stage ID"] in of_first:
            measured = event["Task Metrics"]
            tasks["tasks"] += 1
            tasks["run"] += measured["Executor Run Time"]
            tasks["cpu"] += measured["Executor CPU Time"] / 1e6
            tasks["unpacked"] += measured["Executor Deserialize Time"]
            tasks["collected"] += measured["JVM GC Time"]
    spans = [
        span for number, span in enumerate(jobs.values(), 1) if len(span) == 2 and _is_first(number, jobs, seconds)
    ]
    busy_s = _covered(spans)
    return [
        ("the first judgment, s", f"{seconds['first']:.1f}"),
        ("jobs", str(len(spans))),
        ("tasks", str(tasks["tasks"])),
        ("some job runs, s", f"{busy_s:.1f}"),
        ("none runs: plans, Python, s", f"{seconds['first'] - busy_s:.1f}"),
        ("tasks run, s of all", f"{tasks['run'] / _MS:.1f}"),
        ("of that with a core, s", f"{tasks['cpu'] / _MS:.1f}"),
        ("tasks unpacked, s of all", f"{tasks['unpacked'] / _MS:.1f}"),
        ("Java's collector, s of all tasks", f"{tasks['collected'] / _MS:.1f}"),
    ]


def _is_first(number: int, jobs: dict[int, list[float]], seconds: dict[str, float]) -> bool:
    """Is the job, counted from 1, one of the first judgment? The one before that counts a row."""
    spans = list(jobs.values())
    return number > 1 and spans[number - 1][0] - spans[0][-1] < seconds["first"]


def _covered(spans: list[list[float]]) -> float:
    """Seconds in which at least one of the spans runs."""
    covered, until = 0.0, 0.0
    for begin, end in sorted(spans):
        covered += max(0.0, end - max(begin, until))
        until = max(until, end)
    return covered


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario", nargs="?", default="default")
    parser.add_argument("--by", choices=("spark", "plain"), help=argparse.SUPPRESS)  # this is a process that judges
    given = parser.parse_args()
    if given.by is not None:
        judged: Any = judged_by_spark if given.by == "spark" else judged_plainly
        print(json.dumps(judged(Path(given.scenario))))
        return
    with tempfile.TemporaryDirectory() as place:
        run = Path(place) / "run"
        command = [sys.executable, "-P", "-m", "murmuration", "run", given.scenario, "--runtime", "virtual", "--plain"]
        subprocess.run([*command, "--out", str(run)], check=True, capture_output=True)
        rows = []
        for by in ("spark", "plain"):
            rounds = [apart(run, by) for _ in range(_ROUNDS)]
            middle = [statistics.median(each[name] for each in rounds) for name in ("start", "first", "again")]
            rows.append((by, *(f"{seconds:.1f}" for seconds in middle)))
        title = f"The judge over the scenario {given.scenario}, s (aim: the first judgment in 8 beyond Spark's start)"
        print_table(title, ("judge", "start", "first", "again"), rows)
        print_table("Where the first judgment goes, by Spark's event log", ("", ""), parts_of(run, Path(place)))


if __name__ == "__main__":
    main()
