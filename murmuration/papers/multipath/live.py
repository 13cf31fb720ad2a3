"""C1/DT1 of the multipath paper on 120 live brokers, beside the same plan in virtual time.

Both runtimes play the same scenario: soft links are learned for `warm_s` at the rate of the measurement, and what is
published after that counts. A publication that arrives over a link at a broker with a matching subscriber is a
delivery, at any other a pure forwarding, as in the runs of virtual time alone (`murmuration.papers.multipath.run`).
"""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from murmur_pubsub.journal import NONE, RowKind
from murmuration.papers.lab.judged_run import Runtime, journal, play_judged, publishing_from_us
from murmuration.papers.lab.results import Figure, PaperResult, ResultTable
from murmuration.papers.multipath import plots
from routing.multipath.parameters import STRATEGIES, Strategy

_RATE_PER_S = 60
_WARM_S = 100
_ROUND_US = 10_000_000


@dataclass(frozen=True, slots=True)
class LiveBrokersSpec:
    """What to run; `seconds` of publishing are measured."""

    runtime: Runtime
    strategy: Strategy
    brokers: int = 120
    seconds: int = 100
    warm_s: int = _WARM_S
    seed: int = 1


@dataclass(slots=True)
class LiveBrokers:
    """What came out. `hops`: deliveries by path length; `verdict`: the judge's counts, over the whole run; `lag_ms`: by
    how much an actor was behind at worst."""

    spec: LiveBrokersSpec
    deliveries: int
    pure_forwards: int
    hops: list[int]
    verdict: dict[str, int]
    lag_ms: float

    @property
    def system_yield(self) -> float:
        """Deliveries over all publications sent between brokers, in per cent."""
        return 100 * self.deliveries / max(1, self.deliveries + self.pure_forwards)

    @property
    def mean_hops(self) -> float:
        """Of the deliveries."""
        return sum(length * count for length, count in enumerate(self.hops)) / max(1, self.deliveries)

    @property
    def traffic_per_s(self) -> float:
        """Publications sent between brokers a second."""
        return (self.deliveries + self.pure_forwards) / self.spec.seconds


def live_scenario(spec: LiveBrokersSpec) -> dict[str, Any]:
    """The keys of the run."""
    parameters = {
        "strategy": spec.strategy, "fanout": 35, "maxlinks": 45, "round": f"{_ROUND_US} us",
        "load_exchange": f"{_ROUND_US // 2} us",
    }  # fmt: skip
    return {
        "name": f"multipath-{spec.strategy}",
        "seed": spec.seed,
        "runtime": spec.runtime,
        "overlay": {"kind": "balanced", "brokers": spec.brokers, "degree": 3},
        "workload": {
            "kind": "multipath", "dataset": "DT1", "rate_per_s": _RATE_PER_S,
            "publications": _RATE_PER_S * (spec.warm_s + spec.seconds),
        },
        "broker": {"routing": "multipath", "parameters": {"multipath": parameters}},
        "last_mile": "broker",
        "links": {"delay": "1 ms"},
        "datagrams": {"delay": "1 ms"},
        "drain": {"limit": "60 s"},
    }  # fmt: skip


def measure_live_brokers(spec: LiveBrokersSpec, address: str | None = None) -> LiveBrokers:
    """Play it, judge it, and count in its journal."""
    with tempfile.TemporaryDirectory() as place:
        finished, verdict = play_judged(live_scenario(spec), Path(place) / "run", address)
        rows = journal(finished.folder)
    counts = {name: int(verdict[name]) for name in ("required", "missing", "duplicate", "spurious")}
    arrivals = measured_arrivals(rows, spec.warm_s)
    wanted = arrivals[arrivals.matched]
    hops = wanted.groupby("hops").size().reindex(range(int(arrivals.hops.max()) + 1), fill_value=0)
    lag_ms = round(finished.manifest.lateness.worst_us / 1e3, 1)
    return LiveBrokers(spec, len(wanted), len(arrivals) - len(wanted), hops.tolist(), counts, lag_ms)


def measured_arrivals(rows: pd.DataFrame, warm_s: float) -> pd.DataFrame:
    """One row for each time that a publication came to a broker over a link, of those published `warm_s` after the
    first: hops, and whether somebody there wants it (`matched`)."""
    published = rows[(rows.kind == RowKind.PUBLISH) & (rows.time_us >= publishing_from_us(rows) + warm_s * 1e6)]
    event = ["source", "sequence"]
    arrived = rows[(rows.kind == RowKind.RECEIVE) & (rows.source != NONE)][[*event, "node", "hops"]]
    arrived = arrived.merge(published[event], on=event)
    delivered = rows[rows.kind == RowKind.DELIVER][[*event, "node"]].drop_duplicates()
    found = arrived.merge(delivered, on=[*event, "node"], how="left", indicator="matched")
    return found.assign(matched=found.matched == "both")


def add_live_brokers(result: PaperResult, runs: Mapping[LiveBrokersSpec, LiveBrokers], folder: Path) -> None:
    """The table, its figure and the criteria: live runs beside those in virtual time."""
    by = {(spec.runtime, spec.strategy): each for spec, each in runs.items()}
    rows: list[list[str | int | float]] = [
        [
            strategy, "live" if runtime == "ray" else "virtual", each.deliveries, each.pure_forwards,
            f"{each.system_yield:.1f} %", f"{each.mean_hops:.2f}", f"{each.traffic_per_s:,.0f}",
            f"{each.verdict['missing']} / {each.verdict['duplicate']} / {each.verdict['spurious']}",
            f"{each.lag_ms:,.0f}",
        ]
        for (runtime, strategy), each in sorted(by.items(), key=lambda item: (item[0][1], item[0][0] == "ray"))
    ]  # fmt: skip
    spec = next(iter(runs))
    figure = plots.live_path_lengths({key: each.hops for key, each in by.items()}, folder)
    result.tables.append(
        ResultTable(
            "live", f"Live and in virtual time: C1/DT1, {spec.brokers} brokers, {_RATE_PER_S} publications a second "
            f"for {spec.seconds} s after {spec.warm_s} s of learning, time not dilated",
            ("strategy", "runtime", "deliveries", "pure forwarders", "yield", "mean hops", "publications sent/s",
             "missing / duplicate / spurious", "worst lag ms"), rows,
            [Figure(figure, "Path lengths on live brokers and in virtual time")],
        )
    )  # fmt: skip
    live = {strategy: by["ray", strategy].system_yield for strategy in STRATEGIES}
    apart = max(abs(live[strategy] - by["virtual", strategy].system_yield) for strategy in STRATEGIES)
    ranked: list[Strategy] = sorted(STRATEGIES, key=live.__getitem__)
    # With uplinks that are never short SH is S2: which of the two comes out ahead is chance.
    ordered = live["S0"] < live["S1"] < min(live["S2"], live["SH"]) and live["S2"] <= live["SH"] + 1
    verdicts = [by["ray", strategy].verdict for strategy in STRATEGIES]
    wrong = sum(verdict[name] for verdict in verdicts for name in ("missing", "duplicate", "spurious"))
    required = sum(verdict["required"] for verdict in verdicts)
    result.judge("live: order of yields", "S0 < S1 < S2 <= SH", " < ".join(ranked), ordered, "S2 at most a point ahead")
    result.judge("live: yields apart from virtual time, points", "at most 5", round(apart, 2), apart <= 5)
    result.judge(
        "live: missing, duplicate and spurious deliveries", "0", wrong, wrong == 0 and required > 0,
        f"of {required:,} that had to be made",
    )  # fmt: skip
