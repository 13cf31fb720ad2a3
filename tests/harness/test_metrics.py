"""Metrics of live runs: what is scraped is what each node said, and the dashboard asks for nothing else."""

import json
import re
import socket
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from murmur_pubsub.errors import InputError
from murmur_pubsub.journal import RowKind
from murmur_pubsub.journal_rows import read_segment
from murmuration.live.metrics import RunMetrics, serving_metrics
from murmuration.runs.driver import execute
from murmuration.scenario.load import LoadedScenario, check_scenario

ROOT = Path(__file__).parents[2]
SCENARIO: dict[str, Any] = {
    "name": "counted",
    "runtime": "ray",
    "overlay": {"kind": "chain", "brokers": 3},
    "workload": {"kind": "zipf", "clients": 2, "publications": 400, "rate_per_s": 100, "matching_rate": 0.5},
    "links": {"delay": "2 ms", "loss": 0.05},
    "failure_detection": {"heartbeat": "150 ms", "timeout": "700 ms", "reconnect": "50 ms"},
    "faults": [{"at": "1 s", "kill": "b1", "for": "1 s"}],
}
STATUS: dict[str, Any] = {
    "published": 3, "delivered": 5, "sent": 7, "received": 11, "dropped": 13, "malformed": 0, "refused": 0, "queued": 2,
    "incarnation": 1, "cpu_us": 250_000, "lag_us_max": 1500, "links": [("b1", 0)],
}  # fmt: skip


def loaded(**changes: Any) -> LoadedScenario:
    return check_scenario({**SCENARIO, **changes}, "test")


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def scrape(port: int) -> dict[tuple[str, str], float]:
    """The samples by name and node."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    return {(each.name, each.labels.get("node", "")): each.value for family in families for each in family.samples}


def names_of(metrics: RunMetrics) -> Iterator[str]:
    registry = CollectorRegistry()
    registry.register(metrics)
    for family in registry.collect():
        yield from (sample.name for sample in family.samples)


def test_a_scrape_has_what_each_node_said_last(port: int) -> None:
    with serving_metrics(str(port), loaded().scenario) as metrics:
        metrics.hear({"b0": STATUS, "b1": STATUS})
        metrics.hear({"b0": {**STATUS, "published": 4}})
        found = scrape(port)
    assert found["murmur_published_total", "b0"] == 4
    assert found["murmur_cpu_seconds_total", "b0"] == 0.25
    assert found["murmur_lag_seconds_max", "b0"] == 0.0015
    assert found["murmur_links", "b0"] == 1
    assert (found["murmur_up", "b0"], found["murmur_up", "b1"]) == (1, 0)
    assert ("murmur_published_total", "b1") not in found, "a node that is down counts nothing"
    assert found["murmur_run_info", ""] == 1


@pytest.mark.parametrize("address", ["", "murmur", "127.0.0.1:", "0", "65536", ":x", "²"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(InputError, match="PORT or HOST:PORT"), serving_metrics(address, loaded().scenario):
        pass


def test_a_port_that_is_taken_is_refused(port: int) -> None:
    with serving_metrics(str(port), loaded().scenario), pytest.raises(InputError, match="in use"):  # noqa: SIM117
        with serving_metrics(f"127.0.0.1:{port}", loaded().scenario):
            pass


def test_a_virtual_run_has_no_metrics(port: int) -> None:
    scenario = loaded(runtime="virtual").scenario
    with pytest.raises(InputError, match="a live one"), serving_metrics(str(port), scenario):
        pass


def test_the_dashboard_and_the_page_name_the_metrics_that_there_are() -> None:
    metrics = RunMetrics(loaded().scenario)
    metrics.hear({"b0": STATUS})
    there = set(names_of(metrics))
    dashboard = (ROOT / "docs" / "examples" / "grafana-dashboard.json").read_text()
    asked = {
        name for panel in json.loads(dashboard)["panels"] for each in panel["targets"] for name in _named(each["expr"])
    }
    assert asked == there - {"murmur_run_info"}
    rows = [line for line in (ROOT / "docs" / "metrics.md").read_text().splitlines() if line.startswith("| `")]
    assert rows == [
        f"| `{family.samples[0].name}` | {', '.join(f'`{each}`' for each in family.samples[0].labels)} | "
        f"{family.documentation} |"
        for family in metrics.collect()
    ]


def _named(expression: str) -> list[str]:
    return re.findall(r"murmur_\w+", expression)


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.usefixtures("live_ray")
def test_the_endpoint_of_a_run_counts_what_its_journal_has(port: int, tmp_path: Path) -> None:
    scenario = loaded()
    with serving_metrics(str(port), scenario.scenario) as metrics:
        ups: list[float] = []

        def look(step: str, done: int, total: int) -> None:
            if step == "publishing":
                ups.append(scrape(port).get(("murmur_up", "b1"), 1))

        execute(scenario, tmp_path / "run", look, heard=metrics.hear)
        found = scrape(port)
    assert 0 in ups, "b1 was seen to be down"
    assert found["murmur_up", "b1"] == 1
    assert found["murmur_incarnation", "b1"] == 1
    rows: dict[int, int] = {}
    for path in (tmp_path / "run" / "journal").glob("*.seg"):
        for kind in (RowKind.PUBLISH, RowKind.DELIVER):
            rows[kind] = rows.get(kind, 0) + int((read_segment(path)[1]["kind"] == kind).sum())
    assert total(found, "murmur_published_total") == rows[RowKind.PUBLISH] == 400
    assert total(found, "murmur_delivered_total") == rows[RowKind.DELIVER] > 0
    assert total(found, "murmur_dropped_total") > 0


def total(found: dict[tuple[str, str], float], name: str) -> float:
    return sum(value for (each, _), value in found.items() if each == name)
