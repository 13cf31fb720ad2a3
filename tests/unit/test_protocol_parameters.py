"""Mistakes in a scenario's protocols and their parameters: each is refused with its place, and nothing is left."""

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

from murmur_pubsub.errors import InputError
from murmuration.deployment.build_deployment import build
from murmuration.registry import reliability_named, routing_named
from murmuration.runs.driver import execute
from murmuration.scenario.load import load_scenario
from reliability.best_effort import BEST_EFFORT, BestEffort
from routing.flooding import Flooding
from routing.multipath.router import MultipathRouter
from routing.router import Router

TREE = """\
name: mistakes
runtime: virtual
overlay: {kind: balanced, brokers: 4, degree: 3}
workload: {kind: zipf, clients: 4, publications: 10}
datagrams: {delay: 1 ms}
broker:
"""
RING = TREE.replace("balanced, brokers: 4, degree: 3", "structured, brokers: 4")
CELLS = TREE.replace("balanced, brokers: 4, degree: 3", "cells, cells: {p: [p1], s: [s1]}, links: [[p, s]]")
EPIDEMIC = "  reliability: epidemic\n  parameters:\n    epidemic:\n"
MULTIPATH = "  routing: multipath\n  parameters:\n    multipath:\n"
VINIFERA = "  routing: vinifera\n  parameters:\n    vinifera:\n"
GRYPHON = "  routing: cells\n  reliability: gryphon\n  parameters:\n    gryphon:\n"

