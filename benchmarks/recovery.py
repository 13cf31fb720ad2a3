"""How long S0 takes to be of use again after a kill: 20 kills of the brokers of a small live overlay, in turn.

Each broker of a chain is killed and started again, while clients at all brokers publish and subscribe. Measured from
the order to restart: until the new process is seen to be there, and until a client of that broker is delivered the
first event that another broker's client published.
"""

import tempfile
from pathlib import Path

import numpy as np

from actors.ray_session import ray_session
from actors.run import LiveRun
from benchmarks.table import print_table
from murmur_pubsub.deployment import Deployment
from murmur_pubsub.faults import FaultKind
from murmur_pubsub.journal import FaultStage, RowKind
from murmur_pubsub.journal_rows import read_segment
from murmuration.deployment.build_deployment import build
from murmuration.scenario.load import check_scenario

BROKERS = 5
KILLS = 20
_EVERY_MS = 3_000
_OUTAGE_MS = 800


def deployment() -> Deployment:
    """A chain of brokers with a client each; one kill every three seconds."""
    loaded = check_scenario(
        {
            "name": "recovery",
            "overlay": {"kind": "chain", "brokers": BROKERS},
            "workload": {
                "kind": "zipf", "clients": BROKERS, "subscribers_per_actor": 4, "publishers": BROKERS,
                "publications": 200 * (KILLS * _EVERY_MS // 1000 + 2), "rate_per_s": 200, "attributes": 3,
                "predicates": 1, "matching_rate": 0.5,
            },
            "failure_detection": {"heartbeat": "500 ms", "timeout": "2 s", "reconnect": "50 ms"},
            "faults": [
                {"at": f"{1000 + number * _EVERY_MS} ms", "kill": f"b{number % BROKERS}", "for": f"{_OUTAGE_MS} ms"}
                for number in range(KILLS)
            ],
        },
        "benchmark",
    )  # fmt: skip
    return build(loaded).deployment


def measure() -> tuple[list[float], list[float]]:
    """Milliseconds from the order of each restart to the process being there, and to the first delivery."""
    plan = deployment()
    with tempfile.TemporaryDirectory() as folder, ray_session(2 * BROKERS) as session:
        (Path(folder) / "journal").mkdir()
        LiveRun(plan, Path(folder), lambda *_: None, "127.0.0.1", session).play()
        rows = np.concatenate([read_segment(path)[1] for path in sorted(Path(folder, "journal").glob("*.seg"))])
    numbers = plan.numbers
    home = {numbers[spec.name]: numbers[spec.broker] for spec in plan.nodes if spec.broker is not None}
    published = rows[rows["kind"] == RowKind.PUBLISH]
    publisher_at = {int(row["source"]): home[int(row["node"])] for row in published}
    delivered = rows[rows["kind"] == RowKind.DELIVER]
    delivered = delivered[np.argsort(delivered["time_us"], kind="stable")]
    there, useful = [], []
    faults = rows[(rows["kind"] == RowKind.FAULT) & (rows["value"] == FaultKind.RESTART)]
    for ordered in faults[faults["hops"] == FaultStage.ORDERED]:
        (effect,) = faults[(faults["sequence"] == ordered["sequence"]) & (faults["hops"] == FaultStage.IN_EFFECT)]
        there.append((effect["time_us"] - ordered["time_us"]) / 1e3)
        for row in delivered[delivered["time_us"] > ordered["time_us"]]:
            broker = home[int(row["node"])]
            if broker == ordered["node"] and publisher_at[int(row["source"])] != broker:
                useful.append((row["time_us"] - ordered["time_us"]) / 1e3)
                break
    return there, useful


def main() -> None:
    """Print the table."""
    there, useful = measure()
    rows = [
        (what, len(times), *(f"{np.percentile(times, share):,.0f}" for share in (50, 90, 99)), f"{max(times):,.0f}")
        for what, times in (("process is there", there), ("first event delivered", useful))
    ]
    print_table(
        f"S0 after a kill, from the order to restart (ms): {BROKERS} brokers in a chain, live",
        ("", "kills", "p50", "p90", "p99", "most"),
        rows,
    )


if __name__ == "__main__":
    main()
