"""The key `churn` of a scenario carried out: from a trace, or the generator, to starts and kills of named nodes."""

from pathlib import Path

from murmur_pubsub.errors import InputError
from murmur_pubsub.faults import FaultTargets
from murmur_pubsub.machine import NodeName
from murmuration.scenario.schema import ChurnSection
from workloads.churn.generator import GeneratedChurn, generate
from workloads.churn.plan import ChurnPlan, churn_plan
from workloads.churn.sessions import DAY_S, Availability, select
from workloads.churn.trace_file import SKYPE_WINDOW_S, mend_outages, read_trace

_SKYPE_END_S, _SKYPE_NODES = 2_478_200, 2_081


def read_availability(path: Path, keep_outages: bool = False) -> Availability:
    """The trace, with the outages of its prober mended unless they are to be kept; of the Skype superpeer trace the 25
    days that are good."""
    whole = read_trace(path)
    mended = whole if keep_outages else mend_outages(whole)
    is_skype = (whole.end_s, len(whole.sessions)) == (_SKYPE_END_S, _SKYPE_NODES)
    return mended.window(*SKYPE_WINDOW_S) if is_skype else mended


def plan_churn(churn: ChurnSection, targets: FaultTargets, seed: int, awaited: frozenset[NodeName]) -> ChurnPlan:
    """Which nodes start and die when; the `awaited` are there until the run begins to publish. Raises
    `InputError` for a trace that cannot be read or has too few nodes."""
    if isinstance(churn.who, list):
        names = churn.who
        for name in names:
            if name not in targets.nodes:
                raise InputError("churn.who", repr(name), "nodes of the run, or clients, or brokers")
    else:
        names = [name for name in targets.nodes if (name in targets.brokers) == (churn.who == "brokers")]
    if not names:
        raise InputError(
            "churn.who", f"{churn.who}, of which there are none", "nodes of the run, or clients, or brokers"
        )
    if churn.trace is None:
        source = generate(GeneratedChurn(len(names), churn.days, churn.scale), seed)
    else:
        source = read_availability(churn.trace, churn.keep_outages)
    if churn.window is not None:
        begin_s, end_s = (source.begin_s + int(DAY_S * day) for day in churn.window)
        source = source.window(begin_s, end_s)
    chosen = select(source, len(names), churn.select, seed)
    return churn_plan(chosen, names, churn.speed, churn.shortest).begun_at(churn.begin, awaited)
