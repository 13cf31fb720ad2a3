"""What all actors of a run are told."""

from collections.abc import Mapping
from dataclasses import dataclass

from actors.clock import Origin
from murmur_pubsub.deployment import RunSettings
from murmur_pubsub.machine import NodeName


@dataclass(frozen=True, slots=True)
class ActorSettings:
    """The settings of the run, and what a live run adds to them."""

    run: RunSettings
    token: str
    """What a peer must know to be let in."""
    journal_folder: str
    storage_folder: str
    numbers: Mapping[NodeName, int]
    """Node name to its number in the journal."""
    origin: Origin
    """Emulated time zero."""
    host: str | None
    """The address to listen on. None: that of the host in the cluster."""
    search_path: tuple[str, ...] = ()
    """Where the driver finds modules."""
    scratch: str | None = None
    """The folder that holds both folders until they are gathered. None: the run's own folder does."""
