"""How every benchmark prints."""

from collections.abc import Iterable, Sequence


def print_table(title: str, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A title and aligned columns, the first to the left and the others to the right."""
    cells = [list(headings), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headings))]
    print(f"\n{title}")
    for row in cells:
        first = row[0].ljust(widths[0])
        print("  ".join([first, *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]))
