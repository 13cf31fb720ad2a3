"""Structured overlays on live actors: they join by datagrams, and survive a real kill."""

from pathlib import Path

import pytest

from murmuration.runs.driver import execute
from murmuration.scenario.load import load_scenario
from spark_analysis.plain_judge import judge_plainly

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("live_ray")]
CHANGES = [
    "overlay.brokers=8", "overlay.probe=1 s", "overlay.probe_timeout=400 ms", "workload.clients=8",
    "workload.publishers=4", "workload.publications=400", "workload.rate_per_s=50", "workload.matching_rate=0.3",
    "drain.quiet=300 ms",
]  # fmt: skip


@pytest.mark.parametrize(
    "routing", ["irbr", *(pytest.param(each, marks=pytest.mark.slow) for each in ("scribe", "rpf"))]
)
def test_live_and_virtual_structured_overlays_deliver_the_same(tmp_path: Path, routing: str) -> None:
    delivered = []
    for runtime in ("ray", "virtual"):
        changes = [*CHANGES, f"runtime={runtime}", f"broker.routing={routing}", "faults=[]"]
        run = execute(load_scenario(Path("irbr"), changes), tmp_path / runtime, lambda *_: None)
        verdict = judge_plainly(run.folder / "journal", 1_000_000)
        assert verdict.counts[:3] == (0, 0, 0)
        assert verdict.required > 300
        delivered.append(verdict.delivered)
    assert delivered[0] == delivered[1]


@pytest.mark.slow
def test_a_live_overlay_delivers_again_after_a_broker_was_killed(tmp_path: Path) -> None:
    """What is lost was published in the seconds until the probes have found the kill and tables are repaired."""
    loaded = load_scenario(Path("irbr"), [*CHANGES, "runtime=ray", "faults=[{at: 2 s, kill: b3}]"])
    run = execute(loaded, tmp_path / "live", lambda *_: None)
    verdict = judge_plainly(run.folder / "journal", 1_000_000)
    survivors = [pair for pair in verdict.missing if pair[1] not in subscribers_of(run.folder, "b3")]
    assert not verdict.duplicate
    assert not verdict.spurious
    late = [event for event, _ in survivors if event[1] > 85]  # of about a hundred each: the last second and a half
    assert not late, f"{len(survivors)} pairs of survivors are missing"


def subscribers_of(folder: Path, broker: str) -> set[int]:
    """The subscribers whose broker this is, by the journal."""
    import json

    from murmur_pubsub.journal import SideKind, read_side

    names = [node["name"] for node in json.loads((folder / "manifest.json").read_text())["nodes"]]
    found = set()
    for path in (folder / "journal").glob("*.blob"):
        for kind, fields in read_side(path):
            if kind is SideKind.SUBSCRIBE and names[fields[1]] == broker:
                found.add(fields[2])
    return found
