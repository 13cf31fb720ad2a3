"""Which conditions and policies the epidemic paper's tables compare, on which networks.

Where events are few, numbers take longer to be learnt: an event of a source that matches a given pattern of 28 comes
every 1.9 s at 5 events/s. So links lose nothing for 10 s there, and publishing goes on for 15 s after the measured
events: a loss is seen with the next such event that arrives.
"""

import dataclasses
from collections.abc import Sequence

from murmuration.papers.epidemic.settings import Case, Comparison, Setting
from reliability.epidemic.parameters import ALGORITHMS, Algorithm


def comparisons(judged: Setting, varied: Setting) -> dict[str, Comparison]:
    """By name. `judged`: 100 dispatchers; `varied`: 40; the smallest network is half of that."""
    small = Setting(dataclasses.replace(varied.base, dispatchers=20, patterns=14), varied.random_interval)
    return {
        "load": _load(varied),
        "overlapping": _overlapping(varied),
        "adaptive": _adaptive(small),
        "p_forward": _p_forward(small, (0.5, 0.7, 0.9, 1.0), ("push", "subscriber-pull", "combined-pull")),
        "p_forward_large": _p_forward(judged, (0.5, 0.9), ("push",)),
        "policies": _policies(small),
        "control": _control(varied),
    }


def _load(varied: Setting) -> Comparison:
    low = dataclasses.replace(varied.base, rate_per_s=5.0, learn_s=10.0, warm_s=11.0, measured_s=5.0, tail_s=15.0)
    return Comparison(
        "Few events beside many, loss 0.1", "events of a dispatcher",
        [Case("50 a second", varied), Case("5 a second", Setting(low, varied.random_interval))], ALGORITHMS,
    )  # fmt: skip


def _control(varied: Setting) -> Comparison:
    same, base = 1.0, varied.base
    return Comparison(
        "Random pull at equal overhead and at the same gossip interval, loss 0.1", "what is equal",
        [
            Case("overhead", varied), Case("interval", Setting(base, same)),
            Case("interval, Pforward", Setting(base, same, base.p_forward)),
        ],
        ("combined-pull", "random-pull"),
    )  # fmt: skip


def _overlapping(varied: Setting) -> Comparison:
    broken = Setting(dataclasses.replace(varied.base, loss=0.0, reconfigured_every_s=0.03), varied.random_interval)
    return Comparison(
        "Reconfigurations that overlap: a link breaks every 0.03 s, another joins the halves 0.1 s later",
        "other losses", [Case("none", broken), Case("0.1 of each link", broken, (("loss", 0.1),))], ALGORITHMS,
    )  # fmt: skip


def _adaptive(small: Setting) -> Comparison:
    cases = [
        Case(f"loss {loss:g}, {word}", small, (("loss", loss), ("adaptive", adaptive)))
        for loss in (0.0, 0.01, 0.1)
        for word, adaptive in (("fixed", False), ("adaptive", True))
    ]
    return Comparison(
        "A gossip interval that adapts, from 0.03 to 0.48 s, beside the fixed one of 0.03 s", "loss, interval",
        cases, ("push", "combined-pull"),
    )  # fmt: skip


def _p_forward(setting: Setting, values: Sequence[float], algorithms: Sequence[Algorithm]) -> Comparison:
    return Comparison(
        "Pforward, the probability to pass a gossip message on, loss 0.1", "Pforward",
        [Case(f"{value:g}", setting, (("p_forward", value),)) for value in values], algorithms,
    )  # fmt: skip


def _policies(small: Setting) -> Comparison:
    policies = (
        ("interested", "oldest"), ("interested", "random"), ("everywhere", "oldest"), ("everywhere", "uninterested"),
    )  # fmt: skip
    return Comparison(
        "Which dispatchers keep an event, and which event makes room: buffer 250, loss 0.1", "kept, discarded first",
        [
            Case(f"{cache}, {discard}", small, (("buffer", 250), ("cache", cache), ("discard", discard)))
            for cache, discard in policies
        ],
        ("push", "publisher-pull"),
    )  # fmt: skip
