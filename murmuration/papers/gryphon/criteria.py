"""What the paper says of its failure tests, and whether that came out."""

from murmuration.papers.gryphon.plan import STALL_S, SUBSCRIBERS_AT, UNSENT_S
from murmuration.papers.gryphon.run import DELIVERY_COUNTS, FailureRun
from murmuration.papers.gryphon.throughput import BEHIND_B1, Throughput
from murmuration.papers.lab.results import PaperResult

_SHARE_OF_B1 = 2
"""Pubends whose traffic runs through b1 while it is well."""
_PUBENDS = 4


class _Judge:
    """Of one failure test; all hold at any size."""

    def __init__(self, result: PaperResult, seen: FailureRun) -> None:
        self._result, self._name = result, seen.test.name
        text = ", ".join(f"{seen.verdict[name]} {name}" for name in DELIVERY_COUNTS)
        self("deliveries", "exactly once", text, not any(seen.verdict.values()))

    def __call__(self, what: str, paper: str, measured: float | str, met: bool, note: str = "") -> None:
        self._result.judge(f"{self._name}: {what}", paper, measured, met, note, at_any_size=True)


def judge_link(result: PaperResult, seen: FailureRun) -> None:
    """Figure 6."""
    judge = _Judge(result, seen)
    nacked, worst_ms, beside_ms = seen.nacked("s1"), seen.worst_ms["s1"], seen.worst_ms["s2"]
    judge("s1 nacks, ticks", "after more than 2 s", nacked, nacked > 0)
    judge("worst latency at s1, ms", "2,500", worst_ms, 2_000 <= worst_ms <= 4_000, "2,000 to 4,000")
    judge("worst latency at s2, ms", "unaffected", beside_ms, beside_ms < worst_ms / 4, "below a quarter of s1's")


def judge_crash(result: PaperResult, seen: FailureRun) -> None:
    """Figure 7."""
    judge = _Judge(result, seen)
    lost_ms, nacked = _SHARE_OF_B1 * 1_000 * STALL_S, seen.nacked("s1")
    near = 0.7 * lost_ms <= nacked <= 1.3 * lost_ms
    judge("nack range of s1, ticks", "5,500", nacked, near, "two pubends' time of the stall, within 30 %")
    _consolidated(judge, seen)


def judge_noticed_crash(result: PaperResult, seen: FailureRun) -> None:
    """The crash once more, noticed as early as the stall of Figure 6."""
    judge = _Judge(result, seen)
    lost_ms, nacked = _SHARE_OF_B1 * seen.test.timeout, seen.nacked("s1")
    near = 0.7 * lost_ms <= nacked <= 1.3 * lost_ms
    judge("nack range of s1, ticks", "", nacked, near, "ours: two pubends' time until it is noticed, within 30 %")
    _consolidated(judge, seen)


def _consolidated(judge: _Judge, seen: FailureRun) -> None:
    asked = seen.nacked("s1") + seen.nacked("s2")
    ratio = seen.nacked("b2") / asked if asked else float("nan")
    judge("nack range b2 / (s1 + s2)", "about 0.5", ratio, ratio <= 0.6, "at most 0.6")


def judge_unsent(result: PaperResult, seen: FailureRun) -> None:
    """Figure 8."""
    judge = _Judge(result, seen)
    back_ms = _quiet_and_expecting(judge, seen)
    asked = {name: seen.nacked(name, back_ms) for name in SUBSCRIBERS_AT}
    near = all(abs(ticks - _unsent_ms(seen, name)) <= 0.1 * _unsent_ms(seen, name) for name, ticks in asked.items())
    text = ", ".join(f"{ticks:,}" for ticks in asked.values())
    judge("nack ranges of s1 to s5, ticks", "from s1 to s5", text, near, "four pubends' time unsent, within 10 %")
    teeth = [(sent_ms, late_ms) for sent_ms, late_ms in seen.latencies["s1"] if sent_ms < back_ms < sent_ms + late_ms]
    wanted = UNSENT_S * seen.test.rate_per_s
    judge("messages of one publisher that come after the return", "some", len(teeth), abs(len(teeth) - wanted) <= 2,
          f"{wanted:.0f} were logged and not sent, give or take 2")  # fmt: skip
    arrived = [sent_ms + late_ms for sent_ms, late_ms in teeth]
    burst_ms = max(arrived) - min(arrived) if arrived else float("nan")
    judge("they arrive within, ms", "partial saw-tooth", burst_ms, burst_ms <= 250, "one burst: a quarter of a second")


def _unsent_ms(seen: FailureRun, subscribers: str) -> float:
    """Of all pubends: from when their way to the broker was cut, which takes a live run a while for each link, until
    publishers stopped."""
    times = {what: at_ms for at_ms, what in seen.faults}
    ((stop_s, _),) = seen.test.pauses
    cell = ("b1", "b2") if subscribers in BEHIND_B1 else ("b3", "b4")
    return sum(_PUBENDS / len(cell) * (1_000 * stop_s - times[f"cut p1-{member}"]) for member in cell)


def judge_sent(result: PaperResult, seen: FailureRun) -> None:
    """What Figure 8 would be if p1 had sent all that it had logged: nobody asks for anything."""
    judge = _Judge(result, seen)
    back_ms = _quiet_and_expecting(judge, seen)
    nacked = sum(seen.nacked(name, back_ms) for name in SUBSCRIBERS_AT)
    judge("nacks after the return, ticks", "", nacked, nacked == 0, "ours: there is nothing to ask for")


def _quiet_and_expecting(judge: _Judge, seen: FailureRun) -> float:
    """Returns when p1 was back."""
    times = {what: at_ms for at_ms, what in seen.faults}
    down_ms, back_ms = times["kill p1"], times["restart p1"]
    nacked = sum(seen.nacked(name, down_ms, back_ms) for name in seen.nacks)
    judge("nacks while p1 is down, ticks", "0", nacked, nacked == 0)
    reminded_ms = seen.ack_expected_ms
    since_ms: float | str = "none" if reminded_ms is None else reminded_ms - back_ms
    judge("AckExpected after the return, ms", "yes", since_ms, reminded_ms is not None)
    before = seen.before_ack_expected
    judge(
        "messages of p1 about its streams before that", "it is first", before, reminded_ms is not None and before == 0
    )
    return back_ms


def judge_throughput(result: PaperResult, seen: FailureRun) -> None:
    """The conclusion's "sustain high throughput despite failures"; the figures are ours."""
    judge = _Judge(result, seen)
    rates = Throughput(seen)
    paper = "sustained"
    through = rates.through
    judge("deliveries from the stall to 5 s after the crash / before", paper, through, through >= 0.95, "at least 0.95")
    least = rates.least_untouched
    judge("s3 to s5: the worst second / before", "unaffected", least, least >= 0.9, "at least 0.9")
    stalled = rates.while_stalled
    judge("s1 and s2 while b1 is stalled / before", "b2 goes on", stalled, stalled >= 0.45, "two pubends of four: 0.5")
    least = rates.least_after
    judge("s1 and s2 from 1 s after the crash: the worst second / before", paper, least, least >= 0.9, "at least 0.9")
