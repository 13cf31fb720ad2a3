"""What a scenario counts and has to be made before the run has a bound: an absurd count is refused at once, with no
memory filled before that."""

import random
from typing import Any

import pytest

from murmur_pubsub.errors import InputError
from murmuration.deployment.build_deployment import build
from murmuration.scenario.load import check_scenario
from workloads.limits import CLIENTS_MAX, FILTERS_MAX
from workloads.overlay import Overlay
from workloads.paced import PacedOptions, PacedPublications
from workloads.social import SocialOptions, build_social
from workloads.zipf import ZipfOptions

_ABSURD = 10**12
_PACED = {"kind": "paced", "publishers": {"b0": 1}, "subscribers": {"b1": 1}}
_KEYS: dict[str, Any] = {
    "runtime": "virtual",
    "overlay": {"kind": "balanced", "brokers": 4},
    "workload": {"kind": "zipf", "clients": 4, "publications": 10},
}
_SCRIBE = {"broker": {"routing": "scribe"}, "datagrams": {"delay": "1 ms"}}


@pytest.mark.parametrize(
    ("key", "changes"),
    [
        *(
            (f"workload.{name}", {"workload": {"kind": "zipf", name: _ABSURD}})
            for name in (
                "clients", "subscribers_per_actor", "subscriptions_per_subscriber", "publishers", "attributes",
                "predicates", "categories", "buckets", "resubscriptions",
            )
        ),
        *(
            (f"workload.{name}", {"workload": {"kind": "social", name: _ABSURD}})
            for name in ("users", "mean_degree", "posts", "clients_per_broker")
        ),
        *(
            (f"workload.{name}", {"workload": {"kind": "recorded", "path": "nowhere", name: _ABSURD}})
            for name in ("clients", "publishers", "subscriptions")
        ),
        *(
            (f"workload.{name}", {"workload": {"kind": "multipath", name: _ABSURD}})
            for name in ("publications", "payload_bytes")
        ),
        ("workload.publishers", {"workload": {**_PACED, "publishers": {"b0": _ABSURD}}}),
        ("workload.subscribers", {"workload": {**_PACED, "subscribers": {"b0": _ABSURD}}}),
        ("workload.padding", {"workload": {**_PACED, "padding": _ABSURD}}),
        ("workload.seconds", {"workload": {**_PACED, "seconds": 1e300}}),
        ("workload.publications", {"workload": {"kind": "zipf", "publications": 10**400}}),
        ("overlay.digits", {"overlay": {"kind": "structured", "digits": _ABSURD}, **_SCRIBE}),
        ("overlay.digits", {"overlay": {"kind": "structured", "digits": 32}, **_SCRIBE}),
        ("overlay.probe", {"overlay": {"kind": "structured", "probe": f"{_ABSURD} s"}, **_SCRIBE}),
        ("overlay.probe", {"overlay": {"kind": "structured", "probe": f"{10**400} h"}, **_SCRIBE}),
        ("links.delay", {"links": {"delay": f"{_ABSURD} s"}}),
        (
            "broker.parameters.multipath.round",
            {"broker": {"routing": "multipath", "parameters": {"multipath": {"round": f"{_ABSURD} s"}}}},
        ),
        ("overlay.degree", {"overlay": {"kind": "random_regular", "brokers": 1_000_000, "degree": 999_998}}),
        ("overlay.degree", {"overlay": {"kind": "small_world", "brokers": 1_000_000, "degree": 999_998}}),
        ("overlay.links", {"overlay": {"kind": "scale_free", "brokers": 1_000_000, "links": 500_000}}),
    ],
)  # fmt: skip
def test_an_absurd_count_is_refused(key: str, changes: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=rf"key {key}: found .*; allowed: .*(at most|0 to) [\d,]+"):
        build(check_scenario({**_KEYS, **changes}, "scenario"))


@pytest.mark.parametrize(
    "workload",
    [
        {"kind": "zipf", "publications": _ABSURD},
        {**_PACED, "seconds": 1e10},
        {**_PACED, "seconds": 1e10, "pauses": [[1, 2], [1.5, 3], [5, 1e9]]},
    ],
)
def test_publications_that_are_made_as_they_come_take_no_room(workload: dict[str, Any]) -> None:
    assert build(check_scenario({**_KEYS, "workload": workload}, "scenario")).workload.expected_publications > 10**9


def test_what_a_large_cluster_can_play_is_not_refused() -> None:
    ZipfOptions(clients=CLIENTS_MAX, subscribers_per_actor=10, publishers=1_000_000)
    ZipfOptions(clients=1_000, subscribers_per_actor=1_000, subscriptions_per_subscriber=10, publications=10**9)
    SocialOptions(users=1_000_000, posts=100_000_000)
    with pytest.raises(InputError, match=rf"workload.clients: found .* filters; allowed: at most {FILTERS_MAX:,}"):
        ZipfOptions(clients=CLIENTS_MAX, subscribers_per_actor=11)


def test_clients_are_counted_over_all_brokers() -> None:
    overlay = Overlay(("b0", "b1"), (("b0", "b1"),))
    with pytest.raises(InputError, match=r"workload.clients_per_broker: found 600000 at each of 2 brokers"):
        build_social(overlay, SocialOptions(clients_per_broker=600_000), 1)


@pytest.mark.parametrize("seed", range(50))
def test_steady_publications_are_counted_as_they_are_walked(seed: int) -> None:
    rng = random.Random(seed)
    pauses = []
    for _ in range(rng.randrange(4)):
        begin = rng.randrange(12) / 2
        pauses.append((begin, begin + rng.randrange(1, 6) / 2))
    options = PacedOptions({"b0": 3}, {"b1": 1}, rng.choice([2.0, 7.0, 25.0]), 8.0, pauses=tuple(pauses))
    each = PacedPublications(options, seed, rng.randrange(3), 3)
    assert each.count == len(list(each))
