"""Workloads: overlays, subscriptions, events and their times, all from one seed."""

from collections.abc import Callable, Mapping
from typing import Any

from workloads.by_hand import ByHandOptions, build_by_hand
from workloads.meshes import RandomRegular, ScaleFree, SmallWorld, random_regular, scale_free, small_world
from workloads.multipath import MultipathOptions, build_multipath
from workloads.overlay import (
    Cells,
    FromFile,
    Overlay,
    Sized,
    Structured,
    Tree,
    balanced,
    cells,
    chain,
    from_file,
    random_tree,
    ring,
    star,
    structured,
)
from workloads.paced import PacedOptions, build_paced
from workloads.plan import Workload
from workloads.recorded import RecordedOptions, build_recorded
from workloads.social import SocialOptions, build_social
from workloads.zipf import ZipfOptions
from workloads.zipf_workload import build_zipf

OVERLAYS: Mapping[str, tuple[type[Any], Callable[[Any, int], Overlay]]] = {
    "balanced": (Tree, balanced),
    "random": (Tree, random_tree),
    "chain": (Sized, chain),
    "star": (Sized, star),
    "ring": (Sized, ring),
    "random_regular": (RandomRegular, random_regular),
    "small_world": (SmallWorld, small_world),
    "scale_free": (ScaleFree, scale_free),
    "cells": (Cells, cells),
    "structured": (Structured, structured),
    "file": (FromFile, from_file),
}

WORKLOADS: Mapping[str, tuple[type[Any], Callable[[Overlay, Any, int], Workload]]] = {
    "zipf": (ZipfOptions, build_zipf),
    "social": (SocialOptions, build_social),
    "recorded": (RecordedOptions, build_recorded),
    "multipath": (MultipathOptions, build_multipath),
    "paced": (PacedOptions, build_paced),
    "by_hand": (ByHandOptions, build_by_hand),
}

__all__ = ["OVERLAYS", "WORKLOADS"]
