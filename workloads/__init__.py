"""Workloads: overlays, subscriptions, events and their times, all from one seed."""

from collections.abc import Callable, Mapping
from typing import Any

from workloads.by_hand import ByHandOptions, build_by_hand
from workloads.multipath import MultipathOptions, build_multipath
from workloads.overlay import OVERLAYS, Overlay
from workloads.paced import PacedOptions, build_paced
from workloads.plan import Workload
from workloads.recorded import RecordedOptions, build_recorded
from workloads.social import SocialOptions, build_social
from workloads.zipf import ZipfOptions, build_zipf

WORKLOADS: Mapping[str, tuple[type[Any], Callable[[Overlay, Any, int], Workload]]] = {
    "zipf": (ZipfOptions, build_zipf),
    "social": (SocialOptions, build_social),
    "recorded": (RecordedOptions, build_recorded),
    "multipath": (MultipathOptions, build_multipath),
    "paced": (PacedOptions, build_paced),
    "by_hand": (ByHandOptions, build_by_hand),
}

__all__ = ["OVERLAYS", "WORKLOADS"]
