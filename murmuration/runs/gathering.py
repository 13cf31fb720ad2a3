"""The journals of a run that was played on several hosts, brought to one place; again, when a host is back."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from murmur_pubsub.deployment import Deployment
from murmur_pubsub.errors import InputError
from murmuration.runs.joined_cluster import JoinedCluster
from murmuration.runs.run_folder import RunFolder

if TYPE_CHECKING:
    from actors.gathering import Gathered

Progress = Callable[[int, int], None]


def gather_run(cluster: JoinedCluster, run_folder: RunFolder, deployment: Deployment, progress: Progress) -> None:
    """Gather what the hosts kept for themselves, and say in the manifest what is here and what is not."""
    from actors.actor_group import living_hosts
    from actors.gathering import gather

    living = {known_as: identifier for identifier, known_as in living_hosts().items()}
    sources: dict[int, tuple[str, str]] = {}
    for number, folder in cluster.scratch.items():
        host = cluster.hosts[number]
        identifier = living.get((host.name, host.address))
        if identifier is not None:
            sources[number] = (identifier, folder)
    ends = gather(sources, run_folder.journal_place, progress)
    cluster_said = run_folder.manifest["cluster"]
    _note(cluster_said["hosts"], ends)
    run_folder.write_manifest(
        cluster=cluster_said, journals_missing=_needed(cluster_said["hosts"], frozenset(deployment.scripts))
    )


def gather_again(folder: Path, address: str, progress: Progress) -> dict[str, str]:
    """Gather from hosts of the cluster that were away when the run ended; which are still missing, and why."""
    run_folder = RunFolder.of(folder)
    said = run_folder.manifest.get("cluster")
    if said is None:
        raise InputError(str(folder), "a run that was not played on a cluster", "one with journals on other hosts")
    from actors.gathering import gather
    from actors.joining import hosts_at
    from actors.ray_session import ray_session

    there = {(each.name, each.address): each.identifier for each in hosts_at(address, folder)}
    sources = {
        number: (there[host["name"], host["address"]], host["scratch"])
        for number, host in enumerate(said["hosts"])
        if _is_missing(host) and (host["name"], host["address"]) in there
    }
    with ray_session(1, address):
        _note(said["hosts"], gather(sources, run_folder.journal_place, progress))
    needed = [name for name in run_folder.manifest["journals_missing"] if name in _nodes_missing(said["hosts"])]
    run_folder.write_manifest(cluster=said, journals_missing=needed)
    return missing_journals(run_folder.manifest)


def missing_journals(manifest: Mapping[str, Any]) -> dict[str, str]:
    """The hosts whose journals are not with the others, and why."""
    hosts = manifest.get("cluster", {}).get("hosts", [])
    return {each["name"]: each["gathered"]["failure"] for each in hosts if _is_missing(each)}


def _note(hosts: list[dict[str, Any]], ends: "Mapping[int, Gathered]") -> None:
    for number, host in enumerate(hosts):
        if number in ends:
            host["gathered"] = asdict(ends[number])
        elif host["scratch"] is not None and host["gathered"] is None:
            host["gathered"] = {"files": 0, "failure": "it is not there"}


def _is_missing(host: Mapping[str, Any]) -> bool:
    return host["gathered"] is not None and host["gathered"]["failure"] is not None


def _nodes_missing(hosts: list[dict[str, Any]]) -> list[str]:
    return [name for host in hosts if _is_missing(host) for name in host["brokers"]]


def _needed(hosts: list[dict[str, Any]], scripted: frozenset[str]) -> list[str]:
    """The nodes without a journal of which the verdict depends: those that publish or deliver themselves."""
    return [name for name in _nodes_missing(hosts) if name in scripted]
