"""While nothing is lost nobody asks for anything: what is on its way is not expected yet."""

from pathlib import Path

from murmur_pubsub.journal import RowKind
from murmur_pubsub.journal_rows import read_rows
from murmur_pubsub.message import kind_of
from reliability.gryphon.messages import AckExpected, Data, Nack
from tests.deployments import played

STEADY = {
    "name": "steady",
    "runtime": "virtual",
    "overlay": {"kind": "chain", "brokers": 6},
    "workload": {"kind": "zipf", "clients": 6, "publications": 400, "rate_per_s": 40, "matching_rate": 0.2},
    "broker": {"routing": "cells", "reliability": "gryphon"},
}
"""Ten seconds; AET is three. Silence takes half a second a hop, where nothing matches."""


def test_nobody_asks_for_what_is_on_its_way(tmp_path: Path) -> None:
    played(STEADY, tmp_path)
    rows = read_rows(tmp_path)
    sent = rows[rows["kind"] == RowKind.SEND]["value"]
    assert (sent == kind_of(Data)).sum() > 400
    assert not ((sent == kind_of(Nack)) | (sent == kind_of(AckExpected))).any()
