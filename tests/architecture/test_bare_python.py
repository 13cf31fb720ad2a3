"""The virtual runtime, every protocol and the plain judge in a Python that has no more than one in a browser has."""

import json
import os
import subprocess
import sys

import pytest

from murmuration.lessons.desk import Desk
from murmuration.lessons.witnesses import keys_of, pairs, witness
from murmuration.registry import RELIABILITIES, ROUTINGS

_MISSING = (
    "aiohttp", "fcntl", "jinja2", "matplotlib", "numpy", "pandas", "prometheus_client", "psutil", "pyarrow", "pyspark",
    "ray", "resource", "rich", "typer",
)  # fmt: skip
"""What WebAssembly lacks, or a page would wait for."""
_BARE = f"""
import json, sys, sysconfig, threading


class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {_MISSING}:
            raise ModuleNotFoundError(f"{{name}} is not there", name=name)


def no_thread(thread):
    raise RuntimeError("can't start new thread")


sys.meta_path.insert(0, Missing())
threading.Thread.start = no_thread
sysconfig.get_config_vars()  # asks for the platform
sys.platform = "emscripten"
"""
_WITNESSES = """
from murmuration.lessons.witnesses import witness

for pair in json.loads(sys.argv[1]):
    print(json.dumps(witness(*pair)))
"""
_ZIPF = """
import json, sys
from murmuration.lessons.desk import Desk

desk = Desk()
desk.play(sys.argv[1])
desk.do({"finish": True})
print(json.dumps([desk.decide("")["hash"], desk.way("1:0")["lines"]]))
"""


def in_bare_python(wanted: list[tuple[str, str]]) -> list[list[object]]:
    """Their witnesses there."""
    return [json.loads(line) for line in printed(_BARE + _WITNESSES, json.dumps(wanted)).splitlines()]


def printed(code: str, argument: str) -> str:
    environment = {**os.environ, "MSGPACK_PUREPYTHON": "1"}
    command = [sys.executable, "-c", code, argument]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert not ended.returncode, ended.stderr
    return ended.stdout


@pytest.mark.parametrize("wanted", [[("cells", "gryphon")], pytest.param([*pairs()], marks=pytest.mark.slow)], ids=len)
def test_a_bare_python_leaves_the_same_journal_and_comes_to_the_same_verdict(wanted: list[tuple[str, str]]) -> None:
    here = [list(witness(*pair)) for pair in wanted]
    assert in_bare_python(wanted) == here
    assert all(deliveries > 100 for *_, deliveries, _ in here if isinstance(deliveries, int))


@pytest.mark.slow
def test_a_bare_python_plays_a_zipf_workload_and_follows_an_event() -> None:
    scenario = json.dumps(
        keys_of("forwarding", "best_effort") | {"workload": {"kind": "zipf", "clients": 4, "publications": 40}}
    )
    bare = json.loads(printed(_BARE + _ZIPF, scenario))
    desk = Desk()
    desk.play(scenario)
    desk.do({"finish": True})
    assert bare == [desk.decide("")["hash"], desk.way("1:0")["lines"]]
    assert any("publishes it" in line for line in bare[1])


def test_every_protocol_has_a_witness() -> None:
    assert {routing for routing, _ in pairs()} == set(ROUTINGS)
    assert {reliability for _, reliability in pairs()} == set(RELIABILITIES)
