"""One run from scenario to run folder: build, play on either runtime, leave everything readable.

The run folder holds the manifest, the scenario and, if that does not go to a store, the journal. A run that ends early
(Ctrl-C, a full disk, an actor that died) is marked `interrupted` in the manifest; its journal can be analysed.
"""

import contextlib
import os
import platform
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil

from murmur_page.layout import layout_of, write_layout
from murmur_pubsub.deployment import Deployment
from murmur_pubsub.errors import InputError
from murmur_pubsub.journal import Phase
from murmur_pubsub.journal_store import is_uri, store_at
from murmur_pubsub.progress import PHASE_STEPS, Progress
from murmur_pubsub.run_manifest import DriverHost, Lateness, RunManifest
from murmuration.deployment.build_deployment import build
from murmuration.runs.gathering import gather_run, missing_journals
from murmuration.runs.hands import Hands
from murmuration.runs.joined_cluster import JoinedCluster, join
from murmuration.runs.manifest import manifest_of
from murmuration.runs.own_modules import check_actors_modules
from murmuration.runs.run_folder import RunFolder
from murmuration.scenario.load import LoadedScenario


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A run that has ended by itself."""

    folder: Path
    """The run folder."""
    workload: Mapping[str, float | int | str]
    """What was generated, for people."""
    manifest: RunManifest
    """What is known of it at its end."""
    missing_journals: Mapping[str, str]
    """The hosts whose journals are not with the others, and why."""


@dataclass(slots=True)
class RunCosts:
    """The time that a run took."""

    wall_seconds: dict[str, float] = field(default_factory=dict)
    """Of each phase."""
    cpu_seconds: dict[str, float] = field(default_factory=dict)
    """Of each phase, all nodes together."""


@dataclass(frozen=True, slots=True)
class _Ended:
    """What a runtime knows at the end of a run."""

    lateness: Lateness
    writers: Mapping[str, int]
    """How many incarnations each writer of the journal had."""
    emulated_us: int
    """How long the run was in emulated time."""


def execute(
    loaded: LoadedScenario,
    folder: Path,
    progress: Progress,
    address: str | None = None,
    store: str | None = None,
    watched: Callable[[Hands], None] | None = None,
    heard: Callable[[Mapping[str, Mapping[str, Any]]], None] | None = None,
) -> FinishedRun:
    """Play the scenario, on the Ray cluster at the address if there is one.

    The journal goes to the store at that URI, or stays in the run folder. `watched` is given the hands that may steer
    the run before it starts; `heard` is told, again and again in a live run, what each node in service says of itself.
    Raises `InputError` for a scenario that cannot be played, before anything starts.
    """
    scenario = loaded.scenario
    if store is not None:
        check_store(store)
    if scenario.runtime == "ray":
        check_actors_modules()
    cluster = None if address is None else join(loaded, address, folder, store)
    built = build(loaded, None if cluster is None else cluster.rooms)
    deployment, workload = built.deployment, built.workload
    if cluster is not None:
        cluster.check(deployment)
    elif scenario.runtime == "ray":
        from actors.room import check_room

        try:
            check_room(deployment)
        except InputError as error:
            raise loaded.error_at((error.place,), error.found, error.allowed) from None
    manifest = replace(
        manifest_of(loaded, built),
        journal=store,
        cluster=None if cluster is None else cluster.entry(deployment),
        host=_host(),
    )
    run_folder = RunFolder.make(folder, manifest)
    with run_folder.begun():
        run_folder.write_scenario(loaded.data)
        write_layout(folder, layout_of(deployment))
    costs = RunCosts()
    hands = Hands(loaded, deployment, run_folder)
    if watched is not None:
        watched(hands)
    ended = None
    try:
        expected = workload.expected_publications

        def tell(step: str, done: int, total: int) -> None:
            progress(step, done, expected if step == PHASE_STEPS[Phase.PUBLISHING] else total)

        if scenario.runtime == "ray":
            ended = _play_live(deployment, run_folder, tell, costs, cluster, hands, watched is not None, heard)
        else:
            ended = _play_virtual(deployment, run_folder, tell, costs, None if watched is None else hands)
    finally:
        run_folder.write(
            replace(
                run_folder.manifest,
                status="interrupted" if ended is None else "complete",
                writers=None if ended is None else ended.writers,
                lateness=Lateness() if ended is None else ended.lateness,
                emulated_us=None if ended is None else ended.emulated_us,
                wall_seconds=costs.wall_seconds,
                cpu_seconds=costs.cpu_seconds,
            )
        )
        if store is not None:
            run_folder.store_journal(progress)
    manifest = run_folder.manifest
    return FinishedRun(run_folder.folder, workload.description, manifest, missing_journals(manifest))


def check_store(store: str) -> None:
    """Raise `InputError` for what is no URI, cannot be written from here, or has a journal in it."""
    if not is_uri(store):
        raise InputError("--store", repr(store), "a URI, such as s3://bucket/runs/first (a folder: --out)")
    opened = store_at(store)
    opened.check_writable(f".murmur-{secrets.token_hex(8)}")
    if opened.sizes("seg"):
        raise InputError("--store", f"a journal that is already at {store}", "a new place")


def _play_live(
    deployment: Deployment,
    run_folder: RunFolder,
    progress: Progress,
    costs: RunCosts,
    cluster: JoinedCluster | None,
    hands: Hands,
    steered: bool,
    heard: Callable[[Mapping[str, Mapping[str, Any]]], None] | None,
) -> _Ended:
    from actors.ray_session import ray_session
    from actors.run import LiveRun

    began = time.perf_counter()
    actors = len(deployment.nodes)
    with contextlib.ExitStack() as stack:
        if cluster is None:
            hosts = 1 + max(deployment.hosts.values(), default=0)
            session = stack.enter_context(ray_session(actors, hosts=hosts))
        else:
            session = stack.enter_context(ray_session(actors, cluster.address, joined=cluster.hosts))
        costs.wall_seconds["ray"] = time.perf_counter() - began

        host, scratch = ("127.0.0.1", {}) if cluster is None else (None, cluster.scratch)
        folder, steering = run_folder.folder.resolve(), hands if steered else None
        run = LiveRun(deployment, folder, progress, host, session, scratch, steering, heard)
        hands.observed = run.observed
        try:
            run.play()
        finally:
            hands.enter_faults()
            if cluster is not None:
                gather_run(cluster, run_folder, deployment, progress)
            costs.wall_seconds |= run.wall_seconds
            costs.cpu_seconds |= run.cpu_seconds
        return _Ended(run.lateness, run.writers, run.emulated_us)


def _play_virtual(
    deployment: Deployment, run_folder: RunFolder, progress: Progress, costs: RunCosts, hands: Hands | None
) -> _Ended:
    from murmur_virtual.run import play_virtual

    began, began_cpu = time.perf_counter(), time.process_time()
    try:
        run = play_virtual(deployment, run_folder.journal, progress, hands)
    finally:
        costs.wall_seconds["virtual"] = time.perf_counter() - began
        costs.cpu_seconds["virtual"] = time.process_time() - began_cpu
    return _Ended(Lateness(), run.writers, run.emulated_us)


def _host() -> DriverHost:
    memory = psutil.virtual_memory().total
    return DriverHost(os.cpu_count() or 1, memory, platform.python_version(), platform.system())
