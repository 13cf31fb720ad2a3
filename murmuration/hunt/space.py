"""What schedules are drawn from: the overlays, links, workloads and faults that fit a pair of protocols."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from murmur_pubsub.errors import InputError
from murmur_pubsub.promise import Promise
from murmuration.registry import (
    ReliabilityDeclaration,
    RoutingDeclaration,
    promise,
    reliability_named,
    routing_named,
)
from murmuration.scenario.options import keys_of
from routing.protocol import OverlayTraits, RunsOn

TREES = ("chain", "star", "random")
MESHES = ("ring", "random_regular", "small_world", "scale_free")
OVERLAYS_OF: Mapping[RunsOn, tuple[str, ...]] = {
    RunsOn.LINKS: (*TREES, *MESHES),
    RunsOn.ACYCLIC: TREES,
    RunsOn.CELLS: ("cells", "cells", "cells", *TREES),
    RunsOn.STRUCTURED: ("structured",),
}
"""Kinds of overlays, each as often as it is to be drawn."""
NODE_FAULTS = ("kill", "stall", "slow")
LINK_FAULTS = ("cut", "loss", "duplication", "reordering", "delay", "bandwidth", "storm")
FAULTS = (*NODE_FAULTS, *LINK_FAULTS, "partition", "kill", "cut", "rewire", "order")
"""Each as often as it is to be drawn: most kinds only change a link, and those that take something away matter most.

`rewire`: a link goes and another one comes. `order`: a verb of the protocols' own. Both only where there are any.
"""

MOVES = ("move", "move")
"""A client goes to another broker, where the protocols have clients that do."""
STAND_INS = ("lose_disk", "lose_disk", "kill_twin", "kill_twin", "stall_twin", "part_twins", "stand_in", "stand_in")
"""Where one publishers' broker stands in for another: one of the two dies, with its disk or without, or is stalled; the
two and their witness are parted; or a client that publishes goes from the one to the other."""
BACKUPS: Mapping[str, Mapping[str, Any]] = {
    "backups": {"pubends": ["b0"], "backups": {"b0": ["b1", "b2"]}},
    "crossed": {"pubends": ["b0", "b1"], "backups": {"b0": ["b2", "b1"], "b1": ["b3", "b0"]}},
}
"""Parameters of `end_to_end` with backups: one pubend, and two whose brokers are each other's witnesses."""
REPLACED = "replaced"
"""What schedules are called in which brokers join cells and depart."""
VARIED = "varied"
"""What schedules are called over other links, clients, filters and times than usual (`varying`)."""
COMMANDS = ("ask", "ask", "say", "say")
"""A client asks for something that its workload does not, or publishes it."""
TimedEntry = tuple[int, dict[str, Any]]
"""(when in milliseconds, an entry of `faults` without its time)."""
OUTAGES = ("outage", "rolling")
"""Several brokers are killed at one instant, or each one after the other."""
TOGETHER = ("lose_host", "lose_host", "kill_actor", "kill_actor")
"""What goes with all nodes on it: a host where there are several, or an actor that several nodes share."""
VARIANTS = (*BACKUPS, REPLACED, VARIED, *(f"{each}+{VARIED}" for each in (*BACKUPS, REPLACED)))
"""Schedules with something that others never have."""
REPLACEMENTS = ("replace", "replace", "replace", "replace", "join", "depart", "cut_newcomer")
"""A newcomer joins a cell and another broker departs from it, which may have died, and may come back by mistake; or
only one of the two; or a link of a newcomer is cut."""
KINDS = frozenset((*FAULTS, *MOVES, *STAND_INS, *REPLACEMENTS, *COMMANDS, *OUTAGES, *TOGETHER))
"""Every kind that any schedule has."""
_NEWCOMERS = ("n0", "n1")
_ROOT = "p0"
"""The first broker of every drawn tree of cells."""
_STRUCTURED_FAULTS = ("kill", "kill", "kill", "stall", "slow", "cut", "storm", "partition")
"""Links are only those to clients here; a partition divides brokers that have none."""
_DATAGRAMS = {"delay": "1 ms"}
_OVERTAKING_DATAGRAMS = {"delay": {"uniform": ["500 us", "5 ms"]}}
_STRUCTURED_RATE_PER_S = 10
"""Faults may cost deliveries for seconds: so some events come later than that."""
USUAL: Mapping[str, Mapping[str, Any]] = {
    "links": {"delay": "2 ms"},
    "failure_detection": {"heartbeat": "100 ms", "timeout": "300 ms", "reconnect": "20 ms"},
    "workload": {"attributes": 2, "predicates": 1, "matching_rate": 0.5, "subscribers_per_actor": 2},
}
"""What sections have in schedules that are not varied."""
DRAIN = {"limit": "60 s"}
"""Of schedules of which nothing else is said: what has not come by then is late in any case."""
_STRUCTURED_DRAIN = {"limit": "5 s"}
"""Probes never rest, so that such a run never falls quiet."""
_STRUCTURED_RECOVERY = {"limit": "180 s"}
"""The same where all that was lost is still to come: where a client's link loses three messages in ten for ever, a log
with room for 3 messages takes one a second."""
LINKED_RECOVERY = {"limit": "300 s"}
"""The same where brokers have links of their own, which may lose half of all messages for ever."""


