"""What long hunts came to, in Markdown: `python -m benchmarks.hunt_curves FOLDER ...`, of folders of `murmur hunt`.

A row for each pair: schedules, places reached after a quarter, half, three quarters and all of them, and findings. Then
what was never reached, as `coverage.txt` has it.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from murmuration.hunt.findings import FindingStore
from murmuration.hunt.folder import HuntFolder

_PARTS = (0.25, 0.5, 0.75, 1.0)


def rows_of(folder: HuntFolder) -> Iterator[Sequence[str]]:
    """A row for each pair that was hunted there."""
    curves: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for chunk in folder.chunks():
        if "lost" not in chunk:
            curve = curves[chunk["pair"]]
            curve.append(((curve[-1][0] if curve else 0) + chunk["schedules"], chunk["places"]))
    store = FindingStore(folder.findings)
    store.read()
    findings = Counter(finding.pair for finding in store.all)
    for pair, curve in curves.items():
        schedules = curve[-1][0]
        reached = [next(places for count, places in curve if count >= part * schedules) for part in _PARTS]
        yield pair, f"{schedules:,}", *(f"{places:,}" for places in reached), str(findings[pair])


def main() -> None:
    """Print the table in Markdown."""
    folders = [HuntFolder(Path(name)) for name in sys.argv[1:]]
    print("| pair | schedules | places after a quarter | a half | three quarters | all | findings |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for folder in folders:
        for row in rows_of(folder):
            print(f"| {' | '.join(row)} |")
    for folder in folders:
        never_reached = folder.folder / "coverage.txt"
        if never_reached.exists():  # not of a hunt that was interrupted
            print(f"\n{never_reached.read_text()}", end="")


if __name__ == "__main__":
    main()
