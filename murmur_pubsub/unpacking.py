"""msgpack from outside: how large it may be, and to how much it may unpack.

A byte of msgpack can become an empty map of 64 bytes, so a bound on bytes alone is none on memory. What is small cannot
become much and is unpacked as it is; in what is larger, containers are counted as they are made. A sender asks the
same of what it sends, so that the two ends agree on what is too large.
"""

import itertools
from typing import Any

import msgpack

from murmur_pubsub.errors import WireError

SMALL_BYTES = 64 * 1024
"""Up to here containers are not counted. Frames of many messages are no larger (`murmur_pubsub.codec.frames`)."""
CONTAINERS_MAX = 256 * 1024
"""With 64 bytes for a map and 8 for its place: 19 MB, made within some 30 ms."""


def unpack(packed: bytes | memoryview, containers_max: int = CONTAINERS_MAX) -> Any:
    """The value packed there; raises `WireError` if there is none, or it has too many lists and maps inside."""
    try:
        if len(packed) <= SMALL_BYTES:
            return msgpack.unpackb(packed)
        left = itertools.repeat(None, containers_max)

        def count(container: Any) -> Any:
            for _ in left:
                return container
            raise WireError(f"more than {containers_max:,} lists and maps")

        return msgpack.unpackb(packed, list_hook=count, object_hook=count)
    except WireError:
        raise
    except Exception as error:
        raise WireError(f"no msgpack: {error}") from error
