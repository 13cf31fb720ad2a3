"""What a node of the gossip overlay takes for true of others: what they have installed, and who is next to it."""

from types import SimpleNamespace
from typing import Any

import pytest

from murmur_pubsub.errors import InputError
from murmur_pubsub.filter import EVERYTHING
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.machine import LinkDown, NodeContext, Received, Send, Start, TimerFired
from murmur_pubsub.places import RingPlace
from routing.smallworld.contacts import Contacts
from routing.smallworld.messages import Beat, BeatAnswer, Exchange, GossipPeer, Install, Shuffle
from routing.smallworld.neighbours import SelectedNeighbours
from routing.smallworld.profile import ANY_ATTRIBUTE, attribute_key
from routing.smallworld.ring import RING_SIZE
from routing.vinifera.hashing import AttributeDomain
from routing.vinifera.interests import OwnInterests
from routing.vinifera.parameters import ViniferaParameters
from routing.vinifera.router import VINIFERA, Vinifera
from tests.parameters import parameters_of

ROUND = TimerFired(("routing", "round"))
PLACE = RingPlace(0, base=4, digits=8, founds=True)
WANTED = [1, 10, 20, 0]


def beat(identifier: int, incarnation: int = 0, version: int = 0) -> Beat:
    return Beat(identifier, incarnation, 0, [], 0, 0, version, 0)


