"""The journals of a run that was played on several machines, brought to one place; again, when a machine is back."""

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
    """Gather what the machines kept for themselves, and say in the manifest what is here and what is not."""
    from actors.actor_group import living_machines
    from actors.gathering import gather

    living = {known_as: identifier for identifier, known_as in living_machines().items()}
    sources: dict[int, tuple[str, str]] = {}
    for number, folder in cluster.scratch.items():
        machine = cluster.machines[number]
        identifier = living.get((machine.name, machine.address))
        if identifier is not None:
            sources[number] = (identifier, folder)
    ends = gather(sources, run_folder.journal_place, progress)
    cluster_said = run_folder.manifest["cluster"]
    _note(cluster_said["machines"], ends)
    run_folder.write_manifest(
        cluster=cluster_said, journals_missing=_needed(cluster_said["machines"], frozenset(deployment.scripts))
    )


def gather_again(folder: Path, address: str, progress: Progress) -> dict[str, str]:
    """Gather from machines of the cluster that were away when the run ended; which are still missing, and why."""
    run_folder = RunFolder.of(folder)
    said = run_folder.manifest.get("cluster")
    if said is None:
        raise InputError(str(folder), "a run that was not played on a cluster", "one with journals on other machines")
    from actors.gathering import gather
    from actors.joining import machines_at
    from actors.ray_session import ray_session

    there = {(each.name, each.address): each.identifier for each in machines_at(address, folder)}
    sources = {
        number: (there[machine["name"], machine["address"]], machine["scratch"])
        for number, machine in enumerate(said["machines"])
        if _is_missing(machine) and (machine["name"], machine["address"]) in there
    }
    with ray_session(1, address):
        _note(said["machines"], gather(sources, run_folder.journal_place, progress))
    needed = [name for name in run_folder.manifest["journals_missing"] if name in _nodes_missing(said["machines"])]
    run_folder.write_manifest(cluster=said, journals_missing=needed)
    return missing_journals(run_folder.manifest)


def missing_journals(manifest: Mapping[str, Any]) -> dict[str, str]:
    """The machines whose journals are not with the others, and why."""
    machines = manifest.get("cluster", {}).get("machines", [])
    return {each["name"]: each["gathered"]["failure"] for each in machines if _is_missing(each)}


def _note(machines: list[dict[str, Any]], ends: "Mapping[int, Gathered]") -> None:
    for number, machine in enumerate(machines):
        if number in ends:
            machine["gathered"] = asdict(ends[number])
        elif machine["scratch"] is not None and machine["gathered"] is None:
            machine["gathered"] = {"files": 0, "failure": "it is not there"}


def _is_missing(machine: Mapping[str, Any]) -> bool:
    return machine["gathered"] is not None and machine["gathered"]["failure"] is not None


def _nodes_missing(machines: list[dict[str, Any]]) -> list[str]:
    return [name for machine in machines if _is_missing(machine) for name in machine["brokers"]]


def _needed(machines: list[dict[str, Any]], scripted: frozenset[str]) -> list[str]:
    """The nodes without a journal of which the verdict depends: those that publish or deliver themselves."""
    return [name for name in _nodes_missing(machines) if name in scripted]
