"""The counts of a live run as metrics for Prometheus, served while it goes on.

The driver asks each node how it is, ten times a second in a small run; what it was told last is what a scrape gets, so
that a scrape asks nothing of the nodes. A counter begins again with each incarnation of its node, as Prometheus expects
of a process that was restarted.
"""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from murmur_pubsub.errors import InputError
from murmuration.live.server import LOOPBACK
from murmuration.scenario.schema import Scenario

COUNTERS = {
    "published": "Events published by the node.",
    "delivered": "Deliveries to subscribers of the node.",
    "sent": "Messages put on links, duplicates of the link model included.",
    "received": "Messages taken from links.",
    "dropped": "Messages that will not reach their peers: lost by the link, overflowed, or on a link that broke.",
    "malformed": "What came from peers and was no message.",
    "refused": "Connections that were refused.",
}
"""Each is a count that a node keeps, since its process began."""
GAUGES = {
    "queued": "Messages that wait in the node for its links: delayed by the link model, or not taken by the peer.",
    "incarnation": "How often the node was started again.",
}


class RunMetrics(Collector):
    """What the nodes of a run said last, for a scrape. A node out of service has only `murmur_up`, which is 0."""

    def __init__(self, scenario: Scenario) -> None:
        protocols = {"routing": scenario.broker.routing, "reliability": scenario.broker.reliability}
        self._run = {"scenario": scenario.name, "seed": str(scenario.seed), **protocols}
        self._lock = threading.Lock()
        self._seen: dict[str, None] = {}
        self._statuses: Mapping[str, Mapping[str, Any]] = {}

    def hear(self, statuses: Mapping[str, Mapping[str, Any]]) -> None:
        """Take what the nodes in service say of themselves (`actors.resident.Resident.status`)."""
        with self._lock:
            self._statuses = statuses
            self._seen.update(dict.fromkeys(statuses))

    def collect(self) -> Iterator[Metric]:
        with self._lock:
            statuses, seen = self._statuses, list(self._seen)
        yield InfoMetricFamily("murmur_run", "The run.", self._run)
        up = GaugeMetricFamily("murmur_up", "Is the node in service?", labels=["node"])
        for name in seen:
            up.add_metric([name], name in statuses)
        yield up
        for key, words in COUNTERS.items():
            yield _of_nodes(CounterMetricFamily(f"murmur_{key}", words, labels=["node"]), statuses, key)
        for key, words in GAUGES.items():
            yield _of_nodes(GaugeMetricFamily(f"murmur_{key}", words, labels=["node"]), statuses, key)
        cpu = CounterMetricFamily("murmur_cpu_seconds", "Processor time of the node's process.", labels=["node"])
        yield _of_nodes(cpu, statuses, "cpu_us", 1e-6)
        lag = "How far the node fell behind emulated time at most, in seconds of it."
        yield _of_nodes(GaugeMetricFamily("murmur_lag_seconds_max", lag, labels=["node"]), statuses, "lag_us_max", 1e-6)
        links = GaugeMetricFamily("murmur_links", "Links of the node that are up.", labels=["node"])
        for name, status in statuses.items():
            links.add_metric([name], len(status["links"]))
        yield links


def _of_nodes(
    family: CounterMetricFamily | GaugeMetricFamily,
    statuses: Mapping[str, Mapping[str, Any]],
    key: str,
    unit: float = 1,
) -> Metric:
    for name, status in statuses.items():
        family.add_metric([name], status[key] * unit)
    return family


@contextmanager
def serving_metrics(address: str, scenario: Scenario) -> Iterator[RunMetrics]:
    """Serve the metrics at [HOST:]PORT (host: the loopback address) for the length of the block. Raises `InputError`
    for a run that is not live, and for an address that is none or cannot be had."""
    place = f"--metrics {address}"
    if scenario.runtime != "ray":
        raise InputError(place, f"a {scenario.runtime} run", "a live one (runtime: ray); a virtual run has its report")
    host, _, port = address.rpartition(":")
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise InputError("--metrics", repr(address), "PORT or HOST:PORT, such as 9300")
    metrics, registry = RunMetrics(scenario), CollectorRegistry()
    registry.register(metrics)
    try:
        server, thread = start_http_server(int(port), host or LOOPBACK, registry)
    except OSError as error:
        raise InputError(place, str(error.strerror or error), "a free port of an address of this host") from None
    try:
        yield metrics
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
