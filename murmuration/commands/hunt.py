"""What `murmur hunt` says around a hunt: what is hunted, how far it is, what was found, how to go on."""

import dataclasses
import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.status import Status

from murmur_pubsub.errors import InputError, RunError
from murmuration.commands.console import RunProgress
from murmuration.hunt.chunk import Quarry
from murmuration.hunt.folder import HuntFolder
from murmuration.hunt.hunt import PLAY_PIECE, Hunt, HuntLimits, Work
from murmuration.hunt.live import differences, play_both
from murmuration.hunt.quarries import all_pairs, quarry_of_scenario
from murmuration.hunt.summary import write_summary
from murmuration.hunt.why import PLAY_FORKS, find_why
from murmuration.hunt.why_report import write_why
from murmuration.runs.own_modules import find_own_modules
from murmuration.scenario.load import load_scenario
from murmuration.sweeps.tasks import Cores, ends_of_tasks

_LOG_EVERY_S = 5.0
_SHOWN = 20


class HuntCutShort(RunError):
    """A hunt that ended early; the same command goes on with it."""


def go_hunting(
    scenario: Path | None,
    routing: Sequence[str],
    reliability: Sequence[str],
    variant: Sequence[str],
    limits: HuntLimits,
    cores: Cores,
    out: Path,
    seed: int,
    guided: bool,
    properties: Sequence[str],
    as_json: bool,
) -> None:
    """Hunt; exits with 1 if anything was found."""
    out = out.resolve()
    find_own_modules(*([scenario] if scenario is not None else []))
    drawn = quarries_of(scenario, routing, reliability, variant)
    quarries = [dataclasses.replace(each, properties=tuple(properties)) for each in drawn]
    folder = HuntFolder(out)
    hunt = Hunt(quarries, folder, limits, seed, guided)
    with HuntProgress(limits, quiet=as_json) as progress:

        def ends(work: Work) -> Iterator[Any]:
            progress.say("starting Ray")
            return ends_of_tasks(PLAY_PIECE, work, cores, out, progress.begun)

        try:
            hunt.run(ends, progress.tell)
        except (KeyboardInterrupt, OSError, RunError) as error:
            why = "interrupted" if isinstance(error, KeyboardInterrupt) else str(error)
            kept = f"what was found and reached is kept in {out}: the same command goes on"
            raise HuntCutShort(f"{why}\n{kept}") from error
    _tell(hunt, folder, as_json)
    if hunt.found.all:
        raise typer.Exit(1)


def quarries_of(
    scenario: Path | None, routing: Sequence[str], reliability: Sequence[str], variant: Sequence[str]
) -> list[Quarry]:
    """What is to be hunted; raises `InputError`."""
    if scenario is not None:
        if routing or reliability or variant:
            found, allowed = "a scenario, and protocols", "the one or the other: a scenario names its protocols"
            raise InputError("--routing, --reliability, --variant", found, allowed)
        return [quarry_of_scenario(scenario)]
    return all_pairs(routing, reliability, variant)


def ask_why(file: Path, forks: int, cores: Cores, out: Path | None, properties: Sequence[str]) -> None:
    """Say when the scenario in the file became certain to fail."""
    if forks < 2:
        raise InputError("--forks", str(forks), "2 or more")
    find_own_modules(file)
    loaded = load_scenario(file)
    folder = out or (file.parent if file.is_file() else Path.cwd())
    with RunProgress(quiet=False) as progress:

        def ends(work: Iterable[Any]) -> Iterator[Any]:
            progress.step("starting Ray", 0, 0)
            return ends_of_tasks(PLAY_FORKS, work, cores, folder.resolve(), lambda: None)

        why = find_why(loaded.data, forks, ends, progress.step, properties)
    print(write_why(why, loaded.data, folder), end="")
    print(f"plot: {folder / 'why.svg'}")


def compare_live(file: Path, out: Path | None) -> None:
    """Play the scenario in the file in virtual time and live, and say what differs; exits with 1 if one of the two is
    not valid."""
    find_own_modules(file)
    loaded = load_scenario(file)
    folder = out or (file.parent if file.is_file() else Path.cwd())
    with RunProgress(quiet=False) as progress:
        played = play_both(loaded.data, folder, progress.step)
    for line in differences(played):
        print(line)
    print(f"run folders: {', '.join(str(each.folder) for each in played.values())}")
    if any(each.verdict != "valid" for each in played.values()):
        raise typer.Exit(1)


class HuntProgress:
    """How far a hunt is; on a terminal a line that changes, elsewhere one every few seconds."""

    def __init__(self, limits: HuntLimits, quiet: bool) -> None:
        self._limits = limits
        self._console = Console(stderr=True, quiet=quiet)
        live = not quiet and sys.stderr.isatty()
        self._status = Status("", console=self._console) if live else None
        self._logged = 0.0

    def __enter__(self) -> "HuntProgress":
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def begun(self) -> None:
        """Ray is up."""
        self.say("hunting")

    def say(self, words: str) -> None:
        """Show these words now."""
        if self._status is not None:
            self._status.update(escape(words))
        else:
            self._console.print(escape(words), highlight=False)

    def tell(self, hunt: Hunt, now_s: float) -> None:
        """Show how far it is."""
        now = time.monotonic()
        if self._status is None and now - self._logged < _LOG_EVERY_S:
            return
        self._logged = now
        self.say(f"{line_of(hunt)}, {self._left(hunt, now_s)} left")

    def _left(self, hunt: Hunt, now_s: float) -> str:
        limits = self._limits
        if limits.seconds is not None:
            return f"{max(0.0, limits.seconds - now_s):,.0f} s"
        assert limits.schedules is not None
        per_second = hunt.state.schedules / hunt.state.seconds if hunt.state.seconds else 0.0
        left = limits.schedules - hunt.state.schedules
        return f"{left / per_second:,.0f} s" if per_second else f"{left:,} schedules"


def line_of(hunt: Hunt) -> str:
    """How far it is, in a line."""
    state = hunt.state
    shrinking = f", {len(hunt.to_shrink)} being shrunk" if hunt.to_shrink else ""
    lost = f", {len(state.lost)} chunks lost" if state.lost else ""
    return (
        f"{state.schedules:,} schedules, {state.per_cpu_hour:,.0f} a CPU hour, {hunt.places:,} places reached, "
        f"{len(hunt.found.all)} findings{shrinking}{lost}"
    )


def _tell(hunt: Hunt, folder: HuntFolder, as_json: bool) -> None:
    summary, out = write_summary(hunt, folder), folder.folder
    if as_json:
        print(json.dumps(summary))
        return
    console = Console()
    console.print(line_of(hunt), highlight=False)
    for finding in hunt.found.all[:_SHOWN]:
        schedules = finding.record["schedules"]
        told = f"{escape(finding.words)} ({schedules:,} schedules)"
        console.print(f"[red]{escape(finding.pair)}[/red]: {told}", highlight=False)
        console.print(f"  {finding.folder / 'scenario.yaml'}", highlight=False, soft_wrap=True)
    for lost in hunt.state.lost[:_SHOWN]:
        console.print(f"lost: {escape(lost)}", highlight=False)
    console.print(f"coverage: {out / 'coverage.txt'}, curve: {out / 'curve.svg'}", highlight=False, soft_wrap=True)
