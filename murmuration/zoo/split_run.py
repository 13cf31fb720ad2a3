"""A virtual run as a live one would have left it: every node has written its own journal."""

import shutil
from dataclasses import replace
from pathlib import Path

from murmur_pubsub.journal import JournalWriter, RowKind, SideKind, read_side
from murmur_pubsub.journal_rows import read_segment
from murmur_pubsub.run_manifest import read_manifest, write_manifest


def split_by_node(run: Path, folder: Path, rows_per_segment: int = 64) -> Path:
    """The run with a series for each node, in a new folder; segments begin small, so that a series has several."""
    shutil.copytree(run, folder, ignore=lambda *_: ["journal", "analysis"])
    manifest = read_manifest(run)
    journal = folder / "journal"
    journal.mkdir()
    names = manifest.names
    writers = [
        JournalWriter(journal, name, number, rows_per_segment=rows_per_segment, run=manifest.identifier)
        for number, name in enumerate(names)
    ]
    rows = [row.tolist() for path in sorted((run / "journal").glob("*.seg")) for row in read_segment(path)[1]]
    home = {(row[4], row[1]): row[3] for row in rows if row[8] == RowKind.PUBLISH}
    for path in sorted((run / "journal").glob("*.blob")):
        for kind, fields in read_side(path):
            node = home[fields[0], fields[1]] if kind is SideKind.EVENT else fields[1]
            writers[node].side(kind, fields)
    for time_us, sequence, value, node, source, peer, size, hops, kind in rows:
        writers[node].row(time_us, kind, node, source, sequence, peer, hops, size, value)
    for writer in writers:
        writer.close()
    write_manifest(folder, replace(manifest, writers=dict.fromkeys(names, 1)))
    return folder
