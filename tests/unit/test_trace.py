"""`murmur trace`: one event's way, put together from the journal."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from murmur_pubsub.errors import InputError
from murmuration.commands.main import application
from murmuration.commands.trace import judged, trace_event
from murmuration.runs.driver import execute
from murmuration.scenario.load import check_scenario
from spark_analysis.event_way import EventMessage, EventWay, Visit, follow
from spark_analysis.lamport import VISITS_MAX, draw_way
from spark_analysis.table_columns import TABLES
from spark_analysis.way_text import visit_words, way_lines


def paced(brokers: int, events: int = 40) -> dict[str, Any]:
    """One publisher, one subscriber at each broker, which wants everything."""
    subscribers = {f"b{number}": 1 for number in range(brokers)}
    return {
        "kind": "paced", "publishers": {"b0": 1}, "subscribers": subscribers, "rate_per_s": 100,
        "seconds": events / 100, "share": 1.0,
    }  # fmt: skip


CHAIN: dict[str, Any] = {
    "name": "chain",
    "seed": 3,
    "runtime": "virtual",
    "overlay": {"kind": "chain", "brokers": 4},
    "workload": paced(4),
    "links": {"delay": "2 ms"},
    "client_links": {"delay": "1 ms"},
}  # fmt: skip


def played(folder: Path, **changes: Any) -> Path:
    execute(check_scenario({**CHAIN, **changes}, "test"), folder / "run", lambda *_: None)
    return folder / "run"


def way_of_each(run: Path) -> list[EventWay]:
    return [follow(run, 0, number) for number in range(40)]


def test_an_event_that_meets_nothing_is_followed_to_every_subscriber(tmp_path: Path) -> None:
    way = follow(played(tmp_path), 0, 7)
    first, second = way.visits[0], way.visits[1]
    assert first.published
    assert first.node.startswith("c")
    assert second.cause is not None
    assert (second.cause.kind, second.cause.sender) == ("Publication", first.node)
    assert sorted(visit.node for visit in way.visits if visit.delivered) == ["c1", "c2", "c3", "c4"]
    assert {visit.node for visit in way.visits} == {"b0", "b1", "b2", "b3", "c0", "c1", "c2", "c3", "c4"}
    assert all(message.received is not None and message.loss is None for message in way.messages)
    for message in way.messages:
        assert message.sent is not None
        assert message.received is not None
        delay_us = message.received.time_us - message.sent.time_us
        assert delay_us == (1_000 if "c" in message.sender + message.receiver else 2_000)
    assert sum(1 for _ in way.messages) == len(way.visits) - 1
    text = "\n".join(way_lines(way))
    assert "publishes it; Publication to b" in text
    assert "4 deliveries, the last after " in text
    assert "8 messages, 0 lost" in text


def test_losses_and_copies_are_where_the_link_model_made_them(tmp_path: Path) -> None:
    run = played(tmp_path, links={"delay": "2 ms", "loss": 0.2, "duplication": 0.2})
    ways = way_of_each(run)
    lost = [message for way in ways for message in way.messages if message.loss is not None]
    copies = [message for way in ways for message in way.messages if message.copy]
    assert {message.loss for message in lost} == {"lost by the link"}
    assert all(message.received is None for message in lost)
    assert copies
    assert all(message.received is not None and message.received.cause is message for message in copies)
    unlucky = next(way for way in ways if any(message.loss for message in way.messages))
    assert "(lost by the link)" in "\n".join(way_lines(unlucky))
    doubled = next(way for way in ways if any(message.copy for message in way.messages))
    assert "(a copy of the link's)" in "\n".join(way_lines(doubled))


def test_a_kill_shows_where_the_event_ended(tmp_path: Path) -> None:
    faults = [{"at": "100 ms", "kill": "b1", "for": "100 ms"}]
    detection = {"heartbeat": "50 ms", "timeout": "150 ms"}
    run = played(tmp_path, faults=faults, failure_detection=detection, links={"delay": "20 ms"})
    ways = way_of_each(run)
    incidents = {incident.text for way in ways for incident in way.incidents}
    assert "kill b1 (at 100\u202fms of publishing)" in incidents
    reasons = {message.loss for way in ways for message in way.messages}
    assert {"the node is down"} <= reasons or {"the link is down"} <= reasons
    met = next(way for way in ways if way.incidents)
    assert any("* kill b1" in line for line in way_lines(met))


def test_without_hops_in_the_journal_it_says_what_is_not_known(tmp_path: Path) -> None:
    way = follow(played(tmp_path, journal="deliveries"), 0, 3)
    assert not way.has_messages
    assert len([visit for visit in way.visits if visit.delivered]) == 4
    assert any("journal: deliveries" in line for line in way_lines(way))


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_the_diagram_has_a_line_for_each_node(tmp_path: Path, ending: str) -> None:
    way = follow(played(tmp_path), 0, 0)
    path = tmp_path / f"way.{ending}"
    assert draw_way(way, path) == len(way.visits)
    assert path.stat().st_size > 5_000
    if ending == "svg":
        drawn = path.read_text()
        assert all(f"<!-- {name} -->" in drawn for name in ("b0", "b3", "c0", "c3"))


def test_a_long_way_is_drawn_up_to_a_bound(tmp_path: Path) -> None:
    overlay = {"kind": "star", "brokers": 120}
    way = follow(played(tmp_path, overlay=overlay, workload=paced(120, 1)), 0, 0)
    assert len(way.visits) > VISITS_MAX
    assert draw_way(way, tmp_path / "way.svg") == VISITS_MAX


def test_the_command_prints_the_way_and_what_the_judge_found(tmp_path: Path) -> None:
    run = played(tmp_path)
    done = CliRunner().invoke(application, ["trace", str(run), "0:5"])
    assert done.exit_code == 0, done.output
    assert "what the judge found is not kept here: murmur analyze writes it" in done.output
    assert (run / "trace-0-5.svg").exists()
    findings = run / "analysis" / "findings.csv"
    findings.parent.mkdir()
    findings.write_text(
        f"{','.join(TABLES['findings'].columns)}\n"
        "out_of_order,0:5,0,5,,2,c2,1,2,1,delivered after 0:6,link b0-b1,0\n"
        "missing,0:6,0,6,,2,c2,1,,1,wanted by TRUE,,0\n"
    )
    assert list(judged(findings, "0:5")) == [
        "judged: out of order at subscriber 2 (c2): delivered after 0:6; explained by link b0-b1"
    ]
    assert list(judged(findings, "0:7")) == ["judged: nothing missing, duplicate, spurious or out of order"]


@pytest.mark.parametrize(
    ("event", "out", "message"),
    [
        ("five", "way.svg", "event: found 'five'; allowed: PUBLISHER:NUMBER"),
        ("0:40", "way.svg", r"event 0:40: found no such publication; allowed: .* such as 0:39"),
        ("9:1", "way.svg", r"event 9:1: found no such publication; allowed: .*publishers 0 to 0"),
        ("0:1", "way.txt", r"--out: found .*way.txt; allowed: a file that ends with .svg, .png, .pdf"),
        ("0:1", "nowhere/way.svg", r"nowhere/way.svg: found a place that cannot be written"),
    ],
)
def test_bad_input_is_named(tmp_path: Path, event: str, out: str, message: str) -> None:
    run = played(tmp_path)
    with pytest.raises(InputError, match=message):
        trace_event(run, event, tmp_path / out)
    with pytest.raises(InputError, match="no such folder"):
        trace_event(tmp_path / "no run", "0:1", None)


def test_what_is_sent_again_and_again_is_said_once() -> None:
    lost = [EventMessage("b0", "b1", "Data", 1, loss="lost by the link") for _ in range(1_200)]
    came = EventMessage("b0", "b1", "Data", 1, received=Visit(2_000, "b1"))
    words = visit_words(Visit(0, "b0", published=True, sent=[*lost, came]))
    assert words == "publishes it; Data to b1 (lost by the link) 1,200 times, b1"
