"""What is done by hand takes effect, is told apart in the manifest, and plays again from the saved scenario."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from murmur_pubsub.errors import InputError
from murmur_pubsub.faults import Fault, FaultKind
from murmur_pubsub.journal import FaultStage, Phase, RowKind, read_side
from murmur_pubsub.journal_rows import read_segment
from murmur_pubsub.run_manifest import read_manifest
from murmuration.deployment.build_deployment import build
from murmuration.runs import hands as hands_module
from murmuration.runs.driver import execute
from murmuration.runs.hands import SAVED, Hands
from murmuration.runs.manifest import manifest_of
from murmuration.runs.run_folder import RunFolder
from murmuration.scenario.load import LoadedScenario, check_scenario, load_scenario
from spark_analysis.plain_judge import judge_run

SCENARIO: dict[str, Any] = {
    "name": "hands",
    "runtime": "virtual",
    "seed": 3,
    "overlay": {"kind": "chain", "brokers": 4},
    "workload": {"kind": "zipf", "clients": 4, "publications": 300, "rate_per_s": 100, "subscribers_per_actor": 3},
    "links": {"delay": {"uniform": ["1 ms", "4 ms"]}},
}


class Script:
    """Orders that are given at times of the run: it is asked as often as the run asks for its pace."""

    def __init__(self, *orders: tuple[int, dict[str, Any]], finish_us: int, stretch_us: int = 7_331) -> None:
        self._orders = list(orders)
        self._finish_us = finish_us
        self._stretch_us = stretch_us
        self.answers: list[Future[str]] = []

    def watched(self, hands: Hands) -> None:
        hands.held = True

        def pace(now_us: int) -> int:
            while self._orders and self._orders[0][0] <= now_us:
                self.answers.append(hands.order(self._orders.pop(0)[1]))
            if not self._orders and now_us >= self._finish_us:
                hands.finish()
            return now_us + self._stretch_us

        hands.pace = pace  # type: ignore[method-assign]


def played(loaded: LoadedScenario, folder: Path, watched: Callable[[Hands], None] | None = None) -> Path:
    return execute(loaded, folder, lambda *_: None, watched=watched).folder


def journal(run: Path) -> tuple[np.ndarray, list[Any]]:
    """All rows and side records; the headers of the files name the run, and are left out."""
    folder = run / "journal"
    rows = [read_segment(path)[1] for path in sorted(folder.glob("*.seg"))]
    return np.concatenate(rows), [each for path in sorted(folder.glob("*.blob")) for each in read_side(path)]


KILLS = ((400_000, {"kill": "b1"}), (1_200_000, {"restart": "b1"}))
HAND_PUBLISHER, HAND_SUBSCRIBER = 4, 12
"""The first numbers that no publisher and no subscriber of the scenario has."""
_CHANGES = (RowKind.SUBSCRIBE, RowKind.UNSUBSCRIBE)
MANY = (
    (100_000, {"stall": "b2"}), (300_000, {"resume": "b2"}), (350_000, {"link": ["b0", "b1"], "loss": 0.4}),
    (500_000, {"slow": "b1", "work": "3 ms"}), (900_000, {"slow": "b1", "work": "0 s"}),
    (1_000_000, {"cut": ["b2", "b3"]}), (1_500_000, {"heal": ["b2", "b3"]}),
    (1_700_000, {"partition": [["b0", "b1"], ["b2", "b3"]]}), (2_000_000, {"unite": True}),
    (2_200_000, {"kill": "c1"}), (2_600_000, {"restart": "c1"}),
)  # fmt: skip


COMMANDS = (
    (200_000, {"subscribe": "c1", "filter": "a0 >= 0"}),
    (250_000, {"subscribe": "c2", "filter": "by = 'hand' OR a0 > 5"}),
    (300_000, {"publish": "c3", "event": {"a0": 4, "by": "hand"}}), (700_000, {"kill": "c1"}),
    (1_100_000, {"restart": "c1"}), (2_000_000, {"publish": "c3", "event": {"a0": 5.5, "by": "hand"}}),
    (2_200_000, {"kill": "b1"}), (2_400_000, {"restart": "b1"}),
    (2_500_000, {"unsubscribe": "c2", "filter": "a0 > 5 OR by = 'hand'"}),
    (2_700_000, {"publish": "c0", "event": {"a0": 1, "by": "hand", "more": True}}),
)  # fmt: skip


@pytest.mark.parametrize("orders", [KILLS, MANY, COMMANDS], ids=["kills", "many", "commands"])
@pytest.mark.parametrize("finish_us", [0, 4_500_000], ids=["as it ends", "held for longer"])
@pytest.mark.parametrize("stretch_us", [7_331, 250_000])
def test_the_saved_scenario_plays_the_same_run_bit_for_bit(
    tmp_path: Path, orders: Any, finish_us: int, stretch_us: int
) -> None:
    script = Script(*orders, finish_us=finish_us, stretch_us=stretch_us)
    by_hand = played(check_scenario(SCENARIO, "test"), tmp_path / "by-hand", script.watched)
    assert [answer.result() for answer in script.answers]
    again = played(load_scenario(by_hand / SAVED), tmp_path / "again")
    (rows, side), (rows_again, side_again) = journal(by_hand), journal(again)
    assert len(rows) == len(rows_again)
    assert rows.tobytes() == rows_again.tobytes()
    assert side == side_again


def test_watching_without_a_hand_on_it_changes_nothing(tmp_path: Path) -> None:
    def watched(hands: Hands) -> None:
        hands.pace = lambda now_us: now_us + 10_007  # type: ignore[method-assign]

    loaded = check_scenario(SCENARIO, "test")
    watched_run = played(loaded, tmp_path / "watched", watched)
    (rows, _), (alone, _) = journal(watched_run), journal(played(loaded, tmp_path / "alone"))
    assert rows.tobytes() == alone.tobytes()
    assert not (watched_run / SAVED).exists()


def test_the_manifest_says_what_was_done_by_hand(tmp_path: Path) -> None:
    scenario = SCENARIO | {"faults": [{"at": "200 ms", "kill": "b3", "for": "300 ms"}]}
    run = played(check_scenario(scenario, "test"), tmp_path / "run", Script(*KILLS, finish_us=0).watched)
    assert [(each.text, each.by_hand) for each in read_manifest(run).faults] == [
        ("kill b3", False), ("restart b3", False), ("kill b1", True), ("restart b1", True),
    ]  # fmt: skip
    saved = load_scenario(run / SAVED).scenario.faults
    assert [next(key for key in each if key not in ("at", "for")) for each in saved] == ["kill", "kill", "restart"]


def test_what_is_published_and_subscribed_to_by_hand_is_owed_as_anything_else_is(tmp_path: Path) -> None:
    """c1 is restarted between its subscription and the second event: it has to know what it subscribed to by hand. The
    last event goes by way of b1, which has come back, and c2 has withdrawn what matches it."""
    saved = played(check_scenario(SCENARIO, "test"), tmp_path / "run", Script(*COMMANDS, finish_us=0).watched)
    again = played(load_scenario(saved / SAVED), tmp_path / "again")
    for run in (saved, again):
        judgement = judge_run(run)
        assert judgement.numbers["verdict"] == "valid"
        assert [check.outcome for check in judgement.checks] == ["took_effect"] * 8  # two of ten steps are repairs
        owed = {pair for pair in judgement.pairs.required_pairs if pair[0][0] >= HAND_PUBLISHER}
        c1, c2 = HAND_SUBSCRIBER, HAND_SUBSCRIBER + 1
        from_c0, from_c3 = HAND_PUBLISHER, HAND_PUBLISHER + 3
        assert {((from_c3, 0), c1), ((from_c3, 0), c2), ((from_c3, 1), c1), ((from_c0, 0), c1)} <= owed
        assert ((from_c0, 0), c2) not in {*owed, *judgement.pairs.delivered}
        assert not owed & set(judgement.pairs.missing)
    planned = load_scenario(saved / SAVED).scenario.faults
    assert [each["subscriber"] for each in planned if "subscribe" in each] == [HAND_SUBSCRIBER, HAND_SUBSCRIBER + 1]


def test_what_the_workload_or_a_hand_subscribed_to_can_be_taken_back_once(tmp_path: Path) -> None:
    """c1 takes back a filter of its script and, of two equal ones by hand, the newer and then the older. Killed and
    started again it has withdrawn the same."""
    loaded = check_scenario(SCENARIO, "test")
    scripted, text = build(loaded).deployment.scripts["c1"].subscriptions[0]
    by_hand = {"filter": "a0 >= 0"}
    script = Script(
        (100_000, {"unsubscribe": "c1", "filter": text}), (150_000, {"unsubscribe": "c1", "filter": text}),
        (200_000, {"subscribe": "c1", **by_hand}), (300_000, {"subscribe": "c1", **by_hand}),
        (400_000, {"unsubscribe": "c1", **by_hand}), (500_000, {"kill": "c1"}), (800_000, {"restart": "c1"}),
        (1_500_000, {"unsubscribe": "c1", **by_hand}), (1_600_000, {"unsubscribe": "c1", **by_hand}), finish_us=0,
    )  # fmt: skip
    run = played(loaded, tmp_path / "run", script.watched)
    refused = [number for number, answer in enumerate(script.answers) if answer.exception() is not None]
    assert refused == [1, 8], "what is withdrawn already"
    first, second = HAND_SUBSCRIBER, HAND_SUBSCRIBER + 1
    rows = journal(run)[0]
    own = rows[(rows["node"] == read_manifest(run).numbers["c1"]) & np.isin(rows["source"], [scripted, first, second])]
    told = [(each["kind"] == RowKind.SUBSCRIBE, each["source"]) for each in own[np.isin(own["kind"], _CHANGES)]]
    before = [(True, scripted), (False, scripted), (True, first), (True, second), (False, second)]
    assert told == [*before, *before, (False, first)]
    assert judge_run(run).numbers["verdict"] == "valid"


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ({"publish": "c9", "event": {"a0": 1}}, "a node of the run"),
        ({"publish": "b1", "event": {"a0": 1}}, "a node that can"),
        ({"publish": "c1"}, "no `event`"),
        ({"publish": "c1", "event": "a0 = 1"}, "attributes and their values"),
        ({"publish": "c1", "event": {}}, "one attribute or more"),
        ({"publish": "c1", "event": {"a0": [1]}}, "a finite number of at most 64 bits, a text or a boolean"),
        ({"publish": "c1", "event": {"a0": 1}, "filter": "a0 > 1"}, "an unknown key"),
        ({"subscribe": "c1", "filter": "a0 >"}, "filter"),
        ({"subscribe": "c1", "filter": 7}, "a filter, such as"),
        ({"subscribe": "c1", "filter": "a0 > 1", "subscriber": 2}, "which has a filter"),
        ({"unsubscribe": "c1", "filter": "a0 > 1.25"}, "a filter that c1 subscribed to and has not withdrawn"),
        ({"unsubscribe": "c1"}, "what to unsubscribe from"),
        ({"kill": "b9"}, "b9"),
        ({"restart": "b1"}, "a restart of b1, which is up"),
        ({"heal": ["b0", "b1"]}, "which was not cut"),
        ({"cut": ["b0", "b3"]}, "with a link between them"),
        ({"kill": "b1", "restart": "b2"}, "2 of them"),
        ({}, "0 of them"),
        ({"random": {"every": "1 s", "until": "2 s"}}, "one thing to do now"),
        ({"kill": "b3"}, "which is down then"),
        ({"link": ["b0", "b1"], "loss": 7}, "loss"),
        ({"kill": 3}, "name of a node"),
    ],
)
def test_what_cannot_take_effect_is_refused_in_a_sentence_and_the_run_goes_on(
    tmp_path: Path, order: dict[str, Any], words: str
) -> None:
    """The kill of b3 could take effect now, but then the plan's own kill of it could not."""
    scenario = SCENARIO | {"faults": [{"at": "2 s", "kill": "b3"}]}
    script = Script((400_000, order), finish_us=0)
    run = played(check_scenario(scenario, "test"), tmp_path / "run", script.watched)
    with pytest.raises(InputError, match=words):
        script.answers[0].result()
    assert read_manifest(run).status == "complete"
    assert not (run / SAVED).exists()


