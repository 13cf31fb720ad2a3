"""Scenario files: an error names the file, the line, the key, what was found and what is allowed."""

import re
from pathlib import Path

import pytest

from murmur_pubsub.errors import InputError
from murmuration.deployment.build import build_overlay
from murmuration.deployment.build_deployment import build
from murmuration.deployment.protocols import choose_protocols
from murmuration.runs.own_modules import find_own_modules
from murmuration.scenario.durations import parse_duration
from murmuration.scenario.load import SCENARIO_FOLDER, LoadedScenario, check_scenario, load_scenario
from murmuration.sweeps.plan import read_sweep

GOOD = "name: small\noverlay:\n  kind: balanced\n  brokers: 4\nworkload:\n  kind: zipf\n  clients: 4\n"


def load(tmp_path: Path, text: str, *overrides: str) -> LoadedScenario:
    path = tmp_path / "scenario.yaml"
    path.write_text(text)
    return load_scenario(path, overrides)


def built(tmp_path: Path, text: str, *overrides: str) -> None:
    build(load(tmp_path, text, *overrides))


@pytest.mark.parametrize("path", sorted(SCENARIO_FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_built_in_scenarios_are_valid(path: Path) -> None:
    loaded = load_scenario(path)
    assert choose_protocols(loaded, build_overlay(loaded)).promise
    assert load_scenario(Path(path.stem)).scenario.description


@pytest.mark.parametrize(
    ("text", "line", "key", "found", "allowed"),
    [
        (GOOD + "broker: {ruoting: flooding}\n", 8, "broker.ruoting", "unknown key", "routing"),
        (GOOD + "seeds: 3\n", 8, "seeds", "unknown key", "seed"),
        (GOOD + "seed: 3\nseed: 4\n", 9, "seed", "a second one (the first is in line 8)", "once"),
        (GOOD + "seed: many\n", 8, "seed", "'many'", "integer"),
        (GOOD + f"seed: {2**63}\n", 8, "seed", str(2**63), "less than 9223372036854775808"),
        (GOOD + "links:\n  loss: 1.5\n", 9, "links.loss", "1.5", "less than or equal to 1"),
        (GOOD + "links:\n  delay: 5\n", 9, "links.delay", "5", "a time"),
        (GOOD + "drain: {quiet: 3 weeks}\n", 8, "drain.quiet", "3 weeks", "us, ms, s, min, h"),
        (GOOD.replace("brokers", "borkers"), 4, "overlay.borkers", "unknown key", "brokers"),
        (GOOD.replace("balanced", "torus"), 3, "overlay.kind", "'torus'", "balanced"),
        (GOOD.replace("clients: 4", "clients: x"), 7, "workload.clients", "'x'", "integer"),
        (GOOD + "broker: {routing: floding}\n", 8, "broker.routing", "'floding'", "forwarding"),
        (GOOD + "broker: {routing: 'no.such:thing'}\n", 8, "broker.routing", "no.such", "dotted path"),
        (GOOD + "broker: {matching: btree}\n", 8, "broker.matching", "'btree'", "bitset"),
    ],
)
def test_a_mistake_is_named_with_line_and_key(
    tmp_path: Path, text: str, line: int, key: str, found: str, allowed: str
) -> None:
    with pytest.raises(InputError) as caught:
        built(tmp_path, text)
    assert caught.value.place == f"{tmp_path / 'scenario.yaml'}, line {line}, key {key}"
    assert found in caught.value.found
    assert allowed in caught.value.allowed


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("overlay: [1, 2\n", "line 2"),
        ("- a\n- b\n", "list"),
        ("name: x\n", "key overlay: found nothing"),
        (GOOD.replace("brokers: 4", "brokers: 0"), "overlay.brokers: found 0"),
        (GOOD.replace("clients: 4", "clients: 4\n  matching_rate: 2"), "workload.matching_rate: found 2"),
    ],
)
def test_other_mistakes_are_named_too(tmp_path: Path, text: str, found: str) -> None:
    with pytest.raises(InputError) as caught:
        built(tmp_path, text)
    assert found in str(caught.value)


def test_a_missing_file_names_the_built_in_scenarios() -> None:
    with pytest.raises(InputError, match="default"):
        load_scenario(Path("no-such-scenario"))


def test_routing_that_needs_a_tree_is_refused_on_a_cycle(tmp_path: Path) -> None:
    (tmp_path / "ring.txt").write_text("a b\nb c\nc a\n")
    text = GOOD.replace("kind: balanced\n  brokers: 4", f"kind: file\n  path: {tmp_path / 'ring.txt'}")
    with pytest.raises(InputError, match="acyclic overlay"):
        built(tmp_path, text)


