"""All brokers of a structured overlay fail and come back: one of them founds it anew, and events arrive again."""

import dataclasses
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from murmur_pubsub.errors import WireError
from murmur_pubsub.places import RingPlace
from murmur_virtual.run import play_virtual
from murmuration.deployment.build_deployment import build
from murmuration.runs.manifest import manifest_of
from murmuration.scenario.load import check_scenario
from routing.founding import Founding, Outside, founded_us
from spark_analysis.plain_judge import Judgement, judge_journal

ROUTINGS = ("irbr", "scribe", "rpf", "vinifera", "ferry")
BROKERS = 6
NAMES = [f"b{number}" for number in range(BROKERS)]
SUBSCRIBERS = 2
"""Of each broker."""


def judged(folder: Path, routing: str, faults: Sequence[Mapping[str, str]]) -> Judgement:
    """A run of fourteen seconds. What `recovery_limit` excuses ends five seconds after the last fault."""
    data = {
        "name": "refounded",
        "runtime": "virtual",
        "seed": 3,
        "overlay": {"kind": "structured", "brokers": BROKERS, "probe": "200 ms", "probe_timeout": "100 ms"},
        "workload": {
            "kind": "zipf", "clients": BROKERS, "publications": 140, "rate_per_s": 10, "publishers": 2,
            "subscribers_per_actor": SUBSCRIBERS,
        },
        "broker": {"routing": routing, "reliability": "best_effort"},
        "failure_detection": {"heartbeat": "100 ms", "timeout": "300 ms", "reconnect": "20 ms"},
        "datagrams": {"delay": "1 ms"},
        "recovery_limit": "5 s",
        "faults": sorted(faults, key=lambda entry: int(entry["at"].split()[0])),
    }  # fmt: skip
    loaded = check_scenario(data, "refounded")
    built = build(loaded)
    play_virtual(built.deployment, folder, lambda *_: None)
    manifest = dataclasses.replace(manifest_of(loaded, built), status="complete", writers={})
    return judge_journal(manifest, folder)


def killed_and_back(names: Sequence[str], away: str = "") -> list[Mapping[str, str]]:
    """These are killed within half a second, and all but one come back within two more."""
    rng = random.Random(3)
    kills = [{"at": f"{rng.randrange(1_000, 1_500)} ms", "kill": name} for name in names]
    return [*kills, *({"at": f"{rng.randrange(2_000, 4_000)} ms", "restart": name} for name in names if name != away)]


@pytest.mark.parametrize("routing", ROUTINGS)
def test_an_overlay_whose_brokers_have_all_failed_is_founded_anew(tmp_path: Path, routing: str) -> None:
    judgement = judged(tmp_path, routing, killed_and_back(NAMES))
    assert judgement.numbers["verdict"] == "valid", judgement.numbers["reason"]
    assert len(judgement.excused) < judgement.pairs.required