class Tempo(NamedTuple):
    """How close together the bursts of faults in a guided schedule are (`fault_draws.in_bursts`)."""

    publications: tuple[int, int]
    """The fewest and the most: bursts come as long as there are any."""
    burst_ms: int
    """A burst and the recovery from it take about that long."""
    at_once: int
    """So many bursts begin together."""


CALM = Tempo((100, 150), 900, 1)
"""For who promises nothing about what is published during a fault: those of other bursts would hide what one breaks."""
CROWDED = Tempo((75, 112), 600, 2)
"""For who promises a delivery all the same. A schedule takes about as long as a calm one, and 1.7 times as many show a
bug (docs/hunts-played.md)."""


@dataclass(frozen=True, slots=True)
class ScheduleSpace:
    """What one draw may choose from."""

    broker: Mapping[str, Any]
    """The section `broker` of every schedule."""
    overlays: tuple[str, ...] = TREES
    brokers_max: int = 6
    """Of overlays that are not trees of cells; those draw their own size."""
    kinds: tuple[str, ...] = FAULTS
    """Kinds of faults. A schedule leaves about half of them out."""
    faults_max: int = 6
    """Of a schedule that is drawn plainly."""
    tempo: Tempo = CALM
    clients_fail: bool = True
    """May faults hit clients?"""
    harm: tuple[float, ...] = (0.0,)
    """Probabilities of loss, duplication and reordering on every link between brokers, drawn apart."""
    resubscriptions_max: int = 10
    parameters: Mapping[str, Mapping[str, Sequence[object]]] = field(default_factory=lambda: MappingProxyType({}))
    """Values for the parameters of each protocol; half of the schedules choose from them."""
    seldom: Mapping[str, Mapping[str, Sequence[object]]] = field(default_factory=lambda: MappingProxyType({}))
    """The same for parameters that have their defaults in all but varied schedules."""
    more: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """Other keys of every schedule."""
    rate_per_s: int = 40
    """Publications."""
    latest_ms: int = 3_000
    """Up to when a fault begins that is not drawn to meet another one."""
    properties: tuple[str, ...] = ()
    """Dotted paths of those that every run is asked for (`murmuration.hunt.properties`), beside what always is."""
    brokers_min: int = 2
    publishers: int = 2
    varied: bool = False
    """Are links, clients, filters and times other ones than usual, too?"""
    disks: tuple[str, ...] = ()
    """The brokers whose disks may be lost."""
    scenario: Mapping[str, Any] | None = None
    """The keys that every schedule has, but for its seed and its faults (None: they are drawn too)."""


def space_of(routing: str, reliability: str, parameters: Mapping[str, Any] | None = None) -> ScheduleSpace:
    """All schedules that suit a pair of protocols, by what the two declare; raises `InputError` for unknown ones."""
    router, recovery = routing_named(routing), reliability_named(reliability)
    structured = router.runs_on is RunsOn.STRUCTURED
    delivers_all_the_same = recovery.guarantee.excuses_by_connection
    return ScheduleSpace(
        broker={
            "routing": routing,
            "reliability": reliability,
            **({"parameters": {name: dict(given) for name, given in parameters.items()}} if parameters else {}),
        },
        overlays=OVERLAYS_OF[router.runs_on],
        brokers_max=10 if structured else 7,
        kinds=(*(_STRUCTURED_FAULTS if structured else FAULTS), *(MOVES if recovery.clients_roam else ())),
        harm=(0.0, 0.0, 0.1, 0.3) if delivers_all_the_same else (0.0,),
        parameters={each.name: _tried(each, (parameters or {}).get(each.name, {})) for each in (router, recovery)},
        more=_more_keys(router, recovery),
        tempo=CROWDED if delivers_all_the_same else CALM,
        rate_per_s=_STRUCTURED_RATE_PER_S if structured else 40,
    )