MISTAKES: dict[str, tuple[str, int, str, str, str]] = {
    "a misspelt protocol": (
        TREE + "  parameters:\n    epidemc: {algorithm: none}\n",
        8,
        "epidemc",
        "no protocol",
        "forwarding and best_effort",
    ),
    "a part for a protocol": (TREE + "  parameters:\n    routing: {x: 1}\n", 8, "routing", "no protocol", "forwarding"),
    "a misspelt parameter": (
        RING + VINIFERA + "      degre: 3\n",
        10,
        "vinifera.degre",
        "unknown key",
        "attributes, beta, balance_rounds, spread",
    ),
    "a time without unit": (
        TREE + EPIDEMIC + "      interval: 30000\n",
        10,
        "epidemic.interval",
        "30000",
        "5 ms' (units",
    ),
    "the name with its unit": (
        TREE + EPIDEMIC + "      interval_us: 30000\n",
        10,
        "epidemic.interval_us",
        "unknown key",
        "algorithm, interval,",
    ),
    "a protocol that does not take part": (
        TREE + "  parameters:\n    epidemic: {algorithm: push}\n",
        8,
        "epidemic",
        "does not take part",
        "best_effort",
    ),
    "no mapping": (TREE + EPIDEMIC.rstrip("\n") + " fast\n", 9, "epidemic", "'fast'", "a mapping of keys"),
    "no number": (TREE + MULTIPATH + "      fanout: many\n", 10, "multipath.fanout", "'many'", "integer"),
    "a truth value for a number": (TREE + MULTIPATH + "      delta: yes\n", 10, "multipath.delta", "True", "integer"),
    "a number for a truth value": (TREE + MULTIPATH + "      covering: 1\n", 10, "multipath.covering", "1", "boolean"),
    "no such choice": (TREE + MULTIPATH + "      strategy: S9\n", 10, "multipath.strategy", "'S9'", "'S2'"),
    "a contradiction": (
        TREE + MULTIPATH + "      fanout: 9\n      maxlinks: 8\n",
        11,
        "multipath.maxlinks",
        "8",
        "at least 9, the fanout",
    ),
    "too few for the overlay": (
        TREE + MULTIPATH + "      fanout: 1\n",
        10,
        "multipath.fanout",
        "1",
        "at least 3, the broker's degree",
    ),
    "a part of a tick": (
        CELLS + GRYPHON + "      gct: 1500 us\n",
        11,
        "gryphon.gct",
        "1500 us",
        "whole number of milli",
    ),
    "pubends where there are none": (
        CELLS + GRYPHON + "      pubends: {b7: 2}\n",
        11,
        "gryphon.pubends.b7",
        "takes clients",
        "p1, s1",
    ),
    "a domain upside down": (
        RING + VINIFERA + "      attributes: {x: {min: 2, max: 1}}\n",
        10,
        "vinifera.attributes.x",
        "min 2",
        "below the max",
    ),
    "a routing on the wrong overlay": (
        TREE + "  routing: vinifera\n",
        7,
        "broker.routing",
        "'vinifera' on an acyclic overlay",
        "structured",
    ),
    "a reliability over the wrong routing": (
        TREE + "  reliability: gryphon\n",
        7,
        "broker.reliability",
        "'gryphon' over 'forwarding'",
        "cells",
    ),
    "a class without methods": (
        TREE + "  routing: 'tests.unit.test_protocol_parameters:Half'\n",
        7,
        "broker.routing",
        "without",
        "methods",
    ),
    "what is no protocol": (TREE + "  routing: 'pathlib:Path'\n", 7, "broker.routing", "pathlib", "RoutingProtocol"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_refused_with_its_place_and_leaves_no_run_folder(mistake: str, tmp_path: Path) -> None:
    text, line, key, found, allowed = MISTAKES[mistake]
    path = tmp_path / "mistake.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        execute(load_scenario(path), tmp_path / "run", lambda *_: None)
    key = key if key.startswith("broker.") else f"broker.parameters.{key}"
    assert caught.value.place == f"{path}, line {line}, key {key}"
    assert found in caught.value.found
    assert allowed in caught.value.allowed
    assert list(tmp_path.iterdir()) == [path]


def test_the_command_says_so_in_a_line_and_ends_with_2(tmp_path: Path) -> None:
    path = tmp_path / "mistake.yaml"
    path.write_text(MISTAKES["a misspelt parameter"][0])
    command = [sys.executable, "-m", "murmuration.commands.main", "run", str(path), "--out", str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"{path}, line 10, key broker.parameters.vinifera.degre: found an unknown key" in " ".join(
        done.stderr.split()
    )
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == [path]


def test_times_are_written_with_their_unit_everywhere(tmp_path: Path) -> None:
    path = tmp_path / "times.yaml"
    path.write_text(RING.replace("brokers: 4", "brokers: 4, probe: 3 s, probe_timeout: 700 ms") + "  routing: irbr\n")
    (place, *_) = (node.place for node in build(load_scenario(path)).deployment.nodes)
    assert (place.probe_us, place.probe_timeout_us) == (3_000_000, 700_000)  # type: ignore[union-attr]
    with pytest.raises(InputError, match=r"--set overlay\.probe=3, key overlay\.probe: found 3; allowed: a time with"):
        build(load_scenario(path, ["overlay.probe=3"]))


def test_a_class_derived_from_a_protocol_takes_its_parameters_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "derived.yaml"
    path.write_text(TREE + MULTIPATH.replace("multipath", f"'{__name__}:Derived'", 1) + "      delta: 3\n")
    chosen = build(load_scenario(path)).protocols
    assert (chosen.routing.name, chosen.routing.make, chosen.routing_parameters.delta) == ("multipath", Derived, 3)


class Derived(MultipathRouter):
    """A router that changes nothing."""


class Half(Router):
    """A router that lacks what it must have."""


class Promising(BestEffort):
    promise = "exactly_once"


class Unordered(Flooding):
    keeps_order = False


DECLARED = dataclasses.replace(BEST_EFFORT, name="promising", make=Promising)


@pytest.mark.parametrize(
    ("part", "name", "attribute"),
    [
        ("reliability", "Promising", "promise"),
        ("reliability", "DECLARED", "promise"),
        ("routing", "Unordered", "keeps_order"),
    ],
)
def test_what_a_class_says_of_itself_where_nobody_reads_it_is_refused(part: str, name: str, attribute: str) -> None:
    path = f"{__name__}:{name}"
    told = f"broker.{part}: found '{path}' with the class attribute '{attribute}', which nobody reads; allowed: a R"
    with pytest.raises(InputError, match=told):
        reliability_named(path) if part == "reliability" else routing_named(path)
