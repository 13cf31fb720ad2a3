"""Nodes that an availability trace has down when it begins, over every kind of overlay: a run begins all the same, and
its verdict is about the protocol."""

from pathlib import Path
from typing import Any

import pytest

from murmuration.hunt.trial import play_schedule

TRACE = "first\t2\t0 30 60 100\nsecond\t1\t40 100\n"
"""A node that is up from the begin until second 30 and again from 60, and one that comes at second 40."""
OVERLAYS: dict[str, dict[str, Any]] = {
    "links": {"overlay": {"kind": "chain", "brokers": 3}, "datagrams": {"delay": "1 ms"}},
    "structured": {
        "overlay": {"kind": "structured", "brokers": 6, "probe": "200 ms", "probe_timeout": "100 ms"},
        "datagrams": {"delay": "1 ms"},
    },
}


def played(tmp_path: Path, overlay: str, pair: str, **others: Any) -> None:
    """Two nodes come and go while 150 events are published in 5 s; what they miss is explained."""
    path = tmp_path / "two.avt"
    path.write_text(TRACE)
    routing, reliability = pair.split("/")
    scenario: dict[str, Any] = {
        "name": "churn", "runtime": "virtual", "seed": 4, "links": {"delay": "2 ms"},
        "broker": {"routing": routing, "reliability": reliability},
        "workload": {
            "kind": "zipf", "clients": 3, "subscribers_per_actor": 2, "publishers": 2, "publications": 150,
            "rate_per_s": 30, "matching_rate": 0.5,
        },
        "churn": {"trace": str(path), "keep_outages": True, "speed": 20, "shortest": "50 ms", **others.pop("churn")},
        **OVERLAYS[overlay], **others,
    }  # fmt: skip
    outcome = play_schedule(scenario)
    assert outcome.judgement.numbers["verdict"] == "valid", outcome.judgement.numbers
    assert len(outcome.guaranteed) > 20, "some deliveries are required that no fault excuses"
    assert {"kill", "restart"} <= {fault.kind.name.lower() for fault in outcome.deployment.faults}


@pytest.mark.parametrize("who", [["b1", "b2"], ["c1", "c2"]])
@pytest.mark.parametrize(
    "pair", ["forwarding/best_effort", "multipath/end_to_end", "cells/gryphon", "cells/durable", "forwarding/epidemic"]
)
def test_over_links(tmp_path: Path, pair: str, who: list[str]) -> None:
    played(tmp_path, "links", pair, churn={"who": who})


@pytest.mark.parametrize("who", [["b1", "b2"], ["c1", "c2"]])
@pytest.mark.parametrize("pair", ["scribe/best_effort", "irbr/end_to_end", "vinifera/best_effort"])
def test_without_links(tmp_path: Path, pair: str, who: list[str]) -> None:
    played(tmp_path, "structured", pair, churn={"who": who})


@pytest.mark.parametrize("pair", ["scribe/best_effort", "irbr/end_to_end"])
def test_brokers_that_deliver_themselves(tmp_path: Path, pair: str) -> None:
    played(tmp_path, "structured", pair, churn={"who": ["b1", "b2"]}, last_mile="broker")


def test_a_client_that_comes_while_its_link_is_cut_is_owed_what_is_published_after_it(tmp_path: Path) -> None:
    """A guarantee is for subscribers that are connected; no row says that a link goes down that never was up."""
    cuts = [{"at": "1600 ms", "cut": [f"c{number}", f"b{number}"], "for": "2 s"} for number in (1, 2)]
    played(tmp_path, "links", "cells/gryphon", churn={"who": ["c1", "c2"]}, faults=cuts)