def test_brokers_that_talk_by_datagrams_alone_are_divided_by_hand(tmp_path: Path) -> None:
    """Nothing that one side sent to the other arrives until they are united."""
    scenario = SCENARIO | {
        "overlay": {"kind": "structured", "brokers": 4}, "broker": {"routing": "irbr"}, "datagrams": {"delay": "2 ms"},
    }  # fmt: skip
    del scenario["links"]
    script = Script((500_000, {"partition": [["b0", "b1"]]}), (1_500_000, {"unite": True}), finish_us=0)
    run = played(check_scenario(scenario, "test"), tmp_path / "run", script.watched)
    assert [answer.result() for answer in script.answers][1] == "unite took effect"
    rows, numbers = journal(run)[0], read_manifest(run).numbers
    side = [number for name, number in numbers.items() if name in ("b0", "b1", "c0", "c1")]
    took_effect = rows[(rows["kind"] == RowKind.FAULT) & (rows["hops"] == FaultStage.IN_EFFECT)]["time_us"]
    arrived = rows[rows["kind"] == RowKind.RECEIVE]
    across = arrived[np.isin(arrived["node"], side) != np.isin(arrived["peer"], side)]["time_us"]
    assert len(across) > 0
    assert not ((across > took_effect[0] + 2_000) & (across <= took_effect[1])).any()


