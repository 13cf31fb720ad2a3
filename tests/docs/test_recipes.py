"""The recipes for CI and containers name what is there, and install what the project needs."""

import copy
import json
import re
import shlex
import subprocess
import sys
import tomllib
from importlib import metadata, resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from murmuration.commands.doctor import examine
from tests.docs.printed_pages import ROOT, PrintedCommand, PrintedFile, steps_of

STEPS = list(steps_of((ROOT / "docs" / "in-your-places.md").read_text()))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
KUBERAY: dict[str, Any] = yaml.safe_load((ROOT / "docs" / "examples" / "kuberay.yaml").read_text())


SCHEMAS: dict[str, Traversable] = {
    **{
        name: resources.files("check_jsonschema") / "builtin_schemas" / "vendor" / f"{name}.json"
        for name in ("compose-spec", "github-workflows")
    },
    "ray-cluster": Path(__file__).with_name("ray_cluster.schema.json"),
}


def refused(document: Any, schema: str) -> str | None:
    """Why the schema refuses the document; None: it does not."""
    validator = jsonschema.validators.validator_for(rules := json.loads(SCHEMAS[schema].read_text()))(rules)
    return next((error.message for error in validator.iter_errors(document)), None)


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


def linted(recipe: str) -> list[str]:
    """What the linter of Dockerfiles says of a recipe."""
    command = [str(Path(sys.executable).with_name("hadolint")), "--no-color", "-"]
    done = subprocess.run(command, input=recipe, capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.stdout.splitlines()


def test_the_linter_has_nothing_to_say_of_the_image() -> None:
    recipe = (ROOT / "Dockerfile").read_text()
    assert linted(recipe) == []
    careless = recipe.replace("apt-get install -y", "apt-get install").replace("--no-cache-dir ", "")
    assert [line.split()[1] for line in linted(careless)] == ["DL3014", "DL3042"]


def workflow() -> Any:
    (file,) = (step for step in STEPS if isinstance(step, PrintedFile) and step.name == "suite.yaml")
    return json.loads(json.dumps({str(key): value for key, value in yaml.safe_load(file.text).items()}))


def test_the_schemas_take_the_compose_file_the_manifest_and_the_workflow() -> None:
    assert refused(COMPOSE, "compose-spec") is None
    assert refused(KUBERAY, "ray-cluster") is None
    read = workflow()
    assert refused({"on": read.pop("True"), **read}, "github-workflows") is None  # YAML 1.1 reads `on` as true


def test_the_schemas_refuse_what_is_misspelt() -> None:
    compose = copy.deepcopy(COMPOSE)
    compose["services"]["head"]["entrypoin"] = compose["services"]["head"].pop("entrypoint")
    assert refused(compose, "compose-spec") is not None
    misspelt: list[dict[str, Any]] = [
        {"rayStartParam": {}},
        {"rayStartParams": {"num-cpus": 2}},
        {"template": {"spec": {}}},
    ]
    for planted in misspelt:
        manifest = copy.deepcopy(KUBERAY)
        manifest["spec"]["headGroupSpec"].update(planted)
        assert refused(manifest, "ray-cluster") is not None, planted
    read = workflow()
    next(iter(read["jobs"].values()))["run-on"] = "x"
    assert refused({"on": read.pop("True"), **read}, "github-workflows") is not None


@pytest.mark.parametrize("service", COMPOSE["services"])
def test_the_services_of_the_compose_file_start_commands_that_there_are(service: str) -> None:
    settings = COMPOSE["services"][service]
    program, *arguments = settings["entrypoint"]
    assert Path(sys.executable).with_name(program).is_file()
    if program == "ray":
        from ray.scripts.scripts import start

        arguments.remove("start")
        assert start.make_context("ray start", arguments).params["block"]
    else:
        java_class = arguments[0].replace(".", "/") + ".class"
        jars = Path(str(metadata.distribution("pyspark").locate_file("pyspark"))) / "jars"
        (core,) = jars.glob("spark-core_*.jar")
        assert java_class.encode() in core.read_bytes()
    others = re.findall(r"(?:=|//)([\w-]+):\d+", " ".join(arguments))
    assert set(others) <= set(settings.get("depends_on", [])) <= set(COMPOSE["services"])
    assert settings["environment"]["RAY_AUTH_MODE"] == "token"
    assert settings["environment"]["RAY_worker_niceness"] == "0"


def test_the_kubernetes_cluster_has_this_ray_and_a_token() -> None:
    spec = KUBERAY["spec"]
    assert (KUBERAY["apiVersion"], KUBERAY["kind"]) == ("ray.io/v1", "RayCluster")
    assert spec["rayVersion"] == metadata.version("ray")
    assert spec["authOptions"] == {"mode": "token"}
    groups = [spec["headGroupSpec"], *spec["workerGroupSpecs"]]
    containers = [container for group in groups for container in group["template"]["spec"]["containers"]]
    assert {container["image"] for container in containers} == {COMPOSE["services"]["head"]["image"]}
    for container in containers:
        assert {"name": "RAY_worker_niceness", "value": "0"} in container["env"]
    for group in groups:
        pod = group["template"]["spec"]
        mounted = {mount["name"] for container in pod["containers"] for mount in container.get("volumeMounts", [])}
        assert mounted == {volume["name"] for volume in pod.get("volumes", [])}
    for group in spec["workerGroupSpecs"]:
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]


def test_the_image_installs_what_its_services_start() -> None:
    recipe = (ROOT / "Dockerfile").read_text()
    (line,) = re.findall(r"^RUN pip install (.*)$", recipe, flags=re.MULTILINE)
    assert "ray[default]" in shlex.split(line), "its dashboard answers KubeRay, and takes jobs"
    assert re.search(r"apt-get install .*\bwget\b", recipe), "KubeRay asks with it whether a pod is well"
