"""The page of the bench: what its means are means of."""

import pandas as pd

from murmuration.bench.page import overview


def cell(workload: str, seed: int, messages: float) -> dict[str, object]:
    """One row of the table, of one system that nothing befalls."""
    return {
        "routing": "irbr", "reliability": "epidemic", "workload": workload, "fault": "none", "seed": seed,
        "delivery_rate": 1.0, "rate_present": 1.0, "messages": messages, "event_messages": messages, "hops": 3.0,
        "overhead": 0.5, "delay_p50_us": 1_000.0, "delay_p99_us": 2_000.0, "recovery_us": None,
    }  # fmt: skip


def test_each_workload_counts_once_where_only_some_have_a_second_seed() -> None:
    table = pd.DataFrame([cell("uniform", 1, 10.0), cell("uniform", 2, 20.0), cell("social", 1, 45.0)])
    shown = overview(table)
    (row,) = shown.rows
    at = next(number for number, (title, _) in enumerate(shown.titles) if title == "all messages")
    assert row[0] == "irbr/epidemic"
    assert row[1][at] == "30", "the mean of 15 and 45"
