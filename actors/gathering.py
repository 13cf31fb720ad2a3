"""Journals that hosts kept for themselves, brought together in one store.

A host that does not see the run folder, or was told to keep journals on a disk of its own, writes them below its
scratch folder. At the end its files go to the store: into a folder of the driver's host through Ray, to a URI
straight from where they are. What a dead process left is taken as it lies there: a row that was written is read,
whatever came after it. The scratch folder of the run is removed once all of it has been gathered.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from actors.ray_session import words_of
from actors.scratch import check_scratch, remove_scratch
from murmur_pubsub.journal_store import is_uri, journal_names, store_at
from murmur_pubsub.progress import Progress
from murmur_pubsub.run_manifest import Gathered

_FILES_AHEAD = 2
"""The most files that a host holds ready for the driver: they wait in the memory of its object store."""


def gather(sources: Mapping[int, tuple[str, str]], place: str, progress: Progress) -> dict[int, Gathered]:
    """Bring the journals of these hosts (number: Ray's identifier, folder of the run there) to the path or URI.

    Ray must be initialised. A host that goes away costs its own journals and no others; raises `OSError` if the
    driver cannot write.
    """
    store = store_at(place)
    ends: dict[int, Gathered] = {}
    target = place if is_uri(place) else None
    streams = {number: _send_from(identifier, folder, target) for number, (identifier, folder) in sources.items()}
    done = total = 0
    for number, (identifier, folder) in sources.items():
        files = 0
        try:
            for reference in streams[number]:
                name, content, listed = ray.get(reference)
                total += listed if files == 0 else 0
                if content is not None:
                    store.write(name, content)
                files, done = files + 1, done + 1
                progress("gathering journals", done, total)
            ray.get(
                ray.remote(num_cpus=0)(remove_scratch).options(scheduling_strategy=_on(identifier)).remote(Path(folder))
            )
            ends[number] = Gathered(files)
        except ray.exceptions.RayError as error:
            ends[number] = Gathered(files, words_of(error))
    return ends


def _send_from(identifier: str, folder: str, target: str | None) -> Any:
    options = {"num_returns": "streaming", "_generator_backpressure_num_objects": _FILES_AHEAD}
    send = ray.remote(num_cpus=0, max_retries=0)(_send)
    return send.options(scheduling_strategy=_on(identifier), **options).remote(folder, target)


def _on(identifier: str) -> NodeAffinitySchedulingStrategy:
    return NodeAffinitySchedulingStrategy(node_id=identifier, soft=False)


def _send(folder: str, target: str | None) -> Iterator[tuple[str, bytes | None, int]]:
    """Runs on the host: name, content (None: it went to the target) and how many files there are, for each."""
    check_scratch(Path(folder))
    journal = Path(folder, "journal")
    names = journal_names(journal)
    store = None if target is None else store_at(target)
    for name in names:
        content = (journal / name).read_bytes()
        if store is not None:
            store.write(name, content)
        yield name, content if store is None else None, len(names)
