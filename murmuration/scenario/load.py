"""Scenario files: YAML, checked in full before anything starts.

An error names the file, the line, the key, what was found and what is allowed. Times are written with their
unit ("5 ms", "2 s", "250 us") and kept as integer microseconds.
"""

import dataclasses
import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from murmur_pubsub.errors import InputError
from murmur_pubsub.faults import DEFAULT_DETECTION, FailureDetection, Fault, FaultTargets
from murmur_pubsub.links import Delay, LinkSpec
from murmur_pubsub.machine import NodeName
from murmur_pubsub.promise import DEFAULT_RECOVERY_LIMIT_US
from murmuration.deployment.churn import plan_churn
from murmuration.deployment.fault_entries import FaultReader
from murmuration.registry import Ground, check_parts, roots
from murmuration.scenario.yaml_mapping import read_mapping
from workloads import OVERLAYS, WORKLOADS
from workloads.churn.plan import ChurnPlan
from workloads.overlay import Overlay
from workloads.plan import Workload

_UNITS_US = {"us": 1, "ms": 1_000, "s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000}
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(us|ms|s|min|h)\s*")

SCENARIO_FOLDER = Path(__file__).parents[1] / "scenarios"


def parse_duration(value: Any) -> int:
    """Microseconds from a text such as "5 ms"; raises ValueError."""
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError("a time with its unit, such as '5 ms' (units: us, ms, s, min, h)")
    return round(float(match[1]) * _UNITS_US[match[2]])


def _parse_delay(value: Any) -> Delay:
    if isinstance(value, Delay):
        return value
    if isinstance(value, str):
        return Delay("constant", parse_duration(value))
    if isinstance(value, dict) and len(value) == 1:
        ((kind, amount),) = value.items()
        if kind == "exponential":
            return Delay("exponential", 0, parse_duration(amount))
        if kind in ("uniform", "normal") and isinstance(amount, list) and len(amount) == 2:
            return Delay(kind, parse_duration(amount[0]), parse_duration(amount[1]))
    raise ValueError("a time ('5 ms'), {uniform: [low, high]}, {exponential: mean} or {normal: [mean, deviation]}")


DurationUs = Annotated[int, BeforeValidator(parse_duration)]
Probability = Annotated[float, Field(ge=0, le=1)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class Links(_Section):
    """What links are like; see `murmur_pubsub.links.LinkSpec`."""

    delay: Annotated[Delay, BeforeValidator(_parse_delay)] = Delay()
    bytes_per_s: Annotated[int, Field(ge=1)] | None = None
    messages_per_s: Annotated[int, Field(ge=1)] | None = None
    loss: Probability = 0.0
    duplication: Probability = 0.0
    reordering: Probability = 0.0
    reordering_by: DurationUs = 10_000
    queue_messages: Annotated[int, Field(ge=1)] = 10_000
    on_overflow: Literal["slow", "drop"] = "slow"

    def spec(self) -> LinkSpec:
        """The same for the link model."""
        fields = {name: getattr(self, name) for name in type(self).model_fields if name != "reordering_by"}
        return LinkSpec(**fields, reordering_us=self.reordering_by)


class BrokerParts(_Section):
    """The three parts of a broker, by name (see `murmur list`) or dotted path, and the parameters of those that take
    some, by the protocol's name: `parameters: {multipath: {strategy: S1}}`."""

    matching: str = "bitset"
    routing: str = "forwarding"
    reliability: str = "best_effort"
    parameters: dict[str, dict[str, Any]] = {}


class Drain(_Section):
    """When a run is over: nothing has moved for `quiet`, or `limit` has passed since the last publication."""

    quiet: DurationUs = 1_000_000
    limit: DurationUs = 60_000_000


class Detection(_Section):
    """How the ends of a link notice a silent failure; see `murmur_pubsub.faults.FailureDetection`."""

    heartbeat: DurationUs = DEFAULT_DETECTION.heartbeat_us
    timeout: DurationUs = DEFAULT_DETECTION.timeout_us
    reconnect: DurationUs = DEFAULT_DETECTION.reconnect_us

    def detection(self) -> FailureDetection:
        """The same for the runtimes; raises `InputError` for times that contradict each other."""
        return FailureDetection(self.heartbeat, self.timeout, self.reconnect)


class Churn(_Section):
    """Nodes that come and go as those of a trace (an .avt file), or without one of a generator fitted to a real one.

    window: the first and the last day that are played (default: all; of the Skype trace its 25 good days). speed: so
    many seconds of the trace pass in an emulated one. select: which nodes of the trace are played. scale: stretches
    generated sessions and gaps. shortest: shorter ones, after scaling, are left out. begin: how far into the run the
    first day begins; until then all nodes are there.
    """

    trace: Path | None = None
    days: Annotated[float, Field(gt=0)] = 25.0
    window: tuple[float, float] | None = None
    keep_outages: bool = False
    speed: Annotated[float, Field(gt=0)] = 1.0
    who: Literal["clients", "brokers"] | list[str] = "clients"
    select: Literal["random", "active", "present"] = "random"
    scale: Annotated[float, Field(gt=0)] = 1.0
    shortest: DurationUs = 1_000_000
    begin: DurationUs = 0


class Expect(_Section):
    """What the run is expected to reach, beside what its protocols promise: else it is invalid.

    delivery_rate: of the required deliveries at least this share is made. delay_p99: at most. recovery: how long after
    a repair events may still be lost or late. unexplained: so many findings at most without a fault that explains them.
    """

    delivery_rate: Probability | None = None
    delay_p99: DurationUs | None = None
    recovery: DurationUs | None = None
    unexplained: Annotated[int, Field(ge=0)] | None = None

    def plain(self) -> dict[str, float]:
        """Those given, by their names in the manifest."""
        named = {"delay_p99": "delay_p99_us", "recovery": "recovery_us"}
        return {
            named.get(key, key): getattr(self, key) for key in type(self).model_fields if getattr(self, key) is not None
        }


class Scenario(_Section):
    """One experiment. `overlay` and `workload` have a `kind`; their other keys depend on it."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,60}$")] = "scenario"
    description: str = ""
    seed: int = 1
    runtime: Literal["ray", "virtual"] = "ray"
    overlay: dict[str, Any]
    workload: dict[str, Any]
    broker: BrokerParts = BrokerParts()
    last_mile: Literal["clients", "broker"] = "clients"
    links: Links = Links()
    client_links: Links = Links()
    time_dilation: Annotated[float, Field(gt=0, le=1000)] = 1.0
    drain: Drain = Drain()
    journal: Literal["hops", "deliveries"] = "hops"
    keep_inputs: bool = False
    withdrawal_grace: DurationUs = 1_000_000
    subscription_grace: DurationUs = 1_000_000
    recovery_limit: DurationUs = DEFAULT_RECOVERY_LIMIT_US
    expect: Expect = Expect()
    faults: list[dict[str, Any]] = []
    churn: Churn | None = None
    failure_detection: Detection = Detection()
    hosts: Annotated[int, Field(ge=1, le=64)] = 1
    placement: Literal["spread", "pack"] | dict[str, int | str] = "spread"
    datagrams: Links | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class LoadedScenario:
    """A scenario, as checked and as written (with overrides), and where its keys stand in the file."""

    scenario: Scenario
    data: Mapping[str, Any]
    place: str
    lines: Mapping[tuple[str, ...], int]

    def build_overlay(self) -> Overlay:
        """The overlay, checked against the broker's parts; raises `InputError`."""
        overlay: Overlay = self._build("overlay", OVERLAYS, self.scenario.seed)
        parts = self.scenario.broker
        try:
            ground = Ground(
                is_tree=overlay.is_tree,
                has_cells=bool(overlay.cells),
                is_structured=overlay.structure is not None,
                degree=max(Counter(itertools.chain(*overlay.edges)).values(), default=0),
                has_datagrams=self.scenario.datagrams is not None,
            )
            check_parts(parts.matching, parts.routing, parts.reliability, ground, parts.parameters)
            roots(parts.reliability, parts.parameters, overlay.client_brokers)
        except InputError as error:
            raise self.error_at(tuple(error.place.split(".")), error.found, error.allowed) from None
        return overlay

    def build_workload(self, overlay: Overlay) -> Workload:
        """The workload over the overlay; raises `InputError`."""
        workload: Workload = self._build("workload", WORKLOADS, overlay, self.scenario.seed)
        return workload

    def build_faults(
        self, targets: FaultTargets, links: Mapping[tuple[NodeName, NodeName], LinkSpec]
    ) -> tuple[FailureDetection, tuple[Fault, ...], frozenset[NodeName]]:
        """Failure detection, the fault plan and who is down at first, checked against who takes part; raises
        `InputError`."""
        try:
            detection = self.scenario.failure_detection.detection()
        except InputError as error:
            raise self.error_at(("failure_detection",), error.found, error.allowed) from None
        churn = ChurnPlan(frozenset(), (), 0)
        if self.scenario.churn is not None:
            try:
                churn = plan_churn(self.scenario.churn, targets, self.scenario.seed)
            except InputError as error:
                if not error.place.startswith("churn"):
                    raise  # it names the trace's file and line
                raise self.error_at(("churn",), error.found, error.allowed) from None
        targets = dataclasses.replace(targets, start_down=churn.start_down)
        reader = FaultReader(targets, links, self.scenario.seed, self.error_at, parse_duration, changed_link)
        return detection, reader.read(self.scenario.faults, churn.steps), churn.start_down

    def _build(self, section: str, kinds: Mapping[str, Any], *arguments: Any) -> Any:
        options = dict(getattr(self.scenario, section))
        kind = options.pop("kind", None)
        if kind not in kinds:
            raise self.error_at((section, "kind"), repr(kind), ", ".join(kinds))
        config_type, builder = kinds[kind]
        allowed = [each.name for each in dataclasses.fields(config_type)]
        for key in options:
            if key not in allowed:
                raise self.error_at((section, key), "an unknown key", ", ".join(allowed))
        try:
            config = TypeAdapter(config_type).validate_python(options)
        except ValidationError as error:
            raise self._first_error(error, (section,)) from None
        if section == "overlay":
            return builder(config, *arguments)
        overlay, seed = arguments
        return builder(overlay, config, seed)

    def _first_error(self, error: ValidationError, prefix: tuple[str, ...]) -> InputError:
        first = error.errors()[0]
        cause = first.get("ctx", {}).get("error")
        if isinstance(cause, InputError):
            return cause
        path = prefix + tuple(str(step) for step in first["loc"])
        if first["type"] == "extra_forbidden":
            return self.error_at(path, "an unknown key", _allowed_keys(path))
        if first["type"] in ("missing", "missing_argument"):
            return self.error_at(path, "nothing", "a value: this key is required")
        allowed = str(cause) if cause is not None else first["msg"].removeprefix("Input should be ")
        return self.error_at(path, repr(first["input"])[:80], allowed)

    def error_at(self, path: tuple[str, ...], found: str, allowed: str) -> InputError:
        """The error to raise for what was found under that key."""
        steps = path
        while steps and steps not in self.lines:
            steps = steps[:-1]
        line = f", line {self.lines[steps]}" if steps else ""
        return InputError(f"{self.place}{line}, key {'.'.join(path)}", found, allowed)


def changed_link(planned: LinkSpec, changes: Mapping[str, Any]) -> LinkSpec:
    """The planned link with some keys of the section `links` changed; raises ValueError."""
    try:
        links = Links.model_validate(changes)
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{'.'.join(str(step) for step in first['loc'])}: {first['msg']}") from None
    given = {name: getattr(links, name) for name in links.model_fields_set}
    if "reordering_by" in given:
        given["reordering_us"] = given.pop("reordering_by")
    return dataclasses.replace(planned, **given)


def load_scenario(
    path: Path,
    overrides: Sequence[str] = (),
    seed: int | None = None,
    changes: Mapping[str, Any] = MappingProxyType({}),
) -> LoadedScenario:
    """Read and check a scenario file; `changes` are values by "key.subkey", `overrides` "key.subkey=value" texts.
    Raises `InputError`."""
    if not path.is_file() and (SCENARIO_FOLDER / f"{path}.yaml").is_file():
        path = SCENARIO_FOLDER / f"{path}.yaml"
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        names = ", ".join(sorted(each.stem for each in SCENARIO_FOLDER.glob("*.yaml")))
        raise InputError(str(path), str(error), f"a scenario file, or the name of a built-in one ({names})") from None
    data, lines = read_mapping(path, text)
    for key, value in changes.items():
        change_key(data, key, value, key)
    for override in overrides:
        _override(data, override)
    if seed is not None:
        data["seed"] = seed
    return check_scenario(data, str(path), lines)


def check_scenario(
    data: Mapping[str, Any], place: str, lines: Mapping[tuple[str, ...], int] = MappingProxyType({})
) -> LoadedScenario:
    """The scenario of these keys; raises `InputError` naming `place`, and the line of the key if it is known."""
    draft = LoadedScenario(Scenario.model_construct(), data, place, lines)
    try:
        return dataclasses.replace(draft, scenario=Scenario.model_validate(data))
    except ValidationError as error:
        raise draft._first_error(error, ()) from None


def _override(data: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    if not equals or not key:
        raise InputError(f"--set {override}", repr(override), "key=value, such as overlay.brokers=32")
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        raise InputError(f"--set {override}", repr(text), "a YAML value") from None
    change_key(data, key, value, f"--set {override}")


def change_key(data: dict[str, Any], key: str, value: Any, place: str) -> None:
    """Set the value of "key.subkey"."""
    steps = key.split(".")
    section = data
    for step in steps[:-1]:
        section = section.setdefault(step, {})
        if not isinstance(section, dict):
            raise InputError(place, f"{step!r}, which is a value", "a section of the scenario")
    section[steps[-1]] = value


def _allowed_keys(path: tuple[str, ...]) -> str:
    model: Any = Scenario
    for step in path[:-1]:
        model = model.model_fields[step].annotation
    return ", ".join(model.model_fields)
