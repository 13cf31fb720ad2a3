"""The generator judged by days that it was not fitted to."""

from collections.abc import Sequence

from murmur_pubsub.errors import InputError
from workloads.churn.fit import fit
from workloads.churn.generator import GeneratedChurn, generate
from workloads.churn.sessions import DAY_S, Availability


def held_out(
    trace: Availability, fit_days: float, seeds: Sequence[int]
) -> tuple[list[Availability], list[Availability]]:
    """The tables are fitted to the trace's first days alone, and generate as many days as the trace has. Returned are
    the first days, and those that follow: of the trace, then of each seed. Raises `InputError` for too few days of
    either."""
    days = (trace.end_s - trace.begin_s) / DAY_S
    if not 0 < fit_days <= days - 1:
        raise InputError("--fit-days", f"{fit_days:g}", f"a day less than the {days:.1f} of the trace, or fewer")
    parted_s = trace.begin_s + int(fit_days * DAY_S)
    first = trace.window(trace.begin_s, parted_s)
    tables = fit(first)
    births = sum(tables.births)
    nodes = round(len(first.seen.sessions) * (1 + births * days) / (1 + births * fit_days))
    wanted = GeneratedChurn(nodes, days, begin_s=trace.begin_s, tables=tables)
    whole = [trace, *(generate(wanted, seed) for seed in seeds)]
    return (
        [each.window(trace.begin_s, parted_s) for each in whole],
        [each.window(parted_s, trace.end_s) for each in whole],
    )
