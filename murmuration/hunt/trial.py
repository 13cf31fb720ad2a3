"""One schedule: played in virtual time, judged by the plain judge as the analysis judges a run, and what it reached."""

import dataclasses
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from murmur_pubsub.deployment import Deployment
from murmur_pubsub.faults import Fault
from murmur_pubsub.progress import Progress
from murmur_pubsub.promise import DEFAULT_RECOVERY_LIMIT_US
from murmur_virtual.run import VirtualRun
from murmuration.deployment.build_deployment import build
from murmuration.runs.manifest import manifest_of_deployment
from murmuration.scenario.load import check_scenario
from spark_analysis.fault_checks import FaultCheck
from spark_analysis.fault_windows import NEVER_US
from spark_analysis.plain_judge import Judgement, Pair, PlainVerdict, judge_journal

GRACE_US = 1_000_000
LOSSY_LIMIT_US = 10 * DEFAULT_RECOVERY_LIMIT_US
"""Where three messages in ten are lost for ever, a recovery that backs off comes to its end late now and then. A log
with room for 3 messages takes one a second there."""


@dataclass(frozen=True)
class Outcome:
    """What became of a schedule."""

    deployment: Deployment
    judgement: Judgement
    guaranteed: frozenset[Pair]
    """Required pairs that no fault excuses, delivered or not."""

    @property
    def verdict(self) -> PlainVerdict:
        """The findings."""
        return self.judgement.pairs

    @property
    def unexplained(self) -> list[Pair]:
        """Missing pairs that no fault excuses."""
        return self.judgement.left("missing")

    @property
    def checks(self) -> Sequence[FaultCheck]:
        """Whether each fault took effect."""
        return self.judgement.checks


def play_schedule(data: Mapping[str, Any]) -> Outcome:
    """Run the scenario and judge it; raises `InputError` for one that cannot be, and what a protocol raises."""
    return play(deployment_of(data), VirtualRun)


def deployment_of(data: Mapping[str, Any]) -> Deployment:
    """The deployment of a scenario of these keys; raises `InputError`."""
    return build(check_scenario(dict(data), "schedule")).deployment


def play(deployment: Deployment, make: Callable[[Deployment, Path, Progress], VirtualRun]) -> Outcome:
    """Play the run that is made of the deployment, and judge it; raises what a protocol raises."""
    with tempfile.TemporaryDirectory() as folder:
        make(deployment, Path(folder), lambda *_: None).play()
        return judge_faults(deployment, Path(folder))


def judge_faults(deployment: Deployment, journal: Path) -> Outcome:
    """Judge the journal of a run of this deployment, on either runtime. Whether it is whole is not asked."""
    planned = manifest_of_deployment(deployment, "schedule", "virtual")
    manifest = dataclasses.replace(
        planned,
        status="complete",
        writers={},
        withdrawal_grace_us=GRACE_US,
        subscription_grace_us=GRACE_US,
        recovery_limit_us=LOSSY_LIMIT_US if planned.lossy else DEFAULT_RECOVERY_LIMIT_US,
    )
    judgement = judge_journal(manifest, journal)
    excused = {pair for finding, pair in judgement.excused if finding == "missing"}
    return Outcome(deployment, judgement, judgement.pairs.required_pairs - excused)


def in_force_in_recovery(outcome: Outcome) -> list[Fault]:
    """The faults that were in force while what another one had disturbed was being mended."""
    windows, faults = outcome.judgement.windows, outcome.deployment.faults
    return [
        faults[window.step.number]
        for window in windows
        if any(
            window.in_effect_us <= other.until_us and other.repaired_us <= window.undone_us
            for other in windows
            if other is not window and other.repaired_us != NEVER_US
        )
    ]
