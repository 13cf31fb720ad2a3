"""One cell of the table played and judged: the function that runs as a task."""

import tempfile
import time
from pathlib import Path
from typing import Any

from murmuration.bench.measure import judge_and_measure
from murmuration.runs.driver import execute
from murmuration.scenario.load import check_scenario


def play_cell(work: dict[str, Any]) -> dict[str, Any]:
    """Play `scenario` in a folder of its own below `scratch`; what the judge says of it, figures, and CPU seconds.

    The run is not kept: the scenario makes it again.
    """
    began = time.process_time()
    with tempfile.TemporaryDirectory(prefix=".draft-", dir=work["scratch"]) as scratch:
        run = Path(scratch) / "run"
        execute(check_scenario(work["scenario"], work["cell"]), run, lambda *_: None)
        verdict, figures = judge_and_measure(run)
    return {"verdict": verdict, "figures": figures, "cpu_s": time.process_time() - began}