C0_DIED, C1_DIED = (Fault(1_000_000, FaultKind.KILL, (name,)) for name in ("c0", "c1"))
HOST_WENT, HOST_CAME = Fault(1_000_000, FaultKind.LOSE_HOST, host=1), Fault(2_000_000, FaultKind.RETURN_HOST, host=1)
ITS_ACTOR = {"density": 2, "faults": [{"at": "2 s", "kill_actor": "c0", "for": "1 s"}]}
ON_HOSTS = {"hosts": 2, "last_mile": "broker"}


@pytest.mark.parametrize(
    ("keys", "observed", "name", "runs"),
    [
        ({}, [C0_DIED], "c0", False),
        ({}, [C1_DIED], "c0", True),
        ({"faults": [{"at": "1500 ms", "kill": "c0", "for": "1 s"}]}, [C0_DIED], "c0", True),
        (ITS_ACTOR, [C0_DIED, C1_DIED], "c0", True),
        ({"density": 2, "faults": ITS_ACTOR["faults"]}, [replace(C0_DIED, time_us=4_000_000)], "c0", False),
        (ON_HOSTS, [HOST_WENT], "b1", False),
        (ON_HOSTS, [HOST_WENT], "b0", True),
        (ON_HOSTS, [HOST_WENT, HOST_CAME], "b1", True),
    ],
)
def test_who_died_by_itself_takes_no_order_until_it_is_back(
    tmp_path: Path, keys: dict[str, Any], observed: list[Fault], name: str, runs: bool
) -> None:
    loaded = check_scenario(SCENARIO | keys, "test")
    built = build(loaded)
    hands = Hands(loaded, built.deployment, RunFolder.make(tmp_path / "run", manifest_of(loaded, built)))
    hands.observed = dict(enumerate(observed, len(built.deployment.faults)))
    answer = hands.order({"publish": name, "event": {"a0": 1}})
    assert (hands.take(5_000_000, 9) is not None) == runs
    assert runs or "where the process has died" in str(answer.exception())


