"""`murmur analyze`: verdict, tables and report of runs, all by one Spark, or verdicts in plain Python."""

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from murmur_pubsub.run_manifest import read_manifest
from murmuration.commands.console import RunProgress
from murmuration.commands.outcome import print_analysis


def analyze_runs(
    folders: Sequence[Path],
    as_json: bool = False,
    master: str | None = None,
    executor_memory: str | None = None,
    plain: bool = False,
    parquet: bool = False,
) -> None:
    """Judge each run and print its verdict, or a JSON line for each; exit code 1 if one is not valid.

    `parquet`: copy its tables, too. Raises `InputError` for a folder that is no run's, or cannot have a report, before
    any is judged.
    """
    named = [run_named(folder) for folder in folders]
    valid = []
    with contextlib.ExitStack() as stack:
        if plain:
            from murmuration.commands.plain import check_plain

            check_plain(master, executor_memory)
        elif len(folders) > 1 or parquet:
            from spark_analysis.main import session_for
            from spark_analysis.report import check_report

            for folder in folders:
                check_report(folder)
            stack.enter_context(session_for(folders, master, executor_memory))
        for folder, names in zip(folders, named, strict=True):
            if len(folders) > 1 and not as_json:
                print(f"{folder}:")
            valid.append(_judge(folder, names, as_json, master, executor_memory, plain))
            if parquet:
                from murmuration.results.parquet_copy import copy_tables

                place = copy_tables(folder, with_spark=not plain)
                if not as_json:
                    print(f"tables: {place}")
    if not all(valid):
        raise typer.Exit(1)


def _judge(
    folder: Path, named: dict[str, Any], as_json: bool, master: str | None, executor_memory: str | None, plain: bool
) -> bool:
    """Is the run valid? Prints the verdict."""
    if plain:
        from murmuration.commands.plain import judge_in_python

        return judge_in_python(folder, as_json, named)
    from spark_analysis.main import analyze

    with RunProgress(quiet=as_json) as progress:
        verdict = analyze(folder, master, progress.step, executor_memory)
    if as_json:
        print(json.dumps({**verdict, "judge": "spark", **named}))
    else:
        print_analysis(verdict, folder)
    return bool(verdict["verdict"] == "valid")


def run_named(folder: Path) -> dict[str, Any]:
    """Which run it is, for a script that did not choose the folder."""
    manifest = read_manifest(folder)
    return {"name": manifest.name, "runtime": manifest.runtime, "seed": manifest.seed, "folder": str(folder)}
