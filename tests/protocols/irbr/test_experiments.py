"""IRBR section 6: the generator's rates, what is counted, and the experiment with failures, on 64 nodes."""

from dataclasses import replace
from pathlib import Path

import pytest

from murmur_pubsub.errors import InputError
from murmur_pubsub.journal import JournalWriter, RowKind
from murmur_pubsub.run_manifest import read_manifest
from murmuration.deployment.build_deployment import build
from murmuration.papers.irbr.live import CHURN_S, FOUND_S, KILL_S, LIVE_BIN_S, IrbrLiveSpec, read_irbr_live
from murmuration.papers.irbr.run import (
    FOUND_US,
    KILL_US,
    PROTOCOLS,
    PUBLISH_UNTIL_US,
    CostSpec,
    FaultSpec,
    measure_operations,
    measure_resilience,
)
from murmuration.papers.irbr.workload import Generator, Rates, measured_rates
from murmuration.papers.lab.judged_run import touched_by_faults
from murmuration.runs.driver import execute
from murmuration.scenario.load import load_scenario


@pytest.mark.parametrize("wanted", [0.01, 0.05, 0.2])
def test_irbr_s6_the_covering_rate_is_reached(wanted: float) -> None:
    generator = Generator(Rates(covering=wanted), 1)
    covering, _ = measured_rates([generator.filter() for _ in range(8_000)], ())
    assert covering == pytest.approx(wanted, rel=0.2)


@pytest.mark.parametrize("wanted", [0.01, 0.1, 0.5])
def test_irbr_s6_the_matching_rate_is_reached(wanted: float) -> None:
    generator = Generator(Rates(matching=wanted), 1)
    filters, events = [generator.filter() for _ in range(300)], [generator.event() for _ in range(300)]
    assert measured_rates(filters, events)[1] == pytest.approx(wanted, rel=0.15)


@pytest.mark.parametrize("rates", [{}, {"covering": 0.1, "matching": 0.1}, {"covering": 0.0}, {"matching": 0.6}])
def test_rates_that_no_settings_reach_are_refused(rates: dict[str, float]) -> None:
    with pytest.raises(InputError):
        Rates(**rates)


@pytest.mark.parametrize("routing", PROTOCOLS)
def test_irbr_s6_costs_are_those_of_the_protocol_and_every_event_arrives(routing: str) -> None:
    cost = measure_operations(CostSpec(routing, 64, Rates(matching=0.2), (16, 48), 25))
    assert (cost.missing, cost.duplicate, cost.spurious) == (0, 0, 0)
    assert cost.required > 200
    assert all(sent >= interested for sent, interested in zip(cost.publish, cost.interested, strict=True))
    if routing == "scribe":
        assert max(cost.subscribe) <= 4, "a way to the rendezvous"
    else:
        assert 40 < cost.subscribe[0] <= 63, "at first hardly anything covers anything"


def test_irbr_s6_covering_makes_subscribing_cheaper_and_scribe_needs_the_fewest() -> None:
    means = {
        routing: measure_operations(CostSpec(routing, 64, Rates(covering=0.5), (20, 120), 0)).subscribe
        for routing in PROTOCOLS
    }
    for routing in ("irbr", "rpf"):
        assert means[routing][1] < means[routing][0] / 2
        assert means["scribe"][0] < means[routing][0]


@pytest.mark.parametrize("routing", [*PROTOCOLS, "irbr_probes"])
def test_irbr_s6_events_are_lost_until_failures_are_found_and_none_afterwards(routing: str) -> None:
    """IRBR finds them when it cannot send, the others with the next round of probes."""
    run = measure_resilience(FaultSpec(routing, 64, 0.25, rate_per_s=40, matching=0.3))
    assert run.rate(1_000_000, KILL_US) == 1
    assert (run.rate(KILL_US + 500_000, FOUND_US) == 1) is (routing == "irbr")
    assert run.rate(FOUND_US + 500_000, PUBLISH_UNTIL_US) == 1
    assert run.duplicate == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("broker.routing=forwarding", "irbr, irbr_members, scribe, rpf"),
        ("overlay.base=6", "power of two"),
        ("overlay.digits=2", "at most 16"),
        ("datagrams=null", "talk by datagrams"),
        ("overlay={kind: chain, brokers: 64}", "kind 'structured'"),
    ],
)
def test_parts_that_do_not_fit_a_structured_overlay_are_refused(change: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        build(load_scenario(Path("irbr"), [change]))


@pytest.mark.parametrize("routing", ["irbr", "rpf"])
def test_what_stayed_up_is_delivered_but_for_the_time_until_failures_are_found(tmp_path: Path, routing: str) -> None:
    """The live run's scenario and what is read from it, in virtual time and at a quarter of the rate."""
    changes = ["runtime=virtual", "workload.publications=750", "workload.rate_per_s=12.5", f"broker.routing={routing}"]
    loaded = load_scenario(Path("irbr-live"), changes)
    execute(loaded, tmp_path / "run", lambda *_: None)
    live = read_irbr_live(IrbrLiveSpec(routing), tmp_path / "run", touched_by_faults(loaded))
    # Bins begin with the first publication, so that the last one before churn reaches into it.
    assert live.rate(0, KILL_S) == live.rate(FOUND_S, CHURN_S - LIVE_BIN_S) == 1
    assert (live.rate(KILL_S, FOUND_S) == 1) is (routing == "irbr")
    assert (live.duplicate, live.spurious) == (0, 0)
    assert len(live.kills) > 25
    assert len(live.starts) > 3
    assert all(made <= due for made, due in zip(live.made, live.required, strict=True))

    begun = read_manifest(tmp_path / "run")
    stray = JournalWriter(tmp_path / "run" / "journal", "b0", 0, incarnation=1_000, run=int(begun.run, 16))
    for _ in range(2):  # an event that nobody asked for, and that twice
        stray.row(50_000_000, RowKind.DELIVER, 0, source=9_999, sequence=0, value=0)
    stray.close()
    again = read_irbr_live(IrbrLiveSpec(routing), tmp_path / "run", touched_by_faults(loaded))
    assert (again.duplicate, again.spurious) == (1, 1)


def test_irbr_s6_a_baseline_that_looks_for_covering_where_a_filter_arrives_needs_more_messages_than_irbr() -> None:
    spec = CostSpec("irbr", 64, Rates(covering=0.2), (10, 60), 0)
    needed = {
        routing: measure_operations(replace(spec, routing=routing)).subscribe[1]
        for routing in ("irbr", "rpf", "rpf_receiver")
    }
    assert needed["rpf_receiver"] > 1.3 * needed["irbr"]
    assert needed["rpf_receiver"] > 1.3 * needed["rpf"]
