"""Each command of each page is run as it is printed, in the page's order, in one shell and a folder of the page's own.

What it prints is compared with what the page prints. `pytest -s tests/docs/test_printed_commands.py` shows the list.
"""

from pathlib import Path

import pytest

from murmur_pubsub.run_manifest import Lateness
from murmuration.commands.outcome import warn_of_lateness
from tests.docs.printed_pages import ROOT, Outcome, PrintedCommand, PrintedFile, difference, play, steps_of

PAGES = ["README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md"))]
LIVE = ("murmur run", "--murmur-runtime=ray")
SKIPPED = {
    "make setup": "it is what CI begins with",
    "make play": "it sets up first; tests/lessons builds such a folder",
    "murmur run faults": "two minutes of live actors; tests/faults plays such a run",
    "murmur page runs/faults-…": "needs that run; tests/page writes pages of others",
    "murmur serve runs": "it ends when it is interrupted; tests/page asks such a server",
    "murmur run gryphon --watch --runtime virtual": "it waits for a page; tests/page opens one",
    "murmur run social": "needs the recorded graph",
    "murmur run quotes": "needs the recorded quotes",
    "murmur bench --out": "hours; tests/bench plays small ones",
    "murmur bench --seeds": "an hour; tests/bench plays small ones",
    "murmur bench --only": "names a protocol of the reader's own; tests/bench plays small ones",
    "murmur hunt": "minutes to hours; tests/hunt hunts",
    "murmur zoo ": "the tests of tests/zoo visit all of it, on both judges",
    "murmur zoo": "the tests of tests/zoo visit all of it, on both judges",
    "murmur paper": "minutes; tests/papers plays each at its quick size",
    "make bench": "an hour",
    "python -m benchmarks": "minutes to hours",
    "pytest --murmur-runtime=ray": "tests/docs/test_examples.py runs that suite live",
    "cd docs/examples": "tests/docs/test_examples.py runs that suite",
}


def reason_to_skip(command: str) -> str | None:
    """Why a command is not run here (None: it is)."""
    return next((reason for begin, reason in SKIPPED.items() if command.startswith(begin)), None)


def is_live(command: str) -> bool:
    """Does it start actors, so that rates and times are those of this computer?"""
    return command == "murmur run" or "--murmur-runtime=ray" in command


def needs_spark(command: PrintedCommand) -> bool:
    """Does Spark judge?"""
    words = command.command
    judged = words.startswith(("murmur run", "pytest", "murmur analyze")) and "plain" not in words
    return judged and "--no-analysis" not in words and not any(line.startswith("murmur: ") for line in command.output)


def page_steps(page: str) -> list[PrintedFile | PrintedCommand]:
    return list(steps_of((ROOT / page).read_text()))


def marks_of(page: str) -> list[pytest.MarkDecorator]:
    commands = [
        step for step in page_steps(page) if isinstance(step, PrintedCommand) and not reason_to_skip(step.command)
    ]
    marks = [pytest.mark.slow] if commands else []
    if any(is_live(step.command) for step in commands):
        marks.append(pytest.mark.ray)
    if any(needs_spark(step) for step in commands):
        marks.append(pytest.mark.spark)
    return marks


def told(page: str, outcome: Outcome, wrong: str | None) -> str:
    return f"{page:28} {outcome.seconds:5.1f} s  {'as printed' if wrong is None else wrong}: {outcome.command.command}"


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("page", [pytest.param(page, marks=marks_of(page)) for page in PAGES])
def test_the_commands_of_a_page_do_what_it_prints(page: str, tmp_path: Path) -> None:
    steps = page_steps(page)
    skipped = [step for step in steps if isinstance(step, PrintedCommand) and reason_to_skip(step.command)]
    folder = tmp_path / "reader"
    folder.mkdir()
    outcomes = play([step for step in steps if step not in skipped], folder)
    wrongs = [(outcome, difference(outcome, is_live(outcome.command.command))) for outcome in outcomes]
    print()
    for step in skipped:
        assert isinstance(step, PrintedCommand)
        print(f"{page:28}    -  s  not run, {reason_to_skip(step.command)}: {step.command}")
    for outcome, wrong in wrongs:
        print(told(page, outcome, wrong))
    failures = [f"{told(page, each, wrong)}\n{each.output}" for each, wrong in wrongs if wrong is not None]
    assert not failures, "\n".join(failures)


def outcome_of(printed: str, said: str, exit_code: int = 0) -> Outcome:
    (step,) = steps_of(f"```\n$ murmur run\n{printed}\n```\n")
    assert isinstance(step, PrintedCommand)
    return Outcome(step, exit_code, said, 0.0)


@pytest.mark.parametrize(
    ("printed", "said", "exit_code"),
    [
        ("valid: 0 missing", "valid: 1 missing", 0),
        ("first\nsecond", "second\nfirst", 0),
        ("valid: 0 missing", "valid: 0 missing", 1),
        ("invalid: 2 missing", "invalid: 2 missing", 0),
        ("valid: 0 missing", "actors fell up to 40 ms behind: not to be trusted\nvalid: 0 missing", 0),
    ],
)
def test_what_differs_is_seen(printed: str, said: str, exit_code: int) -> None:
    assert difference(outcome_of(printed, said, exit_code), masked=False) is not None


def test_times_of_live_runs_and_what_is_left_out_are_not_compared(capsys: pytest.CaptureFixture[str]) -> None:
    warn_of_lateness(Lateness(1_000, 95, 38_900))
    late = capsys.readouterr().err.strip()
    assert "not to be trusted" in late
    said = f"subscribing\n{late}\nworkload: zipf\n12 publications/s; p50 1.0 ms\nreport: runs/a-1/report.html"
    printed = "300 publications/s; p50 2.0 ms\nreport: runs/a-…/report.html"
    assert difference(outcome_of(printed, said), masked=True) is None
    assert difference(outcome_of(printed, said), masked=False) is not None


def test_every_reason_to_skip_is_used() -> None:
    commands = [step.command for page in PAGES for step in page_steps(page) if isinstance(step, PrintedCommand)]
    unused = [begin for begin in SKIPPED if not any(command.startswith(begin) for command in commands)]
    assert not unused
