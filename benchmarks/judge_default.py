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
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.table import print_table
from benchmarks.timing import seconds

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
        return {"start": time.perf_counter() - began, **judged_twice(lambda: judge(run))}


def judged_plainly(run: Path) -> dict[str, float]:
    """The same without Spark."""
    began = time.perf_counter()
    from spark_analysis.plain_judge import judge_run

    return {"start": time.perf_counter() - began, **judged_twice(lambda: judge_run(run).numbers)}


def judged_twice(judge: Callable[[], Mapping[str, Any]]) -> dict[str, float]:
    """Seconds of the first judgment and of another, both of a valid run."""

    def judged() -> None:
        assert judge()["verdict"] == "valid"

    return {name: seconds(judged) for name in ("first", "again")}


def apart(run: Path, by: str, **environment: str) -> dict[str, float]:
    """The seconds that one process takes."""
    command = [sys.executable, "-P", "-m", "benchmarks.judge_default", "--by", by, str(run)]
    found = subprocess.run(command, env={**os.environ, **environment}, check=True, capture_output=True, text=True)
    return json.loads(found.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def parts_of(run: Path, folder: Path) -> list[tuple[str, str]]:
    """What the first judgment of one process is made of, by Spark's event log."""
    (folder / "events").mkdir()
    settings = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file://{folder / 'events'}"}
    settings["spark.eventLog.rolling.enabled"] = "false"
    settings["spark.eventLog.compress"] = "false"
    (folder / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    taken_s = apart(run, "spark", SPARK_CONF_DIR=str(folder))
    (log,) = (path for path in (folder / "events").rglob("*") if path.is_file() and not path.name.startswith("."))
    told: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in log.read_text().splitlines():
        event = json.loads(line)
        told[event["Event"]].append(event)
    ends_ms = {each["Job ID"]: each["Completion Time"] for each in told["SparkListenerJobEnd"]}
    counting, *others = told["SparkListenerJobStart"]
    judged_ms = ends_ms[counting["Job ID"]] + taken_s["first"] * _MS
    jobs = [each for each in others if each["Submission Time"] < judged_ms]
    stages = {stage for job in jobs for stage in job["Stage IDs"]}
    tasks = [each["Task Metrics"] for each in told["SparkListenerTaskEnd"] if each["Stage ID"] in stages]
    busy_s = _covered([(job["Submission Time"], ends_ms[job["Job ID"]]) for job in jobs]) / _MS

    def of_all(metric: str, a_second: float = _MS) -> str:
        return f"{sum(task[metric] for task in tasks) / a_second:.1f}"

    return [
        ("the first judgment, s", f"{taken_s['first']:.1f}"),
        ("jobs", str(len(jobs))),
        ("tasks", str(len(tasks))),
        ("some job runs, s", f"{busy_s:.1f}"),
        ("none runs: plans, Python, s", f"{taken_s['first'] - busy_s:.1f}"),
        ("tasks run, s of all", of_all("Executor Run Time")),
        ("of that with a core, s", of_all("Executor CPU Time", 1e9)),
        ("tasks unpacked, s of all", of_all("Executor Deserialize Time")),
        ("Java's collector, s of all tasks", of_all("JVM GC Time")),
    ]


def _covered(spans: list[tuple[int, int]]) -> int:
    """For how long at least one of the spans runs."""
    covered, until = 0, 0
    for begin, end in sorted(spans):
        covered += max(0, end - max(begin, until))
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
            rows.append((by, *(f"{taken_s:.1f}" for taken_s in middle)))
        title = f"The judge over the scenario {given.scenario}, s (aim: the first judgment in 8 beyond Spark's start)"
        print_table(title, ("judge", "start", "first", "again"), rows)
        print_table("Where the first judgment goes, by Spark's event log", ("", ""), parts_of(run, Path(place)))


if __name__ == "__main__":
    main()
