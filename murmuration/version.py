"""The version of murmur that is installed."""

from importlib.metadata import PackageNotFoundError, version


def own_version() -> str:
    """The installed version of the distribution; "0" of a checkout that is not installed."""
    try:
        return version("murmuration")
    except PackageNotFoundError:
        return "0"
