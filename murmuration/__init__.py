"""An emulation cluster for content-based publish/subscribe: the public names.

    import murmuration

    run = murmuration.run("parity", runtime="virtual")
    run.verdict().assert_valid()
    tables = murmuration.load_run(run.folder)

Each name is imported when it is first used: actors import parts of this package, and must not pay for pandas.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["Cluster", "InputError", "Run", "RunError", "RunTables", "Verdict", "__version__", "load_run", "run"]

if TYPE_CHECKING:
    from murmur_pubsub.errors import InputError, RunError
    from murmuration.harness.cluster import Cluster
    from murmuration.results.load import load_run
    from murmuration.results.play import Run, run
    from murmuration.results.run_tables import RunTables
    from murmuration.results.verdict import Verdict

    __version__: str
else:
    # Type checkers read the imports above; `__getattr__` would make every name an Any for them.
    _MODULES = {
        "Cluster": "murmuration.harness.cluster",
        "InputError": "murmur_pubsub.errors",
        "Run": "murmuration.results.play",
        "RunError": "murmur_pubsub.errors",
        "RunTables": "murmuration.results.run_tables",
        "Verdict": "murmuration.results.verdict",
        "load_run": "murmuration.results.load",
        "run": "murmuration.results.play",
    }

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            return import_module("murmuration.version").own_version()
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        hidden = import_module("murmuration.hidden_packages").hidden_package()
        if hidden is not None:
            raise ImportError(str(hidden))
        value = globals()[name] = getattr(import_module(_MODULES[name]), name)
        return value

    def __dir__() -> list[str]:
        return list(__all__)
