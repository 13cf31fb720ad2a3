"""The runs of a reproduction in the process of the test."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from murmuration.papers.lab.paper_runs import PaperRuns


class RunsHere(PaperRuns):
    """All of them one by one; `played` are the points that were."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, lambda *_: None)
        self.played: list[Any] = []

    def spread(
        self, function: Callable[[Any], Any], points: Iterable[Any], result_type: Callable[[Any], Any]
    ) -> dict[Any, Any]:
        def play(point: Any, address: str | None) -> Any:
            self.played.append(point)
            return function(point)

        return self.one_by_one(play, points, result_type)
