"""The examples of the help are commands that there are; what lists something lists it as JSON as well."""

import json
import shlex

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from murmuration.commands.main import application
from murmuration.scenario.load import built_in_scenarios

COMMANDS = get_command(application).commands  # type: ignore[attr-defined]
EXAMPLES = [line for command in COMMANDS.values() for line in (command.epilog or "").split("\n\n")[1:]]


def test_there_are_examples_for_what_is_typed_most() -> None:
    assert {shlex.split(line)[1] for line in EXAMPLES} >= {"run", "init", "trace", "replay", "sweep", "hunt", "paper"}


@pytest.mark.parametrize("line", EXAMPLES)
def test_an_example_has_the_options_that_its_command_takes(line: str) -> None:
    program, name, *arguments = shlex.split(line)
    assert program == "murmur"
    COMMANDS[name].make_context(name, arguments)


def test_an_option_that_there_is_not_would_be_seen() -> None:
    with pytest.raises(Exception, match="--plan"):
        COMMANDS["run"].make_context("run", ["parity", "--plan"])


def test_what_there_is_to_choose_from_is_one_json_line() -> None:
    listed = json.loads(CliRunner().invoke(application, ["list", "--json"]).stdout)
    assert set(listed["scenarios"]) == set(built_in_scenarios())
    assert listed["scenarios"]["parity"]["runtime"] == "virtual"
    assert {"forwarding", "vinifera"} <= set(listed["routing"])


def test_the_doctors_findings_are_one_json_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    told = CliRunner().invoke(application, ["doctor", "--json"])
    assert told.exit_code == 1
    java = json.loads(told.stdout)["Java"]
    assert (java["fine"], java["found"]) == (False, "no java command")
    assert "openjdk" in java["remedy"]
