"""Criteria for what the text and its evaluation say of conditions and of policies, beside the delivery rates."""

from collections.abc import Callable, Mapping

from murmuration.papers.epidemic.seeded_runs import Compared, SeededRuns
from murmuration.papers.epidemic.settings import PULLS
from murmuration.papers.lab.results import PaperResult
from reliability.epidemic.parameters import Algorithm

_ALIKE = 0.01
"""Delivery rates closer than this are the same."""


def judge_claims(
    result: PaperResult, compared: Mapping[str, Compared], reconfigured: Mapping[Algorithm, SeededRuns]
) -> None:
    """All of them."""
    _judge_reconfiguration(result, compared["overlapping"], reconfigured)
    _judge_few_events(result, compared["load"])
    _judge_interval(result, compared["adaptive"])
    _judge_forwarding(result, compared["p_forward"], compared["p_forward_large"])
    _judge_policies(result, compared["policies"])
    _judge_control(result, compared["control"])


def _judge_reconfiguration(result: PaperResult, overlapping: Compared, apart: Mapping[Algorithm, SeededRuns]) -> None:
    best: tuple[Algorithm, ...] = ("push", "combined-pull")
    for algorithm in best:
        found = overlapping["none", algorithm]
        result.judge(
            f"{algorithm}, reconfigurations that overlap", "above 0.9 (remembered of lossy links)", f"{found.rate:.3f}",
            found.rate > 0.9, f"no recovery {overlapping['none', 'none'].rate:.3f}",
        )  # fmt: skip
    traffic: tuple[tuple[str, Callable[[SeededRuns], float]], ...] = (
        ("messages for each event message", lambda each: each.gossip_per_event),
        ("bytes for each byte of event messages", lambda each: each.gossip_bytes_per_event_byte),
    )
    for what, cost in traffic:
        costs = {algorithm: cost(apart[algorithm]) for algorithm in PULLS}
        push = cost(apart["push"])
        result.judge(
            f"a link breaks every 0.2 s: gossip {what}", f"every pull below push, {push:.2f} (section 5)",
            _listed(costs), max(costs.values()) < push,
        )  # fmt: skip


def _judge_few_events(result: PaperResult, load: Compared) -> None:
    """Section 2.2: a process may not realize that it missed a message until the next one is received."""
    push = load["5 a second", "push"]
    rates = {algorithm: load["5 a second", algorithm].rate for algorithm in PULLS}
    delays = {algorithm: load["5 a second", algorithm].delay_ms for algorithm in PULLS}
    result.judge(
        "5 events/s: delivery rate of push", "at least every pull's (section 2.2)", f"{push.rate:.3f}",
        push.rate >= max(rates.values()), _listed(rates, 3),
    )  # fmt: skip
    result.judge(
        "5 events/s: mean delay of push", "below every pull's (section 2.2)", f"{push.delay_ms:.0f} ms",
        push.delay_ms < min(delays.values()), f"{_listed(delays, 0)} ms",
    )  # fmt: skip


def _judge_interval(result: PaperResult, adaptive: Compared) -> None:
    fixed, adapts = adaptive["loss 0, fixed", "push"], adaptive["loss 0, adaptive", "push"]
    result.judge(
        "adaptive interval, no losses: gossip of push",
        f"less than the fixed interval's {fixed.gossip_per_event:.3f} (section 5)", f"{adapts.gossip_per_event:.3f}",
        adapts.gossip_per_event < fixed.gossip_per_event, "gossip messages for each event message",
    )  # fmt: skip
    for algorithm in dict.fromkeys(algorithm for _, algorithm in adaptive):
        before, after = adaptive["loss 0.1, fixed", algorithm].rate, adaptive["loss 0.1, adaptive", algorithm].rate
        result.judge(
            f"adaptive interval, loss 0.1: {algorithm}", f"as at the fixed interval, {before:.3f}", f"{after:.3f}",
            after > before - _ALIKE, f"at most {_ALIKE:g} below; the bound is ours",
        )  # fmt: skip


def _judge_forwarding(result: PaperResult, p_forward: Compared, large: Compared) -> None:
    """Of an earlier simulation for this project: decisive for push, nearly irrelevant for pulls."""
    rate = large["0.5", "push"].rate
    result.judge(
        "Pforward 0.5, 100 dispatchers: push",
        f"well below 0.9's {large['0.9', 'push'].rate:.3f} (0.68 in a simulation)",
        f"{rate:.3f}", rate < large["0.9", "push"].rate - 10 * _ALIKE, "the bound, 0.1, is ours",
    )  # fmt: skip
    gains = {
        algorithm: p_forward["1", algorithm].rate - p_forward["0.5", algorithm].rate
        for algorithm in PULLS
        if ("1", algorithm) in p_forward
    }
    result.judge(
        "Pforward 1 instead of 0.5: pulls", f"change by less than {_ALIKE:g} (nearly irrelevant in that simulation)",
        _signed(gains), max(map(abs, gains.values())) < _ALIKE,
    )  # fmt: skip


def _judge_policies(result: PaperResult, policies: Compared) -> None:
    """Section 5: more refined policies for discarding improve the trade of buffer against interval."""
    algorithms = list(dict.fromkeys(algorithm for _, algorithm in policies))

    def judge(name: str, paper: str, better: str, worse: str) -> None:
        gains = {each: policies[better, each].rate - policies[worse, each].rate for each in algorithms}
        met = max(gains.values()) > _ALIKE and min(gains.values()) > -_ALIKE
        result.judge(name, paper, _signed(gains), met, f"for one algorithm by more than {_ALIKE:g}; the bound is ours")

    judge(
        "kept everywhere: first what is neither published nor subscribed here, not the oldest", "better (section 5)",
        "everywhere, uninterested", "everywhere, oldest",
    )  # fmt: skip
    judge("discarded at random, not the oldest", "better (section 5)", "interested, random", "interested, oldest")


def _judge_control(result: PaperResult, control: Compared) -> None:
    combined = control["overhead", "combined-pull"]
    for label in ("interval", "interval, Pforward"):
        found = control[label, "random-pull"]
        result.judge(
            f"random-pull, loss 0.1, equal {label}",
            f"clearly below combined-pull, {combined.rate:.3f} (remembered)",
            f"{found.rate:.3f}", found.rate < combined.rate - 2 * _ALIKE,
            f"{found.gossip_per_event:.2f} gossip messages an event message, combined {combined.gossip_per_event:.2f}",
        )  # fmt: skip


def _listed(values: Mapping[Algorithm, float], digits: int = 2) -> str:
    return ", ".join(f"{algorithm} {value:.{digits}f}" for algorithm, value in values.items())


def _signed(changes: Mapping[Algorithm, float]) -> str:
    return ", ".join(f"{algorithm} {change:+.3f}" for algorithm, change in changes.items())
