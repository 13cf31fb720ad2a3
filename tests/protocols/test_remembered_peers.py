"""A broker of a structured overlay that is back joins through peers that it remembers, if those that it was told of are
dead or across a partition."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgpack
import pytest

from murmur_pubsub.errors import InputError
from murmur_pubsub.machine import Persist, Truncate
from murmuration.hunt.trial import play_schedule
from routing.founding import Founding
from routing.remembered_peers import REMEMBERED_MAX, RememberedPeers

ROUTINGS = ("irbr", "vinifera", *(pytest.param(each, marks=pytest.mark.slow) for each in ("scribe", "rpf", "ferry")))
IRBR_900050: Sequence[Mapping[str, Any]] = [
    {"at": "5 ms", "partition": [["b0", "b3", "b4"]]},
    {"at": "2375 ms", "kill": "b0", "for": "200 ms"},
]
"""The faults of that schedule; b0 joins through b5, b6, b7 and b8."""
VINIFERA_900191: Sequence[Mapping[str, Any]] = [
    {"at": "20 ms", "partition": [["b0", "b3"]]},
    {"at": "350 ms", "kill": "b0", "for": "200 ms"},
]


def verdict_of(routing: str, faults: Sequence[Mapping[str, Any]], seed: int = 4095, **overlay: str | int) -> str:
    """A schedule as they are drawn."""
    outcome = play_schedule(
        {
            "name": "schedule",
            "runtime": "virtual",
            "seed": seed,
            "overlay": {
                "kind": "structured", "brokers": 9, "probe": "200 ms", "probe_timeout": "100 ms", "leaf_set": 8,
                **overlay,
            },
            "workload": {
                "kind": "zipf", "clients": 7, "subscribers_per_actor": 2, "publishers": 2, "publications": 170,
                "rate_per_s": 10, "attributes": 2, "predicates": 1, "matching_rate": 0.5,
            },
            "broker": {"routing": routing, "reliability": "best_effort"},
            "links": {"delay": "2 ms"},
            "datagrams": {"delay": {"uniform": ["500 us", "5 ms"]} if routing in ("irbr", "vinifera") else "5 ms"},
            "drain": {"limit": "5 s"},
            "faults": list(faults),
        }
    )  # fmt: skip
    return str(outcome.judgement.numbers["verdict"])


@pytest.mark.parametrize("routing", ROUTINGS)
def test_a_broker_is_let_in_by_its_own_side_though_all_its_bootstrap_peers_are_across(routing: str) -> None:
    """irbr/best_effort 900050 was not valid."""
    assert verdict_of(routing, IRBR_900050) == "valid"


def test_it_is_let_in_where_it_has_known_its_side_for_a_round_only() -> None:
    """vinifera/best_effort 900191 was not valid."""
    assert verdict_of("vinifera", VINIFERA_900191, seed=8172) == "valid"


@pytest.mark.parametrize(
    ("routing", "faults", "seed"),
    [("irbr", IRBR_900050, 4095), pytest.param("vinifera", VINIFERA_900191, 8172, marks=pytest.mark.slow)],
)
def test_one_that_remembers_nobody_stays_alone(
    routing: str, faults: Sequence[Mapping[str, Any]], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RememberedPeers, "keep", lambda self, known: [])
    assert verdict_of(routing, faults, seed) == "invalid"


ALL_OF_A_SIDE: Sequence[Mapping[str, Any]] = [
    IRBR_900050[0],
    *(
        {"at": at, "kill": name, "for": "900 ms"}
        for at, name in (("2000 ms", "b0"), ("2200 ms", "b3"), ("2400 ms", "b4"))
    ),
]


@pytest.mark.parametrize("routing", ROUTINGS)
def test_a_side_whose_brokers_have_all_failed_is_founded_anew(routing: str) -> None:
    """Their bootstrap peers are silent, but those that they remember say that they wait too."""
    assert verdict_of(routing, ALL_OF_A_SIDE) == "valid"


def test_bootstrap_peers_alone_would_let_nobody_found_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Founding, "remembered", property(lambda self: (), lambda self, names: None), raising=False)
    assert verdict_of("irbr", ALL_OF_A_SIDE) == "invalid"


@pytest.mark.parametrize("routing", ["irbr", "vinifera"])
def test_a_broker_that_is_alone_on_its_side_joins_when_the_partition_ends(routing: str) -> None:
    alone = {"at": "5 ms", "partition": [["b0"]], "for": "5000 ms"}
    assert verdict_of(routing, [alone, {"at": "2 s", "kill": "b0", "for": "200 ms"}]) == "valid"


DIVIDED: Sequence[Mapping[str, Any]] = [
    {"at": "1 s", "partition": [["b0", "b2", "b3", "b6"]], "for": "3 s"},
    {"at": "2 s", "kill": "b0"},
]


@pytest.mark.parametrize("routing", ["irbr", "vinifera"])
def test_sides_become_one_again_though_the_only_bootstrap_peer_is_dead(routing: str) -> None:
    """They find each other through those that were gone when names were stored last."""
    assert verdict_of(routing, DIVIDED, bootstrap="b0") == "valid"


def test_they_do_not_if_those_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RememberedPeers, "_lost", property(lambda self: [], lambda self, names: None), raising=False)
    monkeypatch.setattr(RememberedPeers, "heard_of", lambda self, name: None)
    assert verdict_of("irbr", DIVIDED, bootstrap="b0") == "invalid"


SCRIBE_1406629: Sequence[Mapping[str, Any]] = [
    {"at": "110 ms", "slow": "b2", "work": "2 ms"},
    {"at": "210 ms", "partition": [["b1", "b2", "b3", "b5", "b6", "b7", "b8"]]},
    {"at": "215 ms", "slow": "b4", "work": "2 ms", "for": "1200 ms"},
]
"""The faults of that schedule. b0 and b4 have no peer but those on the other side."""


@pytest.mark.parametrize("heard_of", ["", "not "])
def test_two_that_never_had_to_know_each_other_meet_on_their_side(
    heard_of: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if heard_of:
        monkeypatch.setattr(RememberedPeers, "heard_of", lambda self, name: None)
    outcome = verdict_of("scribe", SCRIBE_1406629, seed=9850, leaf_set=4)
    assert outcome == ("invalid" if heard_of else "valid")


# ---------------------------------------------------------------------------------------- what is stored, and when
def stored(peers: RememberedPeers, known: Sequence[str]) -> list[str] | None:
    """The names that the broker stores when it knows these (None: it stores nothing)."""
    effects = peers.keep(known)
    if not effects:
        return None
    (effect,) = effects
    assert isinstance(effect, Persist)
    assert msgpack.unpackb(effect.record) == [effect.token, *peers.names]
    return list(peers.names)


def test_a_record_is_written_when_half_of_its_peers_are_gone_or_twice_as_many_are_known() -> None:
    peers = RememberedPeers("a")
    assert stored(peers, []) is None
    assert stored(peers, ["b"]) == ["b"]
    assert stored(peers, ["b"]) is None
    assert stored(peers, ["b", "c"]) == ["b", "c"]
    assert stored(peers, ["b", "c", "d"]) is None
    assert stored(peers, ["c", "b", "d", "e"]) == ["c", "b", "d", "e"]
    assert stored(peers, ["b", "d"]) == ["b", "d"], "half are gone"
    assert stored(peers, ["c"]) == ["c"]
    assert stored(peers, ["b", "c", "d"]) == ["b", "c", "d"]
    assert stored(peers, ["b", "c", "d", "e", "f"]) is None
    assert stored(peers, ["c", "d", "e", "f"]) is None, "two of three are still there"
    assert stored(peers, ["d", "e", "f"]) == ["d", "e", "f"]
    assert stored(peers, []) is None, "who knows nobody keeps what there is"
    many = [f"n{number}" for number in range(40)]
    assert stored(peers, many) == many[:REMEMBERED_MAX]
    assert stored(peers, many[:5]) is None
    assert stored(peers, many[:4]) == many[:4]


def test_what_was_stored_is_remembered_and_tokens_grow() -> None:
    first = RememberedPeers("a")
    (one,) = first.keep(["b", "c"])
    assert isinstance(one, Persist)
    assert one.token == 0
    assert first.stored(one.token) == [Truncate(one.token)]
    second = RememberedPeers("a")
    assert list(second.restore([one.record])) == ["b", "c"]
    (two,) = second.keep(["d"])
    assert isinstance(two, Persist)
    assert two.token > one.token
    assert list(second.restore([one.record, two.record])) == ["d"]


def test_other_parts_are_looked_for_through_bootstrap_peers_and_those_that_were_gone_in_turn() -> None:
    peers = RememberedPeers("a")
    assert peers.to_look_through([], ()) == []
    peers.keep(["b", "c", "d", "e"])
    assert [peers.to_look_through(["x", "y"], ()) for _ in range(3)] == [["x"], ["y"], ["x"]]
    peers.keep(["d", "f"])
    assert [peers.to_look_through(["x"], ()) for _ in range(3)] == [["x", "e"], ["x", "b"], ["x", "c"]]
    peers.keep(["d", "f", "g", "h"])
    assert peers.to_look_through([], ()) == ["e"], "nobody was gone"


def test_other_parts_are_looked_for_through_those_that_were_only_heard_of_too() -> None:
    peers = RememberedPeers("a")
    for name in ("b", "a", "c", "d", "c"):
        peers.heard_of(name)
    assert [peers.to_look_through(["x"], ["b"]) for _ in range(3)] == [["x", "d"], ["x", "c"], ["x", "d"]]
    for number in range(32):
        peers.heard_of(f"n{number}")
    assert {each for _ in range(64) for each in peers.to_look_through([], ())} == {f"n{number}" for number in range(32)}


@pytest.mark.parametrize("record", [b"", b"\xc1", msgpack.packb(7), msgpack.packb([])])
def test_a_record_that_is_none_is_refused(record: bytes) -> None:
    with pytest.raises(InputError, match="log of a"):
        RememberedPeers("a").restore([record])


# ------------------------------------------------------------------------------------------------- who is asked
def test_bootstrap_peers_are_asked_in_turn_and_beside_all_but_the_first_those_remembered() -> None:
    node = Founding("a", ["b", "c"], True)
    node.remembered = ("c", "d", "e")
    assert [node.to_ask() for _ in range(5)] == [["b"], ["c", "d"], ["b", "e"], ["c", "d"], ["b", "e"]]
    three = Founding("a", ["b"], True)
    three.remembered = ("c", "d", "e")
    assert [three.to_ask() for _ in range(5)] == [["b"], ["b", "c"], ["b", "d"], ["b", "e"], ["b", "c"]]


def test_an_overlay_is_founded_anew_if_most_of_those_remembered_wait() -> None:
    """Its bootstrap peers are silent: they may be across a partition."""
    node = Founding("a", ["b"], True)
    node.remembered = ("d", "e", "f")
    for name, founds in (("d", False), ("e", True)):
        for _ in range(20):
            node.asked_by(name)
            node.asked_by("d")
            last = node.turn()
        assert last is founds
