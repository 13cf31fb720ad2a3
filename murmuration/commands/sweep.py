"""What `murmur sweep` says and writes around a sweep: progress, what is kept when it is cut short, table and report."""

import json
from collections import Counter
from pathlib import Path
from typing import Literal

import typer
from rich.console import Console
from rich.markup import escape

from murmur_pubsub.errors import RunError
from murmur_pubsub.whole_files import check_files, whole
from murmuration.commands.console import RunProgress
from murmuration.runs.own_modules import find_own_modules
from murmuration.sweeps.plan import SweepPlan, read_sweep
from murmuration.sweeps.sweep import SweepEnd, SweepOptions, SweepRun
from murmuration.sweeps.tasks import Cores

_FAILED_SHOWN = 5
_WRITTEN = ("table.csv", "table.parquet", "report.html")
"""When the last point has been judged."""


class SweepCutShort(RunError):
    """A sweep that ended early; the same command goes on with it."""


def play_sweep(
    sweep_file: Path,
    workers: int | None,
    address: str | None,
    out: Path | None,
    judge: Literal["spark", "plain"] | None,
    keep_runs: bool,
    as_json: bool,
) -> None:
    """Carry out the sweep; exits with 1 if a point could not be played or its verdict is not `valid`."""
    cores = Cores(workers, address)
    if judge == "spark":
        from spark_analysis.session import check_java

        check_java()
    find_own_modules(sweep_file)
    with RunProgress(quiet=as_json) as progress:
        plan = read_sweep(sweep_file, progress.step)
        folder = out or Path("sweeps") / plan.name
        if judge is not None:
            check_files(folder / name for name in _WRITTEN)
        sweep = SweepRun(plan, folder, SweepOptions(cores, judge, keep_runs))
        try:
            end = sweep.run(progress.step)
        except (KeyboardInterrupt, OSError, RunError) as error:
            why = "interrupted" if isinstance(error, KeyboardInterrupt) else str(error)
            raise SweepCutShort(f"{why}\nfinished points are kept in {folder}: the same command goes on") from error
    if judge is not None and (end.kept or end.done):
        _write(sweep, plan, folder)
    _tell(sweep, plan, end, folder, judge is not None, as_json)


def _write(sweep: SweepRun, plan: SweepPlan, folder: Path) -> None:
    from spark_analysis.sweep_report import write_sweep_report

    table = sweep.table()
    with whole(folder / "table.csv") as draft:
        table.to_csv(draft, index=False)
    with whole(folder / "table.parquet") as draft:
        table.to_parquet(draft, index=False)
    write_sweep_report(folder, table, plan.keys, plan.name, plan.description, len(plan.points), plan.text)


def _tell(sweep: SweepRun, plan: SweepPlan, end: SweepEnd, folder: Path, judged: bool, as_json: bool) -> None:
    verdicts = Counter(sweep.table()["verdict"]) if judged and end.kept + end.done else Counter()
    if as_json:
        fields = {"points": len(plan.points), "kept": end.kept, "done": end.done, "failed": len(end.failed)}
        print(json.dumps(fields | {"verdicts": dict(verdicts), "folder": str(folder)}))
    else:
        console = Console()
        console.print(
            f"{len(plan.points):,} points: {end.kept:,} kept, {end.done:,} done, {len(end.failed):,} failed",
            highlight=False,
        )
        for point, why in end.failed[:_FAILED_SHOWN]:
            console.print(f"[red]failed[/red]: {escape(str(point))}: {escape(why)}", highlight=False)
        if judged:
            console.print(", ".join(f"{count:,} {verdict}" for verdict, count in verdicts.items()), highlight=False)
            console.print(f"table: {folder / 'table.csv'}\nreport: {folder / 'report.html'}", highlight=False)
        else:
            console.print(f"runs: {folder / 'runs'}; without --no-analysis the same command judges them")
    if end.failed or any(verdict != "valid" for verdict in verdicts):
        raise typer.Exit(1)
