"""A number that says whether two nodes hold the same filters."""

import functools
import zlib
from collections.abc import Iterable

from murmur_pubsub.filter import Filter


def digest(filters: Iterable[Filter]) -> int:
    """The same for the same filters, whatever their order, in every process; never 0."""
    return 1 + sum(map(_stamp, filters)) % (1 << 48)


@functools.lru_cache(maxsize=65_536)
def _stamp(wanted: Filter) -> int:
    return zlib.crc32(str(wanted).encode())
