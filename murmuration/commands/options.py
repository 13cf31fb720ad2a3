"""Arguments and options that commands share."""

from pathlib import Path
from typing import Annotated

import typer


def _scenario_names(begun: str) -> list[str]:
    from murmuration.scenario.load import built_in_scenarios

    return [name for name in built_in_scenarios() if name.startswith(begun)]


def paper_names(begun: str) -> list[str]:
    from murmuration.papers import PAPERS

    return [name for name in PAPERS if name.startswith(begun)]


ScenarioArgument = Annotated[
    str, typer.Argument(help="A scenario file, or the name of a built-in one.", autocompletion=_scenario_names)
]
RunFolderArgument = Annotated[Path, typer.Argument(help="A run folder.")]
MasterOption = Annotated[
    str | None, typer.Option(help="Spark master (spark://HOST:PORT), instead of this host's cores.")
]
ExecutorMemoryOption = Annotated[str | None, typer.Option(help="Of each executor of that master, such as 3g.")]
PlainOption = Annotated[
    bool, typer.Option("--plain", help="Judge in plain Python: seconds for thousands of events, no Java, no report.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print results as one JSON line.")]