@pytest.mark.parametrize("routing", ROUTINGS)
def test_another_broker_founds_it_if_the_first_founder_stays_away(tmp_path: Path, routing: str) -> None:
    judgement = judged(tmp_path, routing, killed_and_back(NAMES, away="b0"))
    assert judgement.numbers["verdict"] == "valid", judgement.numbers["reason"]
    last = max(event for event, _ in judgement.pairs.required_pairs)
    missing = {subscriber // SUBSCRIBERS for event, subscriber in judgement.pairs.missing if event == last}
    assert missing == {0}, "only those of the one that stays away"


@pytest.mark.parametrize("routing", ROUTINGS)
def test_a_part_of_the_old_overlay_that_was_only_silent_is_found(tmp_path: Path, routing: str) -> None:
    stalled = {"at": "900 ms", "stall": "b5", "for": "6000 ms"}
    judgement = judged(tmp_path, routing, [stalled, *killed_and_back(NAMES[:-1])])
    assert judgement.numbers["verdict"] == "valid", judgement.numbers["reason"]


# --------------------------------------------------------------------------------- who founds it, and when
def together(names: list[str], peers: dict[str, list[str]], rng: random.Random, turns: int) -> list[str]:
    """Which of these founds an overlay when all wait from some turn on, asking their peers in turn."""
    nodes = {name: Founding(name, peers[name], True) for name in names}
    begins = {name: rng.randrange(6) for name in names}
    founders = []
    for turn in range(turns):
        for name in rng.sample(names, len(names)):
            if turn < begins[name]:
                continue
            asked = peers[name][turn % len(peers[name])]
            if asked in nodes and turn >= begins[asked]:
                source, to, said = asked, name, nodes[asked].asked_by(name)
                while (answer := nodes[to].heard(source, said)) is not None:
                    source, to, said = to, source, answer
            if nodes[name].turn():
                founders.append(name)
        if founders:
            break
    return founders


@pytest.mark.parametrize("seed", range(40))
def test_one_of_those_that_wait_founds_the_overlay(seed: int) -> None:
    rng = random.Random(seed)
    names = [f"n{number}" for number in range(rng.randrange(2, 14))]
    peers = {name: rng.sample([each for each in names if each != name], min(4, len(names) - 1)) for name in names}
    assert len(together(names, peers, rng, turns=60)) == 1


def test_of_two_peers_one_may_be_dead_for_good() -> None:
    """irbr/best_effort 1302336: two of three brokers came back, and waited for the third for ever."""
    node = Founding("a", ["b", "c"], True)
    node.asked_by("b")
    assert any(node.turn() for _ in range(20))


def test_a_node_that_hears_from_less_than_half_of_its_peers_goes_on_waiting() -> None:
    node = Founding("a", ["b", "c", "d"], True)
    for _ in range(100):
        node.asked_by("b")
        assert not node.turn()
    node.asked_by("c")
    assert node.turn()


def test_a_node_whose_peers_are_silent_goes_on_waiting() -> None:
    node = Founding("a", ["b"], True)
    node.asked_by("b")
    turns = [node.turn() for _ in range(100)]
    assert turns.index(True) == 7, "four requests for its peer, and four more"
    assert not any(turns[8:]), "what the peer said is too old"


def test_a_node_that_starts_for_the_first_time_passes_on_names_and_founds_nothing() -> None:
    node = Founding("a", ["b"], False)
    for _ in range(100):
        node.asked_by("b")
        assert not node.turn()
    assert node.heard("b", Outside("b", 1)) is None
    assert node.asked_by("c") == Outside("b", 1)


def test_the_name_of_a_node_that_has_failed_again_is_forgotten() -> None:
    node = Founding("b", ["c"], True)
    node.heard("c", Outside("a", 0))
    turns = []
    for _ in range(40):
        node.asked_by("c")
        turns.append(node.turn())
    assert turns.index(True) == 9 + 7, "nobody speaks of it; then as if it had just begun"


def test_an_answer_of_the_overlay_ends_the_wait() -> None:
    node = Founding("a", ["b"], True)
    for _ in range(7):
        node.asked_by("b")
        assert not node.turn()
    node.answered()
    assert not any(node.turn() for _ in range(20)), "who had waited is let in too, or speaks again"
    node.answered()
    turns = []
    for _ in range(9):
        node.asked_by("b")
        turns.append(node.turn())
    assert turns.index(True) == 7, "as if it had just begun"


def test_an_age_that_cannot_be_is_refused() -> None:
    with pytest.raises(WireError, match="age of -1"):
        Founding("b", ["c"], True).heard("c", Outside("a", -1))


@pytest.mark.parametrize(("turns", "is_taken"), [(8, True), (9, False)])
def test_a_name_is_as_good_as_the_patience_is_long(turns: int, is_taken: bool) -> None:
    """Four turns for its peer, and four more: after that nobody waits for a founder of whom was only said."""
    node = Founding("b", ["c"], True)
    node.heard("c", Outside("a", turns))
    assert (node.asked_by("c").first == "a") == is_taken


@pytest.mark.parametrize(
    ("said", "taken", "answer"),
    [
        (Outside("a", 8), "a", None),
        (Outside("c", 0), "b", Outside("b", 0)),
        (Outside("", 0), "b", Outside("b", 0)),
        (Outside("b", 0), "b", None),
        (Outside("b", 3), "b", Outside("b", 0)),
        (Outside("a", 9), "b", None),
    ],
    ids=[
        "an earlier name",
        "a later one",
        "none",
        "its own",
        "its own, older",
        "one of whom nobody has heard for long",
    ],
)
def test_a_node_takes_an_earlier_name_and_tells_its_own_to_who_does_not_know_it(
    said: Outside, taken: str, answer: Outside | None
) -> None:
    node = Founding("b", ["d"], True)
    assert node.heard("d", said) == answer
    assert node.asked_by("d").first == taken


def test_of_a_name_the_younger_word_counts() -> None:
    node = Founding("b", ["d"], True)
    for turns, told in ((4, 4), (6, 4), (2, 2)):
        node.heard("d", Outside("a", turns))
        assert node.asked_by("d") == Outside("a", told)
    node.turn()
    assert node.asked_by("d") == Outside("a", 3), "it has grown older"
    assert node.heard("d", Outside("a", 5)) == Outside("a", 3)


def test_only_peers_that_it_asks_count_as_those_that_wait_with_it() -> None:
    node = Founding("a", ["b"], True)
    for _ in range(20):
        node.asked_by("stranger")
        assert not node.turn()
    assert node.asked_by("stranger") == Outside("", 0)
    node.remembered = ("stranger",)
    assert node.asked_by("stranger") == Outside("a", 0)


def test_an_overlay_is_founded_within_the_time_that_is_allowed_for_it() -> None:
    """The first by name of five peers has heard of one that has failed again, and is patient once more after that."""
    node = Founding("b", [f"c{number}" for number in range(5)], True)
    node.heard("c0", Outside("a", 0))
    turns = 0
    for turns in range(1, 1_000):  # noqa: B007
        for peer in range(5):
            node.asked_by(f"c{peer}")
        if node.turn():
            break
    place = RingPlace(0, probe_timeout_us=100_000)
    assert turns == 25 + 24
    assert founded_us(place) == (48 + 2 * 6) * 100_000, "then the others ask each of theirs, and some wait for these"