def node_with_installed() -> Vinifera:
    """A node at which y has installed version 1 of what it wants."""
    router = Vinifera(NodeContext("n", 1, place=PLACE), ViniferaParameters())
    router.handle(Start([]), 0)
    router.handle(Received("y", beat(RING_SIZE // 8)), 1)
    router.handle(Received("y", Install(0, 1, 0, WANTED, [EVERYTHING])), 2)
    assert router.installation.wanted() == {(1, EVERYTHING): [(10, 20)]}
    return router


def test_vinifera_s4c_a_neighbour_that_is_back_wants_nothing_until_it_says_so() -> None:
    router = node_with_installed()
    router.handle(Received("y", beat(RING_SIZE // 8, incarnation=1)), 3)
    assert router.installation.wanted() == {}


def test_vinifera_s4c_a_neighbour_that_is_gone_wants_nothing() -> None:
    router = node_with_installed()
    router.handle(LinkDown("y", "gone"), 3)
    assert router.installation.wanted() == {}


@pytest.mark.parametrize(("version", "rounds", "held"), [(1, 8, True), (2, 3, True), (2, 4, False)])
def test_vinifera_s4c_what_is_not_confirmed_for_three_rounds_is_wanted_no_more(
    version: int, rounds: int, held: bool
) -> None:
    """y goes on with heartbeats; with version 2 in them it says that what is here does not hold any more."""
    router = node_with_installed()
    for number in range(rounds):
        router.handle(ROUND, 10 * number + 3)
        router.handle(Received("y", beat(RING_SIZE // 8, version=version)), 10 * number + 4)
    assert bool(router.installation.wanted()) == held
    assert bool(len(router.table)) == held


def test_vinifera_s4b2_the_ring_has_neighbours_that_have_answered_and_nodes_that_link_here() -> None:
    contacts = Contacts(["neighbour", "silent"], inbound_max=2)
    answer = BeatAnswer(0, 0, 0, [], 0, 0, 0, 0, False)
    for at, name in enumerate(("neighbour", "silent", "linked", "stranger"), 1):
        contacts.hear(name, answer._replace(identifier=100 * at), 1)
    contacts.answered("neighbour")
    before = contacts.ring(0)
    assert contacts.ring(0) is before, "nothing has changed"
    for name in ("silent", "linked"):
        contacts.beat_by(name, 1)
    assert contacts.ring(0) is not before, "a node that links here is on it"
    after = [contacts.successor(own) for own in (0, 150, 250, 350)]
    assert [contact and contact.name for contact in after] == ["neighbour", "linked", "linked", "neighbour"]


def overlay_of(friend_links: int, peers: dict[str, tuple[int, str]]) -> Vinifera:
    """A node at 0 that knows the peers at these places of the ring, with what they want."""
    parameters = ViniferaParameters(degree=2 + friend_links, friend_links=friend_links)
    router = Vinifera(NodeContext("n", 1, place=PLACE), parameters)
    router.handle(Start([]), 0)
    router.know([GossipPeer(name, 0, at, profile(text)) for name, (at, text) in peers.items()])
    return router


def profile(text: str) -> bytes:
    return OwnInterests({}, NodeContext("", 1).random("")).change([parse_filter(text)])


NO_NEWS = Exchange(("after", 0, RING_SIZE // 100, b"", 0, 0), [], True)
AROUND = {"before": (RING_SIZE - 100, "y = 1"), "after": (RING_SIZE // 100, "y = 1")}


def test_vinifera_s4b1_who_wants_something_else_looks_for_other_friends() -> None:
    middle = RING_SIZE // 2
    router = overlay_of(1, {**AROUND, "low": (middle, "x < 5"), "high": (middle + 1, "x > 90")})
    for text, friend in (("x < 4", "low"), ("x > 95", "high"), ("x < 3", "low")):
        router.subscribe(parse_filter(text))
        router.handle(Received("after", NO_NEWS), 1)
        assert set(router.overlay.neighbours) == {"before", "after", friend}
        router.unsubscribe(parse_filter(text))


def test_vinifera_s4b5_who_has_moved_looks_for_those_next_to_it_there() -> None:
    tenth = RING_SIZE // 10
    router = overlay_of(0, {**AROUND, "third": (3 * tenth, "TRUE"), "sixth": (6 * tenth, "TRUE")})
    assert set(router.overlay.neighbours.ring) == {"before", "after"}
    router.overlay.move(5 * tenth, 0)
    router.handle(Received("after", NO_NEWS), 1)
    assert set(router.overlay.neighbours.ring) == {"third", "sixth"}


def test_vinifera_s4b5_who_hears_that_a_neighbour_has_moved_looks_for_another_in_its_place() -> None:
    tenth = RING_SIZE // 10
    router = overlay_of(0, {**AROUND, "third": (3 * tenth, "TRUE"), "sixth": (6 * tenth, "TRUE")})
    router.handle(Received("before", NO_NEWS), 1)
    assert set(router.overlay.neighbours.ring) == {"before", "after"}
    router.handle(Received("after", beat(5 * tenth)), 2)
    router.handle(Received("before", NO_NEWS), 3)
    assert set(router.overlay.neighbours.ring) == {"before", "third"}


def test_no_attributes_number_is_that_of_any_attribute() -> None:
    """The checksum of "" is 0."""
    assert ANY_ATTRIBUTE == 0
    assert attribute_key("") == 1


def test_vinifera_s4b1_one_better_peer_in_the_view_is_enough_to_select_anew() -> None:
    """Whether it comes before or after others that are no better."""
    for names in (("poor", "good"), ("good", "poor")):
        selection: Any = SimpleNamespace(
            ring=(),
            prefers=lambda own, peer: peer.name == "good",
            select=lambda own, peers, before: [name for name in peers if name == "good"],
        )
        neighbours, contacts = SelectedNeighbours(selection), Contacts([], inbound_max=2)
        own = GossipPeer("own", 0, 0, b"")
        neighbours.consider(own, [], {}, contacts, 1)
        view = {name: (GossipPeer(name, 0, 5, b""), 1) for name in names}
        assert neighbours.consider(own, [], view, contacts, 2) is not None
        assert list(neighbours) == ["good"]


def test_vinifera_s4b1_a_table_says_how_many_rounds_ago_each_peer_spoke_for_itself() -> None:
    router = overlay_of(0, AROUND)
    for number in range(2):
        router.handle(ROUND, 10 * number + 1)
        router.handle(Received("before", beat(RING_SIZE - 100)), 10 * number + 2)
    asked = NO_NEWS._replace(answer=False)
    sent = [each.message for each in router.handle(Received("after", asked), 30) if isinstance(each, Send)]
    (table,) = [each.table for each in sent if isinstance(each, Exchange)]
    assert {name: age for name, *_, age in table} == {"before": 0, "after": 2}


@pytest.mark.parametrize("least", [{"small_world_links": -1}, {"friend_links": -1}, {"shuffled": 0}])
def test_numbers_that_no_overlay_can_have_are_refused(least: dict[str, int]) -> None:
    (at,) = least.values()
    with pytest.raises(InputError, match=f"at least {at + 1}"):
        parameters_of(VINIFERA, least)
    parameters_of(VINIFERA, {name: number + 1 for name, number in least.items()})


@pytest.mark.parametrize("least", [{"beta": -1}, {"balance_rounds": 0}])
def test_numbers_that_no_balance_can_have_are_refused(least: dict[str, int]) -> None:
    (at,) = least.values()
    with pytest.raises(InputError, match=f"from {at + 1} on"):
        parameters_of(VINIFERA, least)
    parameters_of(VINIFERA, {name: number + 1 for name, number in least.items()})


def test_vinifera_s4b1_candidates_are_the_neighbours_and_the_random_peers_each_once() -> None:
    """The ranking of the primary attribute (Algorithm 1) counts them, so that a node named twice would count twice."""
    others = {f"n{number}": (number * RING_SIZE // 10, "x = 1") for number in range(1, 9)}
    overlay = overlay_of(1, others).overlay
    assert len(overlay.neighbours) == 3
    assert sorted(peer.name for peer in overlay.candidates) == sorted(others)


def test_vinifera_s4e_who_has_moved_away_has_no_load_of_its_former_range() -> None:
    router = overlay_of(0, {})
    for value in (1, 2, 3):
        router.load.add(value)
    router.on_moved_away()
    assert router.load.events == 0


def test_a_subscription_is_registered_where_events_without_the_attributes_it_wants_absent_come_by() -> None:
    domains = {name: AttributeDomain(name, 0, 100) for name in ("x", "y")}
    interests = OwnInterests(domains, NodeContext("", 1).random(""))
    wanted, absent = parse_filter("x > 50 AND y IS NULL"), parse_filter("y IS NULL")
    interests.change([wanted])
    assert interests.regions() == {(attribute_key("x"), absent): [(domains["x"].hash(50), RING_SIZE - 1)]}
    interests.change([absent])
    everywhere = [(ANY_ATTRIBUTE, absent), (attribute_key("x"), absent), (attribute_key("y"), absent)]
    assert list(interests.regions()) == everywhere


def test_a_node_that_knows_nobody_is_the_overlay_when_it_is_back() -> None:
    router = Vinifera(NodeContext("n", 1, incarnation=1, place=PLACE), ViniferaParameters())
    router.handle(Start([]), 0)
    assert router.overlay.joined


def test_vinifera_s4c_the_answer_to_a_heartbeat_says_that_there_is_a_link_once_anything_is_installed_there() -> None:
    router = overlay_of(0, {})

    def links() -> list[bool]:
        answers = [each.message for each in router.handle(Received("y", beat(9)), 1) if isinstance(each, Send)]
        return [each.links for each in answers if isinstance(each, BeatAnswer)]

    assert links() == [False]
    router.overlay._uplinks.put("y", {})
    assert (router.overlay._uplinks.version("y"), links()) == (1, [True])


def test_of_a_failed_peer_of_which_nothing_but_its_name_is_known_its_first_restart_is_believed() -> None:
    router = overlay_of(0, {})
    router.overlay._uplinks.put("y", {})
    router.handle(LinkDown("y", "gone"), 1)
    for incarnation in (0, 1):
        router.handle(Received("b", Shuffle([("y", incarnation, 9, b"", 0, 0)], False)), 2)
        assert ("y" in {peer.name for peer in router.overlay.candidates}) is bool(incarnation)
