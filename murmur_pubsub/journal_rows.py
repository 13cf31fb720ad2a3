"""The rows of a journal as numpy arrays, for whoever looks at many at once."""

from pathlib import Path

import numpy as np

from murmur_pubsub.journal import written_rows
from murmur_pubsub.journal_format import ROW, SegmentHeader
from murmur_pubsub.journal_store import store_at

ROW_TYPE = np.dtype(
    {
        "names": ["time_us", "sequence", "value", "node", "source", "peer", "bytes", "hops", "kind"],
        "formats": ["<i8", "<i8", "<i8", "<i4", "<i4", "<i4", "<i4", "<i2", "u1"],
        "offsets": [0, 8, 16, 24, 28, 32, 36, 40, 42],
        "itemsize": ROW.size,
    }
)


def read_segment(path: Path) -> tuple[SegmentHeader, np.ndarray]:
    """`parse_segment` of a file."""
    return parse_segment(str(path), path.read_bytes())


def parse_segment(path: str, data: bytes) -> tuple[SegmentHeader, np.ndarray]:
    """Header and rows (dtype `ROW_TYPE`) of one segment; see `murmur_pubsub.journal.written_rows`."""
    header, rows = written_rows(path, data)
    return header, np.frombuffer(rows, dtype=ROW_TYPE)


def read_rows(journal: Path) -> np.ndarray:
    """All rows in the folder, writer by writer."""
    parsed = [parse_segment(place, data)[1] for place, data in store_at(str(journal)).written("seg")]
    return np.concatenate([np.empty(0, ROW_TYPE), *parsed])