@pytest.mark.parametrize(
    ("override", "place"),
    [
        ("overlay.brokers=0", "--set overlay.brokers=0, key overlay.brokers"),
        ("overlay={kind: chain, brokers: 0}", "--set overlay={kind: chain, brokers: 0}, key overlay.brokers"),
        ("broker.routing=nowhere", "--set broker.routing=nowhere, key broker.routing"),
        ("links.los=1", "--set links.los=1, key links.los"),
        ("nosuch.key=1", "--set nosuch.key=1, key nosuch"),
        (
            "broker.parameters.epidemic.algorithm=push",
            "--set broker.parameters.epidemic.algorithm=push, key broker.parameters.epidemic",
        ),
    ],
)
def test_an_error_about_an_option_names_the_option_and_no_line_of_the_file(
    tmp_path: Path, override: str, place: str
) -> None:
    with pytest.raises(InputError) as caught:
        built(tmp_path, GOOD, override)
    assert caught.value.place == place


def test_a_key_that_an_option_made_useless_is_named_with_the_option(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        built(tmp_path, GOOD, "overlay.kind=cells")
    words = r"--set overlay\.kind=cells, against .*yaml, line \d+, key overlay\.brokers"
    assert re.fullmatch(words, caught.value.place)


def test_an_error_about_what_an_option_left_alone_names_the_line_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        built(tmp_path, GOOD.replace("brokers: 4", "brokers: 0"), "overlay.degree=4")
    assert re.search(r"yaml, line \d+, key overlay.brokers$", caught.value.place)


def test_overrides_change_keys_and_are_checked_as_well(tmp_path: Path) -> None:
    loaded = load(tmp_path, GOOD, "overlay.brokers=7", "links.delay={uniform: [1 ms, 2 ms]}", "seed=9")
    assert len(build(loaded).overlay.brokers) == 7
    assert loaded.scenario.links.delay.high_us == 2_000
    assert loaded.scenario.seed == 9
    with pytest.raises(InputError, match="key=value"):
        load(tmp_path, GOOD, "nonsense")
    with pytest.raises(InputError, match="a section"):
        load(tmp_path, GOOD, "name.first=x")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("5 ms", 5_000), ("2s", 2_000_000), ("0.5 min", 30_000_000), ("250 us", 250), ("1 h", 3_600_000_000)],
)
def test_times_carry_their_unit(text: str, expected: int) -> None:
    assert parse_duration(text) == expected


CELLS = """name: cells
overlay:
  kind: cells
  cells: {p: [p1], m: [b1, b2], s: [s1]}
  links: [[p, m], [m, s]]
workload: {kind: paced, publishers: {p1: 1}, subscribers: {s1: 1}}
broker:
  routing: cells
  reliability: gryphon
  parameters: {gryphon: {pubends: {p1: 2}}}
"""