def space_of_variant(routing: str, reliability: str, variant: str) -> ScheduleSpace:
    """The same with what only such schedules have (`VARIANTS`); raises `InputError` where the protocols have none."""
    if variant not in VARIANTS:
        raise InputError("variant", repr(variant), ", ".join(VARIANTS))
    first, *others = variant.split("+")
    if first == REPLACED:
        space = _space_with_newcomers(routing, reliability)
    elif first == VARIED:
        space = space_of(routing, reliability)
    else:
        space = _space_with_backups(routing, reliability, first)
    if VARIED in (first, *others):
        given = space.broker.get("parameters", {})
        declared = routing_named(routing), reliability_named(reliability)
        seldom = {each.name: _not_given(each.tried_seldom, given.get(each.name, {})) for each in declared}
        return replace(space, varied=True, seldom=seldom, kinds=(*space.kinds, *COMMANDS, *OUTAGES, *TOGETHER))
    return space


def _space_with_backups(routing: str, reliability: str, which: str) -> ScheduleSpace:
    """The same where publishers' brokers have backups: see `BACKUPS`."""
    declared = reliability_named(reliability)
    name = declared.name
    if "backups" not in keys_of(declared.parameters):
        raise InputError("variant", f"{which} with {name}", "a reliability protocol with `backups`, as end_to_end")
    given = {**BACKUPS[which], "beat": "50 ms", "silence": "300 ms"}
    space = space_of(routing, reliability, {name: given})
    return replace(
        space,
        overlays=tuple(kind for kind in space.overlays if kind != "cells"),  # whose brokers have other names
        brokers_min=4,
        kinds=(*space.kinds, *STAND_INS),
        publishers=len(BACKUPS[which]["pubends"]),
        disks=_disks(BACKUPS[which]["backups"]),
    )


def _space_with_newcomers(routing: str, reliability: str) -> ScheduleSpace:
    """The same over cells that brokers join and depart from. Events enter at one broker: where they do none departs.
    Clients that cannot go to a newcomer are none: the brokers subscribe themselves, newcomers too."""
    recovery = reliability_named(reliability)
    name = recovery.name
    pubends: Mapping[str, Any] = {"gryphon": {_ROOT: 2}, "durable": {_ROOT: 2}, "end_to_end": [_ROOT]}
    space = space_of(routing, reliability, {name: {"pubends": pubends[name]}} if name in pubends else None)
    if "cells" not in space.overlays:
        raise InputError("variant", f"{REPLACED} with {routing}", "a routing over cells")
    return replace(
        space,
        overlays=("cells",),
        kinds=(*space.kinds, *REPLACEMENTS),
        publishers=1,
        more={
            **space.more,
            "newcomers": list(_NEWCOMERS),
            **({} if recovery.clients_roam else {"last_mile": "broker"}),
        },
    )


def _disks(backups: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Those that may be lost: a pubend of which all three disks are lost has nobody who would begin anew."""
    witnesses = {witness for _, witness in backups.values()}
    both = (name for host, (backup, _) in backups.items() for name in (host, backup))
    return tuple(name for name in both if name not in witnesses)


def _tried(
    declared: RoutingDeclaration | ReliabilityDeclaration, given: Mapping[str, Any]
) -> Mapping[str, Sequence[object]]:
    """What schedules choose from for the parameters of the protocol that are not given."""
    hints = get_type_hints(declared.parameters)
    choices: dict[str, Sequence[object]] = {}
    for key, name in keys_of(declared.parameters).items():
        if hints[name] is bool:
            choices[key] = (False, True)
        elif get_origin(hints[name]) is Literal:
            choices[key] = get_args(hints[name])
    return _not_given({**choices, **declared.tried}, given)


def _not_given(tried: Mapping[str, Sequence[object]], given: Mapping[str, Any]) -> Mapping[str, Sequence[object]]:
    return {key: values for key, values in tried.items() if values and key not in given}


def _more_keys(router: RoutingDeclaration, recovery: ReliabilityDeclaration) -> Mapping[str, Any]:
    """Datagrams where the two need them, and such as overtake each other where they may."""

    def promised(traits: OverlayTraits) -> Promise | None:
        """What they promise there; None: they refuse such an overlay."""
        parameters = router.parameters()
        try:
            router.check(parameters, traits)
            recovery.check(recovery.parameters(), traits, router)
        except InputError:
            return None
        return promise(router, recovery, parameters, recovery.parameters(), traits)

    every = frozenset(RunsOn)
    with_them, without = (promised(OverlayTraits("an overlay", every, has_datagrams=has)) for has in (True, False))
    if router.runs_on is RunsOn.STRUCTURED:
        overtaking = promised(OverlayTraits("an overlay", every, has_datagrams=True, datagrams_overtake=True))
        datagrams = _DATAGRAMS if overtaking is None else _OVERTAKING_DATAGRAMS
        return {"datagrams": datagrams, "drain": _STRUCTURED_RECOVERY if recovery.end_to_end else _STRUCTURED_DRAIN}
    return {
        **({} if with_them == without else {"datagrams": _DATAGRAMS}),
        **({"drain": LINKED_RECOVERY} if recovery.guarantee.excuses_by_connection else {}),
    }
