"""The run folder seen from the analysis: its manifest, checked, and what the journal's numbers stand for."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from murmur_pubsub.errors import InputError
from murmur_pubsub.promise import DEFAULT_RECOVERY_LIMIT_US, Promise, read_promise

FORMAT = "murmur-run"
MANIFEST_VERSION = 1
STATUSES = ("running", "complete", "interrupted")
ROLES = ("broker", "client", "driver")


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the run. `number` is its number in the journal, `broker` where a client is attached."""

    number: int
    name: str
    role: str
    broker: str | None


@dataclass(frozen=True, slots=True)
class Manifest:
    """What the driver says about a run; `raw` is the whole document for the report. `status` is "incomplete" if
    journals that a verdict needs are missing."""

    name: str
    runtime: str
    seed: int
    status: str
    withdrawal_grace_us: int
    nodes: tuple[Node, ...]
    edges: tuple[tuple[str, str], ...]
    links: tuple[tuple[str, str], ...]
    promise: Promise
    subscription_grace_us: int
    recovery_limit_us: int
    expect: dict[str, float]
    raw: dict[str, Any]

    def home_broker(self) -> dict[int, int]:
        """Node number to the number of the broker it stands for: a broker itself, a client its broker."""
        numbers = {node.name: node.number for node in self.nodes}
        homes = {node.number: node.number for node in self.nodes if node.role == "broker"}
        for node in self.nodes:
            if node.role == "client" and node.broker in numbers:
                homes[node.number] = numbers[node.broker]
        return homes

    @property
    def homes(self) -> dict[str, str]:
        """Client to the broker where it is attached, by name."""
        return {node.name: node.broker for node in self.nodes if node.broker is not None}

    @property
    def has_links(self) -> bool:
        """Do brokers have links with each other? Those of a structured overlay have none."""
        brokers = {node.name for node in self.nodes if node.role == "broker"}
        return len(brokers) < 2 or any(first in brokers and second in brokers for first, second in self.links)

    def journal_at(self, run: Path) -> str:
        """Path or URI of the run's journal."""
        return str(self.raw.get("journal") or (run / "journal").resolve())

    @property
    def numbers(self) -> dict[str, int]:
        """Node name to its number in the journal."""
        return {node.name: node.number for node in self.nodes}

    @property
    def faults(self) -> list[dict[str, Any]]:
        """The steps of the fault plan as the driver wrote them down."""
        return list(self.raw.get("faults", []))

    @property
    def run(self) -> int:
        """The run's identifier, which every file of its journal bears."""
        return int(self.raw["run"], 16)

    @property
    def writers(self) -> dict[str, int] | None:
        """How many incarnations each writer of the journal had; None if the run was cut short, and nobody knows."""
        return self.raw["writers"] if self.raw["status"] == "complete" else None

    @property
    def away(self) -> frozenset[str]:
        """The brokers on hosts whose journals could not be gathered, or not all of them."""
        hosts = self.raw.get("cluster", {}).get("hosts", [])
        return frozenset(
            name
            for host in hosts
            if host["gathered"] is not None and host["gathered"]["failure"] is not None
            for name in host["brokers"]
        )

    @property
    def message_kinds(self) -> dict[int, str]:
        """Names of message kinds, as far as the driver wrote them down (`message_kinds`, optional)."""
        return {int(kind): str(name) for kind, name in self.raw.get("message_kinds", {}).items()}


def read_manifest(run: Path) -> Manifest:
    """The manifest of a run folder; raises `InputError` naming file and key for anything that is none."""
    path = run / "manifest.json"
    if not run.is_dir():
        raise InputError(str(run), "no such folder", "the folder of a run")
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(str(run), "a folder without manifest.json", "the folder of a run") from None
    except (OSError, ValueError) as error:
        raise InputError(str(path), f"no readable JSON ({error})", "the manifest of a run") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        found = document.get("format") if isinstance(document, dict) else document
        raise InputError(f"{path}, key format", f"{found!r:.60}", repr(FORMAT))
    if document.get("schema_version") != MANIFEST_VERSION:
        found = document.get("schema_version")
        raise InputError(f"{path}, key schema_version", f"{found!r:.60}", repr(MANIFEST_VERSION))
    if "journal" not in document and not (run / "journal").is_dir():
        raise InputError(str(run), "no folder journal/ in it", "the folder of a run with its journal")
    status = document.get("status")
    if status not in STATUSES:
        raise InputError(f"{path}, key status", f"{status!r:.60}", ", ".join(STATUSES))
    _check_writers(path, document)
    return Manifest(
        name=str(document.get("name", run.name)),
        runtime=str(document.get("runtime", "unknown")),
        seed=_integer(path, document, "seed", 0),
        status="incomplete" if document.get("journals_missing") else status,
        withdrawal_grace_us=_integer(path, document, "withdrawal_grace_us", 0),
        nodes=_nodes(path, document.get("nodes")),
        edges=_pairs(path, "overlay.edges", document.get("overlay", {}), "edges"),
        links=_pairs(path, "links", document, "links"),
        promise=read_promise(f"{path}, key promise", document.get("promise", {})),
        subscription_grace_us=_integer(path, document, "subscription_grace_us", 0),
        recovery_limit_us=_integer(path, document, "recovery_limit_us", DEFAULT_RECOVERY_LIMIT_US),
        expect=_numbers(path, "expect", document.get("expect", {})),
        raw=document,
    )


def _check_writers(path: Path, document: dict[str, Any]) -> None:
    try:
        int(document["run"], 16)
    except (KeyError, TypeError, ValueError):
        raise InputError(f"{path}, key run", f"{document.get('run')!r:.60}", "an identifier as 16 hex digits") from None
    writers = document.get("writers")
    counted = isinstance(writers, dict) and all(type(count) is int for count in writers.values())
    if document["status"] == "complete" and not counted:
        allowed = "how many incarnations each writer of the journal had"
        raise InputError(f"{path}, key writers", f"{writers!r:.60}", allowed)


def _integer(path: Path, document: dict[str, Any], key: str, default: int) -> int:
    value = document.get(key, default)
    if type(value) is not int:
        raise InputError(f"{path}, key {key}", f"{value!r:.60}", "an integer")
    return value


def _numbers(path: Path, key: str, section: Any) -> dict[str, float]:
    if not isinstance(section, dict) or any(type(value) not in (int, float) for value in section.values()):
        raise InputError(f"{path}, key {key}", f"{section!r:.60}", "a mapping of names to numbers")
    return dict(section)


def _nodes(path: Path, listed: Any) -> tuple[Node, ...]:
    if not isinstance(listed, list):
        raise InputError(f"{path}, key nodes", f"{listed!r:.60}", "a list of nodes")
    nodes = []
    for number, each in enumerate(listed):
        place = f"{path}, key nodes[{number}]"
        if not isinstance(each, dict) or not isinstance(each.get("name"), str):
            raise InputError(place, f"{each!r:.60}", "a node with a name")
        if each.get("role") not in ROLES:
            raise InputError(f"{place}.role", f"{each.get('role')!r:.60}", ", ".join(ROLES))
        nodes.append(Node(number, each["name"], each["role"], each.get("broker")))
    return tuple(nodes)


def _pairs(path: Path, place: str, section: Any, key: str) -> tuple[tuple[str, str], ...]:
    listed = section.get(key, []) if isinstance(section, dict) else None
    if not isinstance(listed, list) or any(not isinstance(pair, list) or len(pair) != 2 for pair in listed):
        raise InputError(f"{path}, key {place}", f"{listed!r:.60}", "a list of pairs of node names")
    return tuple((str(first), str(second)) for first, second in listed)
