"""The journals of a run that was played on several hosts, brought to one place; again, when a host is back."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from murmur_pubsub.deployment import Deployment
from murmur_pubsub.errors import InputError
from murmur_pubsub.progress import Progress
from murmur_pubsub.run_manifest import ClusterEntry, Gathered, RunManifest
from murmuration.runs.joined_cluster import JoinedCluster
from murmuration.runs.run_folder import RunFolder


def gather_run(cluster: JoinedCluster, run_folder: RunFolder, deployment: Deployment, progress: Progress) -> None:
    """Gather what the hosts kept for themselves, and say in the manifest what is here and what is not."""
    from actors.gathering import gather
    from actors.processes import living_hosts

    living = {known_as: identifier for identifier, known_as in living_hosts().items()}
    sources: dict[int, tuple[str, str]] = {}
    for number, folder in cluster.scratch.items():
        host = cluster.hosts[number]
        identifier = living.get((host.name, host.address))
        if identifier is not None:
            sources[number] = (identifier, folder)
    entry = _with(cluster.entry(deployment), gather(sources, run_folder.journal_place, progress))
    missing = tuple(name for name in _nodes_missing(entry) if name in deployment.scripts)
    run_folder.write(replace(run_folder.manifest, cluster=entry, journals_missing=missing))


def gather_again(folder: Path, address: str, progress: Progress) -> dict[str, str]:
    """Gather from hosts of the cluster that were away when the run ended; the hosts still missing, and why."""
    run_folder = RunFolder.of(folder)
    manifest = run_folder.manifest
    if manifest.cluster is None:
        raise InputError(str(folder), "a run that was not played on a cluster", "one with journals on other hosts")
    from actors.gathering import gather
    from actors.joining import hosts_at
    from actors.ray_session import ray_session

    there = {(each.name, each.address): each.identifier for each in hosts_at(address, folder)}
    sources = {
        number: (there[host.name, host.address], host.scratch)
        for number, host in enumerate(manifest.cluster.hosts)
        if host.scratch is not None and host.failure is not None and (host.name, host.address) in there
    }
    with ray_session(1, address):
        entry = _with(manifest.cluster, gather(sources, run_folder.journal_place, progress))
    missing = tuple(name for name in manifest.journals_missing if name in _nodes_missing(entry))
    run_folder.write(replace(manifest, cluster=entry, journals_missing=missing))
    return missing_journals(run_folder.manifest)


def missing_journals(manifest: RunManifest) -> dict[str, str]:
    """The hosts whose journals are not with the others, and why."""
    hosts = () if manifest.cluster is None else manifest.cluster.hosts
    return {host.name: host.failure for host in hosts if host.failure is not None}


def _with(cluster: ClusterEntry, ends: Mapping[int, Gathered]) -> ClusterEntry:
    """The entry with the results of gathering, by the host's number. A host that has journals and was not reached has
    failed."""
    hosts = []
    for number, host in enumerate(cluster.hosts):
        gathered = ends.get(number, host.gathered)
        if gathered is None and host.scratch is not None:
            gathered = Gathered(0, "it is not there")
        hosts.append(replace(host, gathered=gathered))
    return replace(cluster, hosts=tuple(hosts))


def _nodes_missing(cluster: ClusterEntry) -> list[str]:
    return [name for host in cluster.hosts if host.failure is not None for name in host.brokers]
