"""A client publishes what the content model allows, and says which attribute is something else."""

import math
import sys
from pathlib import Path
from typing import Any

import pytest

from murmur_pubsub.errors import InputError
from murmur_pubsub.values import Value
from murmuration.harness.cluster import Cluster
from spark_analysis.plain_judge import judge_plainly

CHAIN = {"kind": "chain", "brokers": 2}


@pytest.mark.parametrize(
    ("attributes", "attribute", "found"),
    [
        ({"price": None}, "'price'", "None"),
        ({"symbol": "A", "price": [1]}, "'price'", "[1]"),
        ({"price": {"of": 1}}, "'price'", "{'of': 1}"),
        ({"price": b"1"}, "'price'", "b'1'"),
        ({"price": math.nan}, "'price'", "nan"),
        ({"price": math.inf}, "'price'", "inf"),
        ({"price": -math.inf}, "'price'", "-inf"),
        ({"price": 2**64}, "'price'", "18446744073709551616"),
        ({"price": "\ud800"}, "'price'", "'\\ud800'"),
        ({"\ud800": 1}, "'\\ud800'", "a name of type str"),
        ({"price": -(2**63) - 1}, "'price'", "-9223372036854775809"),
        ({1: 1}, "1", "a name of type int"),
    ],
)
def test_what_no_event_may_have_is_refused_by_its_name(
    tmp_path: Path, attributes: dict[Any, Any], attribute: str, found: str
) -> None:
    with Cluster.start(CHAIN, folder=tmp_path / "run") as cluster:
        with pytest.raises(InputError) as caught:
            cluster.clients["c0"].publish({"price": 1}, attributes)
        assert caught.value.place == f"publication 0:1, attribute {attribute}"
        assert caught.value.found == found
        wanted = cluster.clients["c1"].subscribe("TRUE")
        cluster.settle()
        cluster.clients["c0"].publish({"price": 3})
        cluster.drain()
        (delivery,) = cluster.clients["c1"].deliveries(wanted)
        assert (delivery.sequence, delivery.attributes) == (0, {"price": 3}), (
            "nothing of the refused call was published"
        )


def test_every_kind_of_value_arrives_as_it_was_published(tmp_path: Path) -> None:
    attributes: dict[str, Value] = {
        "int": 2**64 - 1,
        "least": -(2**63),
        "float": 1.5,
        "largest": sys.float_info.max,
        "text": "ü",
        "yes": True,
    }
    with Cluster.start(CHAIN, folder=tmp_path / "run") as cluster:
        wanted = cluster.clients["c1"].subscribe("TRUE")
        cluster.settle()
        cluster.clients["c0"].publish(attributes)
        cluster.drain()
        (delivery,) = cluster.clients["c1"].deliveries(wanted)
    assert delivery.attributes == attributes


def test_what_is_joined_by_or_is_delivered_once_until_it_is_withdrawn(tmp_path: Path) -> None:
    with Cluster.start(CHAIN, folder=tmp_path / "run") as cluster:
        subscriber = cluster.clients["c1"]
        wanted = subscriber.subscribe("price > 10 OR name LIKE '%x' OR price IS NULL")
        narrow = subscriber.subscribe("price > 10")
        cluster.settle()
        cluster.clients["c0"].publish({"price": 11, "name": "ax"}, {"price": 3, "name": "a"}, {"name": "b"})
        cluster.drain()
        assert [delivery.sequence for delivery in subscriber.deliveries(wanted)] == [0, 2]
        subscriber.unsubscribe(wanted)
        cluster.settle()
        cluster.clients["c0"].publish({"price": 12, "name": "ax"}, {"name": "x"})
        cluster.drain()
        assert [delivery.sequence for delivery in subscriber.deliveries(wanted)] == [0, 2]
        assert [delivery.sequence for delivery in subscriber.deliveries(narrow)] == [0, 3]
    assert judge_plainly(cluster.folder / "journal").counts == (0, 0, 0, 0)
