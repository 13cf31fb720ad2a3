"""A Ray for one run alone: it listens on loopback only, and asks for a token that this run has made.

Ray takes both from the environment, so that every process it starts has them, and no command line does. What this
process had read before is read again, for Ray looks once. On Linux Ray turns a loopback address that it is given into
one that others reach; only where it holds clusters to be impossible, as it does on other systems, it stays there: so
that is what it is told.
"""

import contextlib
import os
import secrets
from collections.abc import Iterator

_CLUSTERS = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"


@contextlib.contextmanager
def private_ray() -> Iterator[None]:
    """For the length of the block: a Ray that is started in it is private, a cluster is joined before or after."""
    from ray._private import ray_constants

    with contextlib.ExitStack() as stack:
        stack.callback(_read_again)
        for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", _CLUSTERS):
            stack.callback(_set, name, os.environ.get(name))
        stack.callback(setattr, ray_constants, "ENABLE_RAY_CLUSTER", ray_constants.ENABLE_RAY_CLUSTER)
        _set("RAY_AUTH_MODE", "token")
        _set("RAY_AUTH_TOKEN", secrets.token_hex(32))
        _set("RAY_AUTH_TOKEN_PATH", None)
        _set(_CLUSTERS, "0")
        ray_constants.ENABLE_RAY_CLUSTER = False
        _read_again()
        yield


def _set(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def _read_again() -> None:
    from ray._raylet import AuthenticationTokenLoader, Config  # type: ignore[attr-defined]

    Config.initialize("")  # first: with the old mode and no token, a thread that still closes down would abort
    AuthenticationTokenLoader.instance().reset_cache()