@pytest.mark.parametrize("killed", [False, True], ids=["died", "died, and killed after that"])
def test_who_died_by_itself_is_started_again_by_hand(tmp_path: Path, killed: bool) -> None:
    plan = {"faults": [{"at": "4 s", "kill": "c0"}]} if killed else {}
    loaded = check_scenario(SCENARIO | plan, "test")
    built = build(loaded)
    hands = Hands(loaded, built.deployment, RunFolder.make(tmp_path / "run", manifest_of(loaded, built)))
    hands.observed = {len(built.deployment.faults): replace(C0_DIED, nodes=("c1", "c0"))}
    for number, (at_us, order) in enumerate([(5_000_000, {"restart": "c0"}), (6_000_000, {"kill": "b1"})], 9):
        answer = hands.order(order)
        assert hands.take(at_us, number) is not None, answer.exception()
        hands.done(number, None)
    saved = load_scenario(tmp_path / "run" / SAVED)
    assert [each.kind.name for each in build(saved).deployment.faults] == ["KILL", "RESTART", "KILL"]
    refused = hands.order({"restart": "c0"})
    assert hands.take(7_000_000, 11) is None
    assert "a restart of c0, which is up" in str(refused.exception())


def test_an_order_that_comes_too_late_is_refused(tmp_path: Path) -> None:
    kept: list[Hands] = []

    def watched(hands: Hands) -> None:
        Script(finish_us=0).watched(hands)
        kept.append(hands)

    played(check_scenario(SCENARIO, "test"), tmp_path / "run", watched)
    with pytest.raises(InputError, match="after the end of publishing"):
        kept[0].order({"kill": "b1"}).result()


