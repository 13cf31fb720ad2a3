"""One scenario on both runtimes: the same pairs of event and subscriber are delivered, live and in virtual time."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from actors.ray_session import RaySession
from actors.run import LiveRun
from murmur_pubsub.deployment import Deployment
from murmur_pubsub.errors import RunError
from murmur_pubsub.event import Event
from murmur_pubsub.journal import RowKind, read_segment
from murmur_pubsub.machine import Effect
from murmuration.deployment.build_deployment import build
from murmuration.runs.driver import execute
from murmuration.scenario.load import load_scenario
from reliability.best_effort import BestEffort
from spark_analysis.plain_judge import PlainVerdict, judge_plainly

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("live_ray")]
CHANGES = ["workload.publications=300", "overlay.brokers=5", "workload.clients=5"]


def outcome(folder: Path, *changes: str) -> PlainVerdict:
    run = execute(load_scenario(Path("parity"), [*CHANGES, *changes]), folder, lambda *_: None)
    return judge_plainly(run.folder / "journal", 1_000_000)


@pytest.mark.parametrize("routing", ["forwarding", pytest.param("flooding", marks=pytest.mark.slow)])
def test_both_runtimes_deliver_the_same(tmp_path: Path, routing: str) -> None:
    live = outcome(tmp_path / "live", "runtime=ray", f"broker.routing={routing}")
    virtual = outcome(tmp_path / "virtual", "runtime=virtual", f"broker.routing={routing}")
    assert live.counts == virtual.counts == (0, 0, 0, 0)
    assert len(live.delivered) == live.required > 1_000
    assert live.delivered == virtual.delivered


def small_deployment() -> Deployment:
    loaded = load_scenario(Path("parity"), ["overlay.brokers=2", "workload.clients=2", "workload.publishers=1"])
    return build(loaded).deployment


def test_an_actor_that_dies_ends_the_run_by_name_and_leaves_the_journal_readable(
    live_ray: RaySession, tmp_path: Path
) -> None:
    (tmp_path / "journal").mkdir()
    run = LiveRun(small_deployment(), tmp_path, lambda *_: None, "127.0.0.1", live_ray)

    def kill_when_publishing(step: str, done: int, total: int) -> None:
        if step == "publishing" and done > 10:
            run.group.kill("b1")

    run._progress = kill_when_publishing
    with pytest.raises(RunError, match="the actor of b1 died"):
        run.play()
    rows = [read_segment(path)[1] for path in sorted((tmp_path / "journal").glob("*.seg"))]
    kinds = {int(kind) for each in rows for kind in each["kind"]}
    assert {RowKind.START, RowKind.DELIVER, RowKind.PUBLISH} <= kinds


def test_a_machine_that_raises_ends_the_run_with_its_traceback(tmp_path: Path) -> None:
    changes = ["broker.reliability=tests.parity.test_parity:Raising", *CHANGES, "runtime=ray"]
    with pytest.raises(RunError, match=r"the machine of b\d failed(.|\n)*a planted mistake"):
        execute(load_scenario(Path("parity"), changes), tmp_path / "run", lambda *_: None)
    assert '"status": "interrupted"' in (tmp_path / "run" / "manifest.json").read_text()


class Raising(BestEffort):
    """A reliability part that fails at its fifth event."""

    count = 0

    def publish(self, event: Event, now_us: int) -> Sequence[Effect]:
        self.count += 1
        if self.count == 5:
            raise ValueError("a planted mistake")
        return super().publish(event, now_us)
