"""What a user reads when a protocol has broken its contract: where in whose code, on what, and how to see it again."""

import functools
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from murmur_pubsub.protocol_error import ProtocolError, frames_below, overdue_error, protocol_error, unsettled_error


def raised_in(*modules: str) -> BaseException:
    """An error that a function of the last of these modules has raised; the others have called it, one the other."""
    call: Callable[[], object] = functools.partial(int, "wrong")
    for module in reversed(modules):
        space: dict[str, Any] = {"__name__": module, "inner": call}
        exec(compile("def run():\n    return inner()", f"{module}.py", "exec"), space)
        call = space["run"]
    try:
        call()
    except ValueError as error:
        here = error.__traceback__
        return error.with_traceback(here and here.tb_next)  # without this function
    raise AssertionError


@pytest.mark.parametrize(
    ("modules", "place"),
    [
        (("reliability.broker", "mine.router", "routing.router"), "mine.router.py:2, in run"),
        (("mine.outer", "mine.inner", "json.decoder"), "mine.inner.py:2, in run"),
        (("murmur_virtual.run", "routing.outer", "routing.inner", "json"), "routing.inner.py:2, in run"),
        (("murmur_virtual.run", "reliability.outer", "murmur_pubsub.event"), "reliability.outer.py:2, in run"),
        (("murmur_virtual.run", "actors.node", "json"), "json.py:2, in run"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_the_place_is_the_innermost_of_a_users_own_code_or_else_of_a_protocol_or_else_of_any(
    modules: tuple[str, ...], place: str
) -> None:
    error = raised_in(*modules)
    assert protocol_error("b0", 0, 5, "Start", error).place == place
    assert overdue_error("b0", 0, 5, "Start", "9 s", error).place == place


def test_of_wrong_effects_only_a_protocol_s_own_line_is_told() -> None:
    wrong = protocol_error("b0", 0, 5, "Start", raised_in("murmur_virtual.run"), effects=["nothing"])
    assert wrong.what.startswith("handed back 'nothing', which is of type str, as an effect; allowed: Send, ")
    assert wrong.place is None
    assert protocol_error("b0", 0, 5, "Start", raised_in("routing.x"), effects=7).place == "routing.x.py:2, in run"


@pytest.mark.parametrize(("length", "told"), [(300, "[" + 298 * "1" + "]"), (301, "[" + 298 * "1" + "…")])
def test_of_what_is_long_the_beginning_is_told(length: int, told: str) -> None:
    given = [int("1" * (length - 2))]
    assert protocol_error("b0", 0, 5, given, ValueError()).input == told
    assert protocol_error("b0", 0, 5, "in words", ValueError(given)).what == f"raised ValueError: {told}"
    assert overdue_error("b0", 0, 5, given, "9 s", ()).input == told


def test_a_machine_that_does_not_come_back_is_told_with_where_it_is() -> None:
    error = overdue_error("b0", 2, 5, "Start", "9 s", [sys._getframe()])
    assert (error.what, error.input) == ("has not come back after 9 s", "'Start'")
    assert str(error.place).endswith("in test_a_machine_that_does_not_come_back_is_told_with_where_it_is")
    assert overdue_error("b0", 2, 5, "Start", "9 s", []).place is None


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            ProtocolError("b0", 2, 1_234_567, "Start", "raised KeyError: 3", "mine.py:7, in run", "again: so"),
            "the protocol of b0 (incarnation 2) raised KeyError: 3\n  mine.py:7, in run\n  on Start at 1.234567 s\n"
            "  again: so",
        ),
        (
            ProtocolError("b0", 0, None, "its making", "raised KeyError: 3"),
            "the protocol of b0 (incarnation 0) raised KeyError: 3\n  on its making",
        ),
    ],
    ids=["all of it", "no time nor place"],
)
def test_it_is_told_line_by_line(error: ProtocolError, words: str) -> None:
    assert str(error) == words
    assert str(pickle.loads(pickle.dumps(error))) == words, "it comes from another process"


def test_a_machine_for_which_a_run_has_waited_in_vain_is_named() -> None:
    assert str(unsettled_error("b0", 0, 0, "20 s")) == (
        "the protocol of b0 (incarnation 0) has said for 20 s that a subscription is not in effect everywhere\n"
        "  on the question whether it is settling at 0.000000 s"
    )


@pytest.mark.parametrize(
    ("keeps_inputs", "has_scenario", "again"),
    [
        (True, True, "murmur replay {run} {node}"),
        (False, True, "murmur run {run}/scenario.yaml --keep-inputs --out {run}-again, "
                      "then murmur replay {run}-again {node}"),
        (False, False, "start the cluster with keep_inputs=True, then murmur replay {run} {node}"),
    ],
)  # fmt: skip
def test_how_to_see_it_again_depends_on_what_the_run_has_kept(
    tmp_path: Path, keeps_inputs: bool, has_scenario: bool, again: str
) -> None:
    if has_scenario:
        (tmp_path / "scenario.yaml").touch()
    error = ProtocolError("b0", 2, 5, "Start", "raised KeyError: 3", "mine.py:7").in_run(tmp_path, keeps_inputs)
    command = again.format(run=tmp_path, node="--node b0 --incarnation 2")
    assert error.replay == f"run folder: {tmp_path}\n  again, step by step: {command}"
    assert (error.node, error.incarnation, error.time_us, error.input) == ("b0", 2, 5, "Start")
    assert (error.what, error.place) == ("raised KeyError: 3", "mine.py:7")


def test_of_a_thread_only_what_a_machine_runs_is_looked_at() -> None:
    def machine() -> list[FrameType]:
        return part()

    def part() -> list[FrameType]:
        return frames_below(sys._getframe(), frozenset({sought}))

    sought = machine.__code__
    assert [frame.f_code.co_name for frame in machine()] == ["machine", "part"]
    assert part() == [], "no machine runs"
