"""The tables of docs/bench.md, from the table.csv of `murmur bench`: `python -m benchmarks.bench_tables FILE`.

Each entry has a value for each workload, the mean over seeds, as Markdown.
"""

import sys
from collections.abc import Mapping

import pandas as pd

from murmuration.bench.matrix import WORKLOADS


def of_all(table: pd.DataFrame, fault: str, column: str, factor: float = 1.0) -> dict[str, str]:
    """By system the column's means under that fault, one for each workload of the table."""
    rows = table[table["fault"] == fault]
    means = rows.groupby(["system", "workload"], sort=False)[column].mean().unstack() * factor
    workloads = [each for each in WORKLOADS if each in means.columns]
    return {
        str(system): " / ".join(_short(each) for each in values)
        for system, values in zip(means.index, means[workloads].to_numpy(), strict=True)
    }


def _short(value: float) -> str:
    if pd.isna(value):
        return "-"
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"


def print_markdown(columns: Mapping[str, Mapping[str, str]]) -> None:
    """Print a row for each system."""
    print("| system | " + " | ".join(columns) + " |")
    print("| --- |" + " ---: |" * len(columns))
    systems = dict.fromkeys(system for values in columns.values() for system in values)
    for system in systems:
        print(f"| {system} | " + " | ".join(values.get(system, "") for values in columns.values()) + " |")
    print()


def main() -> None:
    """Print what is delivered under faults, and what it costs without any."""
    table = pd.read_csv(sys.argv[1])
    table["system"] = table["routing"] + "/" + table["reliability"]
    print_markdown(
        {
            "loss": of_all(table, "loss", "delivery_rate", 100),
            "killed, of present": of_all(table, "killed", "rate_present", 100),
            "skype, of present": of_all(table, "skype", "rate_present", 100),
        }
    )
    print_markdown(
        {
            "hops": of_all(table, "none", "hops"),
            "overhead, %": of_all(table, "none", "overhead", 100),
            "messages with it": of_all(table, "none", "event_messages"),
            "all messages": of_all(table, "none", "messages"),
        }
    )


if __name__ == "__main__":
    main()
