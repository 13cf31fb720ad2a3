"""What a scenario file may say, as data: the sections and their keys.

`overlay`, `workload` and `broker.parameters` are mappings here; their keys are those of the kind or protocol named
(`murmuration.scenario.options`).
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from murmur_pubsub.errors import InputError
from murmur_pubsub.faults import DEFAULT_DETECTION, FailureDetection
from murmur_pubsub.links import Delay, LinkSpec
from murmur_pubsub.promise import DEFAULT_RECOVERY_LIMIT_US
from murmuration.scenario.durations import DurationUs, parse_duration
from murmuration.scenario.options import number_of

Number = Annotated[float, BeforeValidator(number_of)]
Probability = Annotated[Number, Field(ge=0, le=1)]
SEEDS_END = 2**63
"""Seeds are below it, and -2^63 at least: tables keep 64 bits of them."""
Seed = Annotated[int, Field(ge=-SEEDS_END, lt=SEEDS_END)]


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
            low_us, high_us = map(parse_duration, amount)
            try:
                return Delay(kind, low_us, high_us)
            except InputError as error:
                raise ValueError(error.allowed) from None
    raise ValueError("a time ('5 ms'), {uniform: [low, high]}, {exponential: mean} or {normal: [mean, deviation]}")


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, arbitrary_types_allowed=True)


class Links(_Section):
    """What links are like; see `murmur_pubsub.links.LinkSpec`."""

    delay: Annotated[Delay, BeforeValidator(_parse_delay)] = Delay()
    """How long a message takes: `5 ms`, `{uniform: [1 ms, 3 ms]}`, `{exponential: 2 ms}` or `{normal: [5 ms, 1
    ms]}`."""
    bytes_per_s: Annotated[int, Field(ge=1)] | None = None
    """Bandwidth in bytes; messages wait for it, subscriptions too."""
    messages_per_s: Annotated[int, Field(ge=1)] | None = None
    """Bandwidth in messages."""
    loss: Probability = 0.0
    """Probability that a message is lost; subscriptions never are."""
    duplication: Probability = 0.0
    """Probability that a message arrives twice; subscriptions never do."""
    reordering: Probability = 0.0
    """Probability that a message is held back; without it a link keeps order, and subscriptions keep theirs."""
    reordering_by: DurationUs = 10_000
    """For how long it is held back."""
    queue_messages: Annotated[int, Field(ge=1)] = 10_000
    """How many messages may wait for the link before `on_overflow` counts."""
    on_overflow: Literal["slow", "drop"] = "slow"
    """A full queue slows the sender's own input down, or what does not fit is dropped and journaled."""

    def spec(self) -> LinkSpec:
        """The same for the link model."""
        fields = {name: getattr(self, name) for name in type(self).model_fields if name != "reordering_by"}
        return LinkSpec(**fields, reordering_us=self.reordering_by)


class BrokerParts(_Section):
    """The three parts of a broker, by name (see `murmur list`) or dotted path."""

    matching: str = "bitset"
    """How filters are matched: `bitset` or `naive`."""
    routing: str = "forwarding"
    """A protocol ([below](#protocols)), or a dotted path."""
    reliability: str = "best_effort"
    """A protocol ([below](#protocols)), or a dotted path."""
    parameters: dict[str, dict[str, Any]] = {}
    """Of the two protocols that take part, by the protocol's name: `{multipath: {strategy: S1}}`."""


class Drain(_Section):
    """When a run is over."""

    quiet: DurationUs = 1_000_000
    """Nothing has moved for that long; under `end_to_end`, no machine has waited or settled for that long."""
    limit: DurationUs = 60_000_000
    """That long has passed since the last publication."""


class Detection(_Section):
    """How the ends of a link notice a silent failure; see `murmur_pubsub.faults.FailureDetection`."""

    heartbeat: DurationUs = DEFAULT_DETECTION.heartbeat_us
    """Time between signs of life."""
    timeout: DurationUs = DEFAULT_DETECTION.timeout_us
    """A peer that is silent for this time is gone."""
    reconnect: DurationUs = DEFAULT_DETECTION.reconnect_us
    """Time between attempts to dial a peer."""

    def detection(self) -> FailureDetection:
        """The same for the runtimes; raises `InputError` for times that contradict each other."""
        return FailureDetection(self.heartbeat, self.timeout, self.reconnect)


