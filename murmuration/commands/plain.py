"""The verdict of the judge in plain Python on a run: seconds, no Java, no tables and no report."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from murmur_pubsub.errors import InputError
from murmur_pubsub.verdict_file import DAMAGE
from murmuration.commands.outcome import print_verdict
from spark_analysis.plain_judge import Judgement, judge_run

_FINDINGS_PRINTED = 3


def check_plain(master: str | None, executor_memory: str | None) -> None:
    """Raise `InputError` for what only the judge on Spark can use."""
    for option, value in (("--master", master), ("--executor-memory", executor_memory)):
        if value is not None:
            raise InputError(option, f"{value}, beside --plain", "one of the two: --plain judges without Spark")


def judge_in_python(folder: Path, as_json: bool, named: Mapping[str, Any]) -> bool:
    """Is the run valid? Prints the verdict and the first findings, or one JSON line with what names the run."""
    judgement = judge_run(folder)
    if as_json:
        print(json.dumps({**judgement.numbers, "judge": "plain", **named}))
    elif judgement.numbers["finding"] == DAMAGE:
        print(f"unknown: {judgement.numbers['reason']}")
    else:
        print_verdict(judgement.numbers)
        _print_findings(judgement, folder)
        print(f"run folder: {folder}")
    return bool(judgement.numbers["verdict"] == "valid")


def _print_findings(judgement: Judgement, folder: Path) -> None:
    """The first of what makes the run invalid, and the command that shows the way of the first event."""
    findings = judgement.first_findings(_FINDINGS_PRINTED)
    for told in findings:
        print(f"  {told}")
    if findings:
        (publisher, number), _ = judgement.left(judgement.numbers["finding"])[0]
        print(f"  what happened to the first: murmur trace {folder} {publisher}:{number}")
