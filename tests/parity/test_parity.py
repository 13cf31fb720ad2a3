"""One scenario on both runtimes: the same pairs of event and subscriber are delivered, live and in virtual time."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from actors.ray_session import RaySession
from actors.run import LiveRun
from murmur_pubsub.deployment import Deployment
from murmur_pubsub.event import Event
from murmur_pubsub.journal import RowKind
from murmur_pubsub.journal_rows import read_segment
from murmur_pubsub.machine import Effect
from murmur_pubsub.protocol_error import ProtocolError
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


def test_an_actor_that_dies_is_a_fault_that_was_seen_and_the_run_goes_on(live_ray: RaySession, tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    run = LiveRun(small_deployment(), tmp_path, lambda *_: None, "127.0.0.1", live_ray)

    def kill_when_publishing(step: str, done: int, total: int) -> None:
        if step == "publishing" and done > 10 and "b1" not in run.group.down:
            run.group.kill("b1")

    asked: list[tuple[str, list[str]]] = []
    ask, tell = run.group.ask, run.group.tell

    def listen(what: str, nodes: Sequence[str] | None = None, *more: Any, **named: Any) -> Any:
        asked.append((what, sorted(run.group.in_service if nodes is None else nodes)))
        return ask(what, nodes, *more, **named)

    def listen_to_call(what: str, *arguments: Any, **named: Any) -> None:
        asked.append((what, sorted(run.group.in_service)))
        tell(what, *arguments, **named)

    run.group.ask = listen  # type: ignore[assignment]
    run.group.tell = listen_to_call  # type: ignore[method-assign]
    run._progress = kill_when_publishing
    run.play()
    begun, published = (next(each for each in asked if each[0] == method) for method in ("begin", "publish"))
    assert asked.index(begun) < asked.index(published)
    assert begun[1] == ["b0", "b1", "c0", "c1"], "all nodes are ready before the first event"
    assert [(step, str(fault)) for step, fault in run.observed.items()] == [(0, "kill b1")]
    assert list(run.group.down) == ["b1"], "nobody starts it again"
    rows = [read_segment(path)[1] for path in sorted((tmp_path / "journal").glob("*.seg"))]
    kinds = {int(kind) for each in rows for kind in each["kind"]}
    assert {RowKind.START, RowKind.DELIVER, RowKind.PUBLISH, RowKind.STOP, RowKind.FAULT} <= kinds


def test_a_machine_that_raises_ends_the_run_as_it_does_in_virtual_time(tmp_path: Path) -> None:
    changes = ["broker.reliability=tests.parity.test_parity:Raising", *CHANGES]
    for runtime in ("ray", "virtual"):
        folder = tmp_path / runtime
        with pytest.raises(ProtocolError) as caught:
            execute(load_scenario(Path("parity"), [*changes, f"runtime={runtime}"]), folder, lambda *_: None)
        error = caught.value
        assert (error.what, error.incarnation) == ("raised ValueError: a planted mistake", 0)
        assert re.search(r"test_parity\.py:\d+, in Raising\.publish", error.place or "")
        assert error.input.startswith("Received(source='c")
        again = (
            f"murmur run {folder}/scenario.yaml --keep-inputs --out {folder}-again, then murmur replay {folder}-again"
        )
        assert f"{again} --node {error.node} --incarnation 0" in str(error)
        assert '"status": "interrupted"' in (folder / "manifest.json").read_text()


class Raising(BestEffort):
    """A reliability part that fails at its fifth event."""

    count = 0

    def publish(self, event: Event, now_us: int) -> Sequence[Effect]:
        self.count += 1
        if self.count == 5:
            raise ValueError("a planted mistake")
        return super().publish(event, now_us)