def test_a_paused_run_stands_still_and_takes_orders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hands_module, "_LOOK_S", 0.002)
    kept: list[Hands] = []
    ready = threading.Event()

    def watched(hands: Hands) -> None:
        hands.set_pace(speed=1_000.0, paused=True)
        kept.append(hands)
        ready.set()

    thread = threading.Thread(target=played, args=(check_scenario(SCENARIO, "test"), tmp_path / "run", watched))
    thread.start()
    ready.wait(30)
    hands = kept[0]
    assert hands.order({"kill": "b1"}).result(30) == "kill b1 took effect"
    assert hands.order({"restart": "b1"}).result(30) == "restart b1 took effect"
    first, second = (each["at"] for each in load_scenario(tmp_path / "run" / SAVED).scenario.faults)
    assert int(second.split()[0]) - int(first.split()[0]) < 10, "the time of a paused run stands still"
    with pytest.raises(InputError, match="pace"):
        hands.set_pace(speed=0)
    hands.finish()
    thread.join(60)
    assert read_manifest(tmp_path / "run").status == "complete"


def test_publishing_goes_on_as_long_as_the_scenario_says(tmp_path: Path) -> None:
    run = played(check_scenario(SCENARIO | {"lasts": "7 s"}, "test"), tmp_path / "run")
    rows = journal(run)[0]
    phases = rows[rows["kind"] == RowKind.PHASE]
    begin, end = (int(phases[phases["value"] == each]["time_us"][0]) for each in (Phase.PUBLISHING, Phase.DRAINING))
    assert end - begin == 7_000_000


