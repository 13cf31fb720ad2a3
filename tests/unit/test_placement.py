"""Which host a broker is on: spread, packed, pinned; and what is refused."""

import pytest

from actors.joining import Host
from actors.room import ACTOR_BYTES, NODE_BYTES, RAY_BYTES
from murmur_pubsub.deployment import NodeSpec
from murmur_pubsub.errors import InputError
from murmuration.deployment.actor_placement import share_actors
from murmuration.deployment.build_deployment import build
from murmuration.deployment.host_placement import HostRoom, check_room, local_hosts, place_brokers
from murmuration.runs.joined_cluster import JoinedCluster
from murmuration.scenario.load import check_scenario

BROKERS = ["b0", "b1", "b2", "b3", "b4"]
HOSTS = [HostRoom("head", "10.0.0.1", 2), HostRoom("second", "10.0.0.2", 1), HostRoom("third", "10.0.0.3", 9)]


def test_spread_takes_turns() -> None:
    assert list(place_brokers(BROKERS, "spread", HOSTS, 0, 1).values()) == [0, 1, 2, 0, 1]


def test_pack_fills_a_host_before_the_next() -> None:
    assert list(place_brokers(BROKERS, "pack", HOSTS, 0, 1).values()) == [0, 0, 1, 2, 2]
    assert set(place_brokers(BROKERS, "pack", local_hosts(3), 9, 1).values()) == {0}


@pytest.mark.parametrize(
    ("clients", "density", "placed"),
    [
        (1, 1, [0, 1, 2, 2, 2]),
        (2, 1, [1, 2, 2, 2, 2]),
        (1, 3, [0, 0, 0, 1, 1]),
        (3, 3, [0, 0, 0, 1, 1]),
        (4, 3, [1, 1, 1, 2, 2]),
    ],
)
def test_pack_leaves_the_first_host_the_room_of_the_clients_actors(
    clients: int, density: int, placed: list[int]
) -> None:
    found = place_brokers(BROKERS, "pack", HOSTS, clients, density)
    assert list(found.values()) == placed
    check_room(found, clients, HOSTS, density)


def test_clients_that_fit_nowhere_but_on_the_first_host_are_refused() -> None:
    placed = place_brokers(BROKERS, "pack", HOSTS, 3, 1)
    assert 0 not in placed.values()
    with pytest.raises(InputError, match=r"3 actors on host 10.0.0.1 \(head\); allowed: at most 2 there"):
        check_room(placed, 3, HOSTS, 1)


def test_pinned_by_name_address_or_number_and_the_others_spread() -> None:
    placed = place_brokers(BROKERS, {"b0": "third", "b1": "10.0.0.3", "b4": 1}, HOSTS, 0, 1)
    assert placed == {"b0": 2, "b1": 2, "b4": 1, "b2": 0, "b3": 1}


def test_brokers_pinned_to_a_zone_take_turns_on_its_hosts() -> None:
    zones = [
        HostRoom("head", "10.0.0.1", zone="north"),
        *(HostRoom(f"m{n}", f"10.0.0.{n}", zone="south") for n in (2, 3)),
    ]
    placed = place_brokers(BROKERS, {"b0": "south", "b1": "north", "b2": "south", "b3": "south"}, zones, 0, 1)
    assert placed == {"b0": 1, "b1": 0, "b2": 2, "b3": 1, "b4": 0}
    with pytest.raises(InputError, match=r"host 'east'; allowed: .*; or a zone: north, south"):
        place_brokers(BROKERS, {"b0": "east"}, zones, 0, 1)


@pytest.mark.parametrize(
    ("policy", "message"),
    [({"b9": 0}, "placement.b9: found no broker"), ({"b0": 3}, "host 3"), ({"b0": "fourth"}, "host 'fourth'")],
)
def test_unknown_brokers_and_hosts_are_refused(policy: dict[str, str | int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        place_brokers(BROKERS, policy, HOSTS, 0, 1)


def test_more_actors_than_a_host_has_memory_for_are_refused() -> None:
    placed = {"b0": 0, "b1": 0}
    check_room(placed, 0, HOSTS, 1)
    check_room(placed, 2, HOSTS, 2)
    for clients, density in ((1, 1), (3, 2)):
        with pytest.raises(InputError, match=r"3 actors on host 10.0.0.1 \(head\); allowed: at most 2"):
            check_room(placed, clients, HOSTS, density)


@pytest.mark.parametrize(
    ("last_mile", "density", "hosts"), [("clients", 1, [0, 1, 2]), ("clients", 2, [0, 0, 1]), ("broker", 1, [0, 0, 1])]
)
def test_a_packed_scenario_fits_a_cluster_with_room_for_its_brokers_and_clients(
    last_mile: str, density: int, hosts: list[int]
) -> None:
    scenario = {
        "overlay": {"kind": "chain", "brokers": 3},
        "workload": {"kind": "by_hand", "clients": {"alice": "b2"}},
        "last_mile": last_mile,
        "density": density,
        "placement": "pack",
    }
    actor_bytes = ACTOR_BYTES + (density - 1) * NODE_BYTES
    there = [
        Host(name, name, name, None, RAY_BYTES + actors * actor_bytes, 0, None)
        for name, actors in (("head", 2), ("second", 1), ("third", 1))
    ]
    cluster = JoinedCluster("10.0.0.1:6379", tuple(there), {}, density)
    deployment = build(check_scenario(scenario, "packed"), cluster.rooms).deployment
    assert list(deployment.hosts.values()) == hosts
    cluster.check(deployment)


def specs(brokers: int, clients: int) -> list[NodeSpec]:
    return [NodeSpec(f"b{number}", "broker", "none") for number in range(brokers)] + [
        NodeSpec(f"c{number}", "client", "none") for number in range(clients)
    ]


def test_each_node_has_an_actor_of_its_own_unless_a_density_is_asked_for() -> None:
    assert share_actors(specs(3, 3), 1, {}) == ()


def test_neighbours_of_one_role_share_an_actor() -> None:
    assert share_actors(specs(5, 3), 2, {}) == (("b0", "b1"), ("b2", "b3"), ("b4",), ("c0", "c1"), ("c2",))


def test_nodes_on_different_hosts_share_no_actor() -> None:
    hosts = {"b0": 0, "b1": 1, "b2": 0, "b3": 1}
    assert share_actors(specs(4, 1), 4, hosts) == (("b0", "b2"), ("b1", "b3"), ("c0",))
