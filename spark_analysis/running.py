"""The running verdict as a program beside a run that goes on: `python -m spark_analysis.running RUN`.

Spark reads the journal as it grows, in micro-batches, and a `RunningJudge` takes each. A line of JSON on standard
output is a verdict so far. It ends when the run does, or when whoever asked closes its standard input.
"""

import json
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from pyspark.sql import DataFrame

from murmur_pubsub.errors import InputError
from murmur_pubsub.run_manifest import read_manifest
from spark_analysis.journal_stream import LiveJournal, batch_of
from spark_analysis.rules import rules_of
from spark_analysis.running_judge import DEADLINE_US, RunningJudge, RunningVerdict
from spark_analysis.session import spark_session

_TRIGGER = "250 milliseconds"


def follow(
    run: Path, tell: Callable[[RunningVerdict], None], over: threading.Event, deadline_us: int = DEADLINE_US
) -> None:
    """Tell the verdict so far after each micro-batch, until the run has ended or it is `over`. Raises `InputError`."""
    manifest = read_manifest(run)
    if manifest.journal is not None:
        raise InputError(str(run), f"a journal at {manifest.journal}", "a run whose journal is in its own folder")
    rules = rules_of(manifest)
    judge = RunningJudge(rules, max(deadline_us, 2 * rules.withdrawal_grace_us))

    def take(frame: DataFrame, _: int) -> None:
        table = frame.toArrow()
        if len(table):
            judge.take(batch_of(table))
            tell(judge.verdict)

    with spark_session(master="local[2]") as spark:
        spark.dataSource.register(LiveJournal)
        stream = spark.readStream.format("murmur-live").load(str((run / "journal").resolve()))
        query = stream.writeStream.foreachBatch(take).trigger(processingTime=_TRIGGER).start()
        try:
            while query.isActive and not over.wait(0.5):
                if read_manifest(run).status != "running":
                    query.processAllAvailable()
                    break
        finally:
            query.stop()


def main() -> int:
    """Follow the run that is named on the command line."""
    over = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        over.set()

    threading.Thread(target=wait, daemon=True).start()
    try:
        follow(Path(sys.argv[1]), lambda verdict: print(json.dumps(asdict(verdict)), flush=True), over)
    except InputError as error:
        print(json.dumps({"trouble": str(error)}), flush=True)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