class ChurnSection(_Section):
    """Nodes that come and go as those of a trace (an .avt file), or without one of a generator fitted to a real one."""

    trace: Annotated[Path | None, Field(strict=False)] = None
    """The file (none: sessions are generated)."""
    days: Annotated[Number, Field(gt=0)] = 25.0
    """How many days are generated."""
    window: Annotated[tuple[float, float] | None, Field(strict=False)] = None
    """The first and the last day that are played (none: all; of the Skype trace its 25 good days)."""
    keep_outages: bool = False
    """Outages of the trace's prober are taken for what they look like: that all nodes were away."""
    speed: Annotated[Number, Field(gt=0)] = 1.0
    """Seconds of the trace that pass in an emulated second."""
    who: Literal["clients", "brokers"] | list[str] = "clients"
    """The nodes that come and go."""
    select: Literal["random", "active", "present"] = "random"
    """Which nodes of the trace are played."""
    scale: Annotated[Number, Field(gt=0)] = 1.0
    """Stretches generated sessions and gaps."""
    shortest: DurationUs = 1_000_000
    """Shorter sessions and gaps, after scaling, are left out."""
    begin: DurationUs = 0
    """How far into the run the first day begins; until then all nodes are there. At 0, brokers that others wait for are
    killed then."""


class Expect(_Section):
    """What the run is expected to reach, beside what its protocols promise: else it is invalid."""

    delivery_rate: Probability | None = None
    """The least share of the required deliveries that is made."""
    delay_p99: DurationUs | None = None
    """The most that 99 % of the deliveries take."""
    recovery: DurationUs | None = None
    """For how long after a repair events may still be lost or late."""
    unexplained: Annotated[int, Field(ge=0)] | None = None
    """The most findings without a fault that explains them."""

    def plain(self) -> dict[str, float]:
        """Those given, by their names in the manifest."""
        named = {"delay_p99": "delay_p99_us", "recovery": "recovery_us"}
        return {
            named.get(key, key): getattr(self, key) for key in type(self).model_fields if getattr(self, key) is not None
        }


class Scenario(_Section):
    """One experiment. `overlay` and `workload` have a `kind`; their other keys depend on it."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,60}$")] = "scenario"
    """Letters, digits, `-` and `_`; the run folder has it."""
    description: str = ""
    """For people; `murmur list` shows it."""
    seed: Seed = 1
    """Everything random follows from it."""
    runtime: Literal["ray", "virtual"] = "ray"
    """Live actors, or one process in virtual time."""
    overlay: dict[str, Any]
    """Its `kind` is one of the [overlays](#overlays); its other keys stand beside that."""
    workload: dict[str, Any]
    """Its `kind` is one of the [workloads](#workloads); its other keys stand beside that."""
    broker: BrokerParts = BrokerParts()
    last_mile: Literal["clients", "broker"] = "clients"
    """`broker`: there are no client actors; brokers publish and deliver themselves."""
    links: Links = Links()
    """Between brokers; keys below."""
    client_links: Links = Links()
    """Between a client and its broker; keys below."""
    time_dilation: Annotated[Number, Field(gt=0, le=1000)] = 1.0
    """Wall-clock seconds for an emulated one (live)."""
    lasts: DurationUs = 0
    """Publishing goes on at least so long, though all is published and no fault is to come."""
    drain: Drain = Drain()
    journal: Literal["hops", "deliveries"] = "hops"
    """`deliveries` leaves out SEND and RECEIVE rows."""
    keep_inputs: bool = False
    """Every node keeps its inputs with their times (`journal/*.inputs`), for `murmur replay`; `murmur run
    --keep-inputs` sets it."""
    withdrawal_grace: DurationUs = 1_000_000
    """An event published at most this time before a withdrawal need not arrive."""
    subscription_grace: DurationUs = 1_000_000
    """An event published at most this time before a subscription may arrive: it may be on its way."""
    recovery_limit: DurationUs = DEFAULT_RECOVERY_LIMIT_US
    """How long after a fault or its repair tables may be disturbed at most; later losses are not excused, and later
    deliveries are late."""
    expect: Expect = Expect()
    newcomers: Annotated[list[str], Field(strict=False)] = []
    """Names of brokers beside the overlay's, which are not there until they `join`."""
    faults: Annotated[list[dict[str, Any]], Field(strict=False)] = []
    """What is broken when, in order of time; [faults.md](faults.md)."""
    churn: ChurnSection | None = None
    """Nodes that come and go; keys below, and [churn.md](churn.md)."""
    failure_detection: Detection = Detection()
    hosts: Annotated[int, Field(ge=1, le=64)] = 1
    """The number of raylets on this host; brokers take turns on them, clients are with the driver. With `--address`:
    the least number of hosts in the cluster."""
    placement: Literal["spread", "pack"] | dict[str, int | str] = "spread"
    """Of brokers on hosts: `spread` (in turn), `pack` (a host is filled first), or a mapping of brokers to hosts
    (number, name, address or zone; the others are spread)."""
    density: Annotated[int, Field(ge=1)] = 1
    """How many brokers, or clients, share an actor in a live run; each has a machine, socket, journal and death of its
    own all the same."""
    datagrams: Links | None = None
    """A link (keys below) for messages between nodes without one, and for those that always travel so; without it they
    are dropped. They have no order."""


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