@pytest.mark.parametrize(
    ("change", "by", "place", "found"),
    [
        ("routing: cells", "routing: flooding", "key broker", "flooding"),
        ("{p1: 2}", "{b1: 2}", "key broker.parameters.gryphon.pubends.b1", "no broker that takes clients"),
        ("{p1: 2}", "{p1: 2, p1: 3}", "key broker.parameters.gryphon.pubends.p1", "a second one"),
        ("{p1: 2}", "{s1: 2}", "key workload", "publishers at p1"),
        ("publishers: {p1: 1}", "publishers: {b1: 1}", "workload.publishers.b1", "no such broker"),
        ("[[p, m], [m, s]]", "[[p, m], [m, s]]\n  redundancy: {m: 3}", "overlay.redundancy.m", "2 brokers"),
        ("[[p, m], [m, s]]", "[[p, m], [m, s]]\n  redundancy: {m: 2}\n  without: [[b1, s1]]",
         "overlay.redundancy.m", "1 links between m and s"),
        ("[[p, m], [m, s]]", "[[p, m]]", "overlay.links", "1 links of 3 cells"),
        ("[b1, b2]", "[b1, p1]", "overlay.cells.p", "'p1'"),
        ("[[p, m], [m, s]]", "[[p, m], [m, x]]", "overlay.links", "'x'"),
        ("kind: cells\n  cells: {p: [p1], m: [b1, b2], s: [s1]}\n  links: [[p, m], [m, s]]", "kind: ring\n  brokers: 4",
         "key broker.routing", "'cells' on an overlay with cycles"),
    ],
)  # fmt: skip
def test_cells_that_cannot_be_are_refused(tmp_path: Path, change: str, by: str, place: str, found: str) -> None:
    assert change in CELLS
    with pytest.raises(InputError) as caught:
        built(tmp_path, CELLS.replace(change, by))
    assert place in caught.value.place, caught.value
    assert found in caught.value.found, caught.value


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("seed: " + 5_000 * "9", f", line 1, column 7: found {40 * '9'}, which is no number that can be read"),
        ("name: x\nseed: 2020-99-99", ", line 2, column 7: found 2020-99-99, which is no date"),
        ("name: x\ndescription: &a [*a]", ", line 2, key description: found a value within itself"),
        ("seed: " + 1_200 * "[", ": found brackets in brackets without an end; allowed: at most 40 levels"),
        ("name: x\nseed: \x07", ", line 2: found the character '\\x07'; allowed: characters that can be printed"),
        ("", ": found nothing; allowed: a mapping of keys"),
        ("- x", ": found a list; allowed: a mapping of keys"),
        ("name: @x", ", line 1, column 7: found character '@' that cannot start any token; allowed: a YAML mapping"),
        ("a: 1\n---\nb: 1", ", line 2, column 1: found another document; allowed: a YAML mapping"),
    ],
    ids=["digits", "date", "loop", "brackets", "control", "empty", "list", "token", "documents"],
)
def test_what_is_no_yaml_of_keys_is_named_with_its_line(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(InputError) as caught:
        load(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path / 'scenario.yaml'}{told}")


@pytest.mark.parametrize("value", [5_000 * "9", "2020-99-99", 1_200 * "[", "&a [*a]"])
def test_nor_does_a_changed_value_end_in_a_traceback(tmp_path: Path, value: str) -> None:
    with pytest.raises(InputError) as caught:
        load(tmp_path, GOOD, f"seed={value}")
    assert len(str(caught.value)) < 250


BY_HAND = "overlay: {kind: chain, brokers: 2}\nworkload:\n  kind: by_hand\n  clients:\n    "
RANDOM = "faults:\n- random: {every: 1 s, until: 9 s, kinds: []}\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            GOOD + "links:\n  delay: {uniform: [3 ms, 1 ms]}\n",
            "line 9, key links.delay: found {'uniform': ['3 ms', '1 ms']}; allowed: [low, high], low at most high",
        ),
        (GOOD + RANDOM, "key faults.0.random.kinds: found an empty list; allowed: one kind or more"),
        (GOOD + "seed: true\n", "line 8, key seed: found True; allowed: a valid integer"),
        (GOOD + "links: {loss: '0.1'}\n", "line 8, key links.loss: found '0.1'; allowed: a valid number"),
        (
            GOOD.replace("small", "a/b"),
            "line 1, key name: found 'a/b'; allowed: letters, digits, '-' and '_', 60 at most",
        ),
        (GOOD + "links: 5\n", "line 8, key links: found 5; allowed: a mapping of keys"),
        (GOOD + "seed: 2020-01-01\n", "line 8, key seed: found 2020-01-01; allowed: a valid integer"),
        (BY_HAND + "a/b: b1\n", "key workload.clients: found the client 'a/b'; allowed: names of letters, digits,"),
        (BY_HAND + "../../evil: b1\n", "key workload.clients: found the client '../../evil'; allowed: names of"),
        (BY_HAND + "a b: b1\n", "key workload.clients: found the client 'a b'; allowed: names of letters, digits,"),
        (BY_HAND + "driver: b1\n", "key workload.clients: found the client 'driver'; allowed: names of"),
        (BY_HAND + "b0: b1\n", "key workload.clients.b0: found a name in use; allowed: a name that no broker has"),
    ],
)
def test_a_wrong_value_is_named_at_its_own_key(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(InputError) as caught:
        built(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path / 'scenario.yaml'}, ")
    assert told in str(caught.value)


def test_paths_and_pairs_are_written_as_texts_and_lists(tmp_path: Path) -> None:
    churn = load(tmp_path, GOOD + "churn: {trace: some.avt, window: [0, 2.5], who: [b0]}\n").scenario.churn
    assert churn is not None
    assert (churn.trace, churn.window, churn.who) == (Path("some.avt"), (0, 2.5), ["b0"])


def test_a_program_may_give_a_tuple_for_a_list() -> None:
    data = {"overlay": {"kind": "chain"}, "workload": {"kind": "by_hand"}, "newcomers": ("b7",), "faults": ()}
    assert check_scenario(data, "test").scenario.newcomers == ["b7"]


def test_numbers_with_an_exponent_are_numbers_and_clients_may_be_numbered(tmp_path: Path) -> None:
    assert load(tmp_path, GOOD + "links: {loss: 1e-3}\n").scenario.links.loss == 0.001
    built(tmp_path, BY_HAND + "c7: b1\n    alice-2.x: b0\n")


@pytest.mark.parametrize("found", [Path("loop.yaml"), Path("a" * 5_000)], ids=["a link to itself", "a long name"])
def test_a_file_that_cannot_be_found_ends_in_no_traceback(
    found: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("loop.yaml").symlink_to("loop.yaml")
    find_own_modules(found)
    for read in (load_scenario, read_sweep):
        with pytest.raises(InputError, match=r"found what cannot be read \((Too many levels|File name too)") as caught:
            read(found)
        assert len(caught.value.place) <= 200


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            GOOD.replace("brokers: 4", "brokers: 99999999999"),
            "line 4, key overlay.brokers: found 99999999999; allowed: at least 1, at most 1,000,000: each takes",
        ),
        (
            GOOD + "faults:\n- random: {every: 1 us, until: 100000 h}\n",
            "key faults.0.random.every: found '1 us'; allowed: a time of which at most a million are in all",
        ),
    ],
)
def test_what_would_go_on_until_memory_is_full_is_refused_with_the_reason(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(InputError) as caught:
        built(tmp_path, text)
    assert told in str(caught.value)
