"""The analysis of a run whose journal is damaged: nothing is said of the protocol, only what is wrong with the journal.

What a damaged journal shows may be the damage: a lost row looks like a lost event. So there are no counts, the verdict
is `unknown`, and its reason names the first files.
"""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from murmur_pubsub.verdict_file import DAMAGE
from spark_analysis.journal_check import Damage
from spark_analysis.key_figures import KEY_FIGURES, Figures
from spark_analysis.tables import AnalysisFolder
from spark_analysis.verdict import decide_damaged


class DamagedRun:
    """Stands where the analysis of a whole run would."""

    def __init__(self, folder: AnalysisFolder, damages: Sequence[Damage]) -> None:
        self._folder = folder
        self._damages = sorted(damages)

    def judge(self) -> dict[str, Any]:
        """Write the verdict and the table of damages."""
        self._folder.write_frame(DAMAGE, pd.DataFrame(self._damages, columns=list(Damage._fields)))
        verdict = decide_damaged(self._damages)
        self._folder.write_json("verdict", verdict)
        return verdict

    def measure(self) -> None:
        """There is nothing to measure."""

    def key_figures(self) -> Figures:
        """None of them."""
        return dict.fromkeys(KEY_FIGURES)
