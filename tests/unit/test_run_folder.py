"""Where a run goes, and what is said of a place where none can be."""

import re
from pathlib import Path

import pytest

from murmur_pubsub.errors import InputError
from murmur_pubsub.run_manifest import read_manifest
from murmuration.runs.driver import execute
from murmuration.runs.run_folder import default_folder
from murmuration.scenario.load import load_scenario


def test_runs_of_one_scenario_that_start_in_the_same_second_have_folders_of_their_own() -> None:
    first, second = default_folder("parity"), default_folder("parity")
    assert first != second
    assert re.fullmatch(r"runs/parity-\d{8}-\d{6}-\d{6}", str(first))


def test_a_file_is_not_said_to_be_a_folder_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "run").touch()
    with pytest.raises(InputError, match=r"/run: found a file; allowed: the folder of a run$"):
        read_manifest(tmp_path / "run")


def test_a_link_that_leads_nowhere_is_no_run_that_is_already_there(tmp_path: Path) -> None:
    (tmp_path / "run").symlink_to("nowhere")
    with pytest.raises(InputError, match=r"/run: found a link to a folder that is not there; allowed: a new folder"):
        execute(load_scenario(Path("parity"), ["overlay.brokers=2"]), tmp_path / "run", lambda *_: None)
