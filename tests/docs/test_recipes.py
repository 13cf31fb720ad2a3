"""The recipes for CI and containers name what is there, and install what the project needs."""

import re
import tomllib

import yaml

from murmuration.commands.doctor import examine
from tests.docs.printed_pages import ROOT, PrintedCommand, PrintedFile, steps_of

STEPS = list(steps_of((ROOT / "docs" / "in-your-places.md").read_text()))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def least_python() -> tuple[int, int]:
    major, minor = PROJECT["requires-python"].removeprefix(">=").split(".")
    return int(major), int(minor)


def test_the_workflow_runs_the_suite_as_the_page_does() -> None:
    (workflow,) = (step for step in STEPS if isinstance(step, PrintedFile))
    (job,) = yaml.safe_load(workflow.text)["jobs"].values()
    typed = [step.command for step in STEPS if isinstance(step, PrintedCommand)]
    install, suite = (step["run"] for step in job["steps"] if "run" in step)
    assert suite in typed
    installed = install.split("-c murmur/")[1].split()[0]
    assert (ROOT / installed).is_file()
    (python,) = (step["with"]["python-version"] for step in job["steps"] if "setup-python" in step.get("uses", ""))
    assert tuple(map(int, python.split("."))) >= least_python()


def test_the_image_has_the_python_and_java_that_are_asked_for() -> None:
    recipe = (ROOT / "Dockerfile").read_text()
    python = re.search(r"^FROM python:(\d+)\.(\d+)-", recipe, flags=re.MULTILINE)
    java = re.search(r"openjdk-(\d+)-jre-headless", recipe)
    assert python is not None
    assert java is not None
    assert (int(python[1]), int(python[2])) >= least_python()
    assert int(java[1]) >= 17
    assert any("Java" in finding.what for finding in examine())
    command = re.search(r'^ENTRYPOINT \["(\w+)"\]$', recipe, flags=re.MULTILINE)
    assert command is not None
    assert command[1] in PROJECT["scripts"]
    for path in re.findall(r"/murmur/([\w.]+)", recipe):
        assert (ROOT / path).exists()
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert not {"constraints.txt", "pyproject.toml", "README.md", "murmuration"} & set(ignored)
