"""Where a run goes unless told otherwise."""

import re

from murmuration.runs.run_folder import default_folder


def test_runs_of_one_scenario_that_start_in_the_same_second_have_folders_of_their_own() -> None:
    first, second = default_folder("parity"), default_folder("parity")
    assert first != second
    assert re.fullmatch(r"runs/parity-\d{8}-\d{6}-\d{6}", str(first))
