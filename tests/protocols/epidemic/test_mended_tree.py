"""Push on a tree that breaks and is mended, with long silences: what the endless rounds of Figure 2 would recover."""

from pathlib import Path

import pytest

from tests.protocols.epidemic.mended_trees import judged, play, publish, pushing

CHAIN = {"kind": "chain", "brokers": 3}
STAR = {"kind": "star", "brokers": 5}


@pytest.mark.parametrize("seed", range(12))
def test_epidemic_s4_1_whatever_link_is_down_for_however_long_all_is_recovered(seed: int, tmp_path: Path) -> None:
    """`python -m benchmarks.drawn_tests "mended trees" SEED` plays one again."""
    play(seed, tmp_path)


def test_epidemic_s4_1_what_was_published_after_the_patterns_were_forgotten_is_pushed_once_they_are_back(
    tmp_path: Path,
) -> None:
    """The link is down for longer than patterns linger, and the events are published at the end of that."""
    with pushing(CHAIN, {"p": "b0", "s": "b2"}, tmp_path) as cluster:
        cluster.clients["s"].subscribe("x >= 0")
        cluster.settle()
        cluster.faults.cut("b1", "b2")
        cluster.advance("7 s")
        publish(cluster, 10)
        cluster.faults.heal("b1", "b2")
        cluster.advance("5 s")
        verdict = judged(cluster)
    assert (verdict.pairs.required, verdict.pairs.missing) == (10, [])


@pytest.mark.parametrize("others", [(), ("b3",), ("b3", "b4")])
def test_epidemic_s4_1_a_link_that_comes_up_wakes_all_that_may_have_what_is_lacking_behind_it(
    others: tuple[str, ...], tmp_path: Path
) -> None:
    """Nothing is published after the cut; the dispatcher at the link has nothing cached, and no pattern is new."""
    clients = {"p": "b1", "s": "b2"} | {f"s{broker}": broker for broker in others}
    with pushing(STAR, clients, tmp_path) as cluster:
        for name in clients:
            if name != "p":
                cluster.clients[name].subscribe("x >= 0")
        cluster.settle()
        cluster.faults.cut("b0", "b2")
        cluster.advance("300 ms")
        publish(cluster, 10)
        cluster.advance("8 s")
        cluster.faults.heal("b0", "b2")
        cluster.advance("2 s")
        verdict = judged(cluster)
    assert (verdict.pairs.required, verdict.pairs.missing) == (10 * (1 + len(others)), [])


@pytest.mark.parametrize("wanted", ["x >= 0", "x >= -1"])
def test_a_new_subscriber_gets_none_of_what_an_older_one_at_its_dispatcher_has_recovered(
    wanted: str, tmp_path: Path
) -> None:
    """Events that are lost on a link, then a subscription, then the recovery. The judge would call them spurious."""
    with pushing(CHAIN, {"p": "b0", "old": "b2", "new": "b2"}, tmp_path) as cluster:
        cluster.clients["old"].subscribe("x >= 0")
        cluster.settle()
        cluster.faults.link("b1", "b2", loss=1.0)
        publish(cluster, 5)
        cluster.advance("2 s")
        cluster.clients["new"].subscribe(wanted)
        cluster.advance("100 ms")
        cluster.faults.link("b1", "b2")
        cluster.advance("2 s")
        publish(cluster, 5)
        cluster.advance("2 s")
        assert sorted(each.sequence for each in cluster.clients["new"].deliveries()) == [5, 6, 7, 8, 9]
        assert sorted(each.sequence for each in cluster.clients["old"].deliveries()) == list(range(10))
        verdict = judged(cluster)
    assert (verdict.pairs.required, verdict.pairs.missing, verdict.pairs.spurious) == (15, [], [])