@pytest.mark.ray
@pytest.mark.slow
def test_hands_on_a_live_run_take_effect_and_play_again_in_virtual_time(tmp_path: Path) -> None:
    """Killed and brought back on live actors while it publishes; the saved scenario does the same."""
    scenario = SCENARIO | {"runtime": "ray", "overlay": {"kind": "chain", "brokers": 3}}
    scenario["workload"] = SCENARIO["workload"] | {"clients": 2, "rate_per_s": 40, "publications": 200}
    answers: list[str] = []
    failures: list[BaseException] = []

    def act(hands: Hands) -> None:
        try:
            for order in (
                {"subscribe": "c1", "filter": "by = 'hand'"}, {"kill": "c1"}, {"restart": "c1"},
                {"publish": "c0", "event": {"by": "hand"}}, {"unsubscribe": "c1", "filter": "by = 'hand'"},
                {"kill": "b1"}, {"restart": "b1"}, {"cut": ["b0", "b1"]}, {"heal": ["b0", "b1"]},
            ):  # fmt: skip
                answers.append(hands.order(order).result(120))
            with pytest.raises(InputError, match="pace"):
                hands.set_pace(speed=2.0)
            with pytest.raises(InputError, match="which is up"):
                hands.order({"restart": "b1"}).result(120)
        except BaseException as error:
            failures.append(error)
        finally:
            hands.finish()

    def watched(hands: Hands) -> None:
        threading.Thread(target=act, args=(hands,), daemon=True).start()

    run = played(check_scenario(scenario, "test"), tmp_path / "live", watched)
    assert failures == []
    assert answers == [
        "subscribe at c1: by = 'hand' took effect",
        "kill c1 took effect",
        "restart c1 took effect",
        "publish at c0: by = 'hand' took effect",
        "unsubscribe at c1: by = 'hand' took effect",
        "kill b1 took effect",
        "restart b1 took effect",
        "cut b0-b1 took effect",
        "heal b0-b1 took effect",
    ]
    faults = read_manifest(run).faults
    assert [(each.text, each.by_hand) for each in faults] == [
        (text.removesuffix(" took effect"), True) for text in answers
    ]
    rows = journal(run)[0]
    in_effect = rows[(rows["kind"] == RowKind.FAULT) & (rows["hops"] == FaultStage.IN_EFFECT)]
    assert sorted(in_effect["sequence"].tolist()) == list(range(9))
    judgement = judge_run(run)
    assert {check.outcome for check in judgement.checks} <= {"took_effect", "not_exercised"}
    subscribed = rows[(rows["kind"] == RowKind.SUBSCRIBE) & (rows["source"] == read_manifest(run).faults[0].issuer)]
    assert subscribed["sequence"].tolist() == [subscribed["sequence"][0]] * 2, "once more after the restart"
    again = played(load_scenario(run / SAVED, ["runtime=virtual"]), tmp_path / "again")
    assert [each.text for each in read_manifest(again).faults] == [each.text for each in faults]
    assert [each.time_us for each in read_manifest(again).faults] == [each.time_us for each in faults]


@pytest.mark.parametrize(
    ("planned", "order", "keys"),
    [
        ([{"at": "2500 ms", "slow": "b1", "work": "0 s"}], {"slow": "b1", "work": "5 ms"}, {}),
        (
            [{"at": "1500 ms", "lose_host": 1}, {"at": "2 s", "return_host": 1}],
            {"kill": "b2"},
            {"hosts": 2, "placement": {"b2": 1, "b3": 1}},
        ),
    ],
    ids=["slow", "kill"],
)
def test_what_is_done_by_hand_is_ended_by_a_later_step_of_the_plan(
    tmp_path: Path, planned: list[dict[str, Any]], order: dict[str, Any], keys: dict[str, Any]
) -> None:
    loaded = check_scenario({**SCENARIO, **keys, "faults": planned}, "test")
    run = played(loaded, tmp_path / "run", Script((1_000_000, order), finish_us=3_000_000).watched)
    judgement = judge_run(run)
    assert judgement.numbers["verdict"] == "valid", (judgement.numbers["reason"], judgement.checks)
    assert [check.until_us is None for check in judgement.checks] == [False] * len(judgement.checks)


def test_a_node_of_a_lost_host_that_is_started_elsewhere_is_not_silent_any_more(tmp_path: Path) -> None:
    planned = [{"at": "1 s", "lose_host": 1}, {"at": "1500 ms", "restart": "b2"}, {"at": "2 s", "return_host": 1}]
    keys = {"hosts": 2, "placement": {"b2": 1, "b3": 1}, "faults": planned}
    judgement = judge_run(played(check_scenario({**SCENARIO, **keys}, "test"), tmp_path / "run"))
    assert judgement.numbers["verdict"] == "valid", (judgement.numbers["reason"], judgement.checks)
    [check] = judgement.checks
    assert check.seen == "silent for 1.00 s; silent for 0.50 s"
