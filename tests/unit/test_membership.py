"""Which brokers belong to which cell, as orders say it one after another, and where brokers may be added."""

import pytest

from murmur_pubsub.membership import Membership
from murmur_pubsub.places import CellPlan, spreads

PLAN = CellPlan(
    {"p": ("p1",), "m": ("m1", "m2", "m3"), "s": ("s1",)}, (("p", "m"), ("m", "s")), roots=("p1",), newcomers=("n1",)
)


@pytest.fixture
def members() -> Membership:
    return Membership(PLAN)


def test_there_is_something_to_tell_once_a_broker_has_joined_or_departed(members: Membership) -> None:
    assert not members
    members.take({"n1": "s"}, ())
    assert members
    departed = Membership(PLAN)
    departed.take({}, ("m1",))
    assert departed


@pytest.mark.parametrize(
    ("verb", "told", "named", "joined", "departed"),
    [
        ("join", "n1", "s", {"n1": "s"}, []),
        ("join", "n1", "x", {}, []),
        ("join", "m1", "s", {}, []),
        ("depart", "m2", "m1", {}, ["m1"]),
        ("depart", "m1", "m1", {}, []),
        ("depart", "m2", "p1", {}, []),
        ("forget", "m2", "m1", {}, []),
        ("forget", "n1", "s", {}, []),
    ],
)
def test_an_order_about_members_is_taken_for_done_unless_it_is_refused(
    members: Membership, verb: str, told: str, named: str, joined: dict[str, str], departed: list[str]
) -> None:
    members.obey(verb, told, [named])
    assert members.joined == joined
    assert list(members.departed) == departed


@pytest.mark.parametrize(
    ("broker", "cell", "why"),
    [
        ("n1", "s", ""),
        ("n1", "m", ""),
        ("m1", "s", "m1 is a member of m already"),
        ("n1", "x", "there is no cell 'x'"),
        ("m3", "m", "m3 has departed for good"),
    ],
)
def test_why_a_broker_may_not_join_is_said(members: Membership, broker: str, cell: str, why: str) -> None:
    members.take({}, ["m3"])
    assert members.why_not_join(broker, cell) == why


@pytest.mark.parametrize(
    ("broker", "told", "why"),
    [
        ("m1", "m2", ""),
        ("m3", "s1", "s1 is no other member of m: tell one that stays, such as m1"),
        ("m1", "m1", "m1 is no other member of m: tell one that stays, such as m2"),
        ("s1", "m1", "s1 is the last member of s"),
        ("p1", "m1", "p1 hosts pubends: events enter there"),
        ("n1", "m1", "'n1' is no member of a cell"),
    ],
)
def test_why_a_broker_may_not_depart_is_said(members: Membership, broker: str, told: str, why: str) -> None:
    assert members.why_not_depart(broker, told) == why


@pytest.mark.parametrize(
    ("sizes", "edges", "spreading"),
    [
        ({"a": 1, "b": 2}, ("ab",), "a"),
        ({"a": 1, "b": 1}, ("ab",), "b"),
        ({"a": 2, "b": 1}, ("ab",), "b"),
        ({"a": 2, "b": 2}, ("ab",), ""),
        ({"a": 1, "b": 1, "c": 1}, ("ab", "bc"), "ac"),
        ({"a": 1, "b": 1, "c": 1}, ("ab", "ac"), "bc"),
        ({"a": 1, "b": 1, "c": 1, "d": 2}, ("ab", "bc", "cd"), "a"),
        ({"a": 1}, (), ""),
    ],
)
def test_cells_of_one_broker_at_the_edge_take_others_with_clients_of_their_own(
    sizes: dict[str, int], edges: tuple[str, ...], spreading: str
) -> None:
    cells = {cell: tuple(f"{cell}{number}" for number in range(size)) for cell, size in sizes.items()}
    plan = CellPlan(cells, tuple((edge[0], edge[1]) for edge in edges), ())
    assert "".join(cell for cell in cells if spreads(plan, cell)) == spreading
