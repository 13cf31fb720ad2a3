"""What brokers say to each other about filters (tables, their changes, which are in effect where), and about links.

All are control messages: a link keeps their order and loses them only when its connection breaks, and then both
ends compare what they have.
"""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

from murmur_pubsub.filter import Filter
from murmur_pubsub.message import Like, message

WHOLE = -1
"""Before all epochs."""


@message(120, control=True)
class TablesHeld(NamedTuple):
    """On a new link: broker to [incarnation, version] of its table, and root to the epoch known of it."""

    tables: dict[str, list[int]]
    epochs: dict[str, int]


@message(121, control=True)
class WholeTable(NamedTuple):
    """All filters of a broker's own subscribers. `heard`: root to the incarnation of it that the broker knew of.
    `forgotten`: an operator has given the broker up, and nothing is to wait for it."""

    broker: str
    incarnation: int
    version: int
    filters: Sequence[Filter]
    heard: dict[str, int]
    forgotten: bool


@message(122, control=True)
class TableChanged(NamedTuple):
    """The step of a broker's table to this version."""

    broker: str
    incarnation: int
    version: int
    added: Sequence[Filter]
    removed: Sequence[Filter]
    heard: dict[str, int]


@message(123, control=True)
class InEffect(NamedTuple):
    """A root's filter epoch: what it sends from now on is filtered by at least these versions of tables (broker to
    [incarnation, version]), and by those of the epoch `since` where that named others (`WHOLE`: these are all).
    `marks`: what its reliability part wants subscribers to know of that moment."""

    root: str
    epoch: int
    since: int
    tables: dict[str, Annotated[Sequence[int], Like((int, int))]]
    marks: list[int]


@message(124, control=True)
class EpochHeard(NamedTuple):
    """Neighbour to root: it has the epoch, and the root may announce the next."""

    epoch: int


@message(125, control=True)
class LinksUp(NamedTuple):
    """The brokers that this one has links to; a later (incarnation, version) stands in for all before it."""

    broker: str
    incarnation: int
    version: int
    peers: list[str]


@message(126, control=True)
class Members(NamedTuple):
    """How the members of cells differ from those that the overlay began with: brokers that have joined, each with its
    cell, and brokers that have departed for good, perhaps of these."""

    joined: dict[str, str]
    departed: list[str]
