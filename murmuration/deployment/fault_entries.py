"""The keys `faults` and `failure_detection` of a scenario: what is broken when.

Each entry of `faults` has `at` and one verb (`kill: b3`), and may have `for`, after which it is undone; or it is
`random:`, which draws a plan from the run's seed. Beside the verbs below there are those of orders that the run's
protocols declare. `publish: c3` and `subscribe: c3` break nothing: a client does so, beside what its workload has.
An error names the file, the line and the entry.
"""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from murmur_pubsub.errors import InputError
from murmur_pubsub.event import Event
from murmur_pubsub.faults import CELL, COMMANDS, Fault, FaultKind, FaultTargets, link_key
from murmur_pubsub.filter_parser import parse_subscription, subscription_text
from murmur_pubsub.links import LinkSpec
from murmur_pubsub.machine import NodeName
from murmur_pubsub.membership import Membership
from murmur_pubsub.plan_checker import check_plan
from murmuration.scenario.durations import parse_duration
from murmuration.scenario.options import At, read_options
from murmuration.scenario.schema import changed_link
from workloads.random_faults import RandomFaults, draw_faults

_NODE_VERBS = {
    "kill": (FaultKind.KILL, FaultKind.RESTART),
    "restart": (FaultKind.RESTART, None),
    "stall": (FaultKind.STALL, FaultKind.RESUME),
    "resume": (FaultKind.RESUME, None),
    "slow": (FaultKind.SLOW, FaultKind.SLOW),
}
_LINK_VERBS = {
    "cut": (FaultKind.CUT, FaultKind.HEAL),
    "heal": (FaultKind.HEAL, None),
    "link": (FaultKind.CHANGE_LINK, FaultKind.CHANGE_LINK),
}
_HOST_VERBS = {
    "lose_host": (FaultKind.LOSE_HOST, FaultKind.RETURN_HOST),
    "return_host": (FaultKind.RETURN_HOST, None),
}
_ACTOR_VERBS = {
    "kill_actor": (FaultKind.KILL_ACTOR, FaultKind.RESTART_ACTOR),
    "restart_actor": (FaultKind.RESTART_ACTOR, None),
}
_OVERLAY_VERBS = {
    "connect": (FaultKind.CONNECT, FaultKind.DISCONNECT),
    "disconnect": (FaultKind.DISCONNECT, FaultKind.CONNECT),
}
_MOVE = "move_client"
_COMMANDS = ("publish", "subscribe", "unsubscribe")
_PREPOSITIONS = {"publish": "", "subscribe": " to", "unsubscribe": " from"}
_VERBS = (
    *_NODE_VERBS, *_LINK_VERBS, *_OVERLAY_VERBS, *_ACTOR_VERBS, *_HOST_VERBS, *_COMMANDS, _MOVE, "partition", "unite",
    "join", "random",
)  # fmt: skip


class Placed(NamedTuple):
    """A step and the entry it comes from."""

    fault: Fault
    place: str


class _Steps(NamedTuple):
    """What an entry stands for. `repair` undoes it, at a time that is yet to be set; `keys` may stand beside its
    verb."""

    steps: tuple[Fault, ...]
    repair: Fault | None = None
    keys: tuple[str, ...] = ()


class FaultReader:
    """Reads the entries for one deployment. `links` are those that it begins with; `new_link` is what later ones are
    like, unless their entries say otherwise. `at` makes the error for a key path, `earlier` are steps that were read
    before."""

    def __init__(
        self,
        targets: FaultTargets,
        links: Mapping[tuple[NodeName, NodeName], LinkSpec],
        new_link: LinkSpec,
        seed: int,
        at: At,
        earlier: Sequence[Fault] = (),
    ) -> None:
        self._targets = targets
        self._planned = links
        self._links = dict(links)
        self._new_link = new_link
        self._orders = targets.rules.orders
        self._commands = [each for each in earlier if each.kind in COMMANDS]
        numbers = (each.issuer + 1 for each in earlier if each.kind is FaultKind.SUBSCRIBE)
        self._subscribers = itertools.count(max((targets.rules.subscribers_from, *numbers)))
        self._seed = seed
        self._at = at
        self._begin()

    def read(self, entries: Sequence[Mapping[str, Any]], churn: Sequence[Fault] = ()) -> tuple[Fault, ...]:
        """The checked plan of these entries and of churn, in order of time; entries must be in order themselves."""
        self._begin()
        placed = [Placed(step, self._at(("churn",), "", "").place) for step in churn]
        latest_us = 0
        for number, entry in enumerate(entries):
            path = ("faults", str(number))
            steps = self._random(entry, path) if "random" in entry else self._entry(entry, path)
            if "random" not in entry:
                if steps[0].time_us < latest_us:
                    found = f"{entry.get('at')!r}, which is before the entry above it"
                    raise self._at((*path, "at"), found, "entries in order of time")
                latest_us = steps[0].time_us
            place = self._at(path, "", "").place
            placed += [Placed(step, place) for step in steps]
        placed.sort(key=lambda each: each.fault.time_us)
        plan = [each.fault for each in placed]
        check_plan(plan, self._targets, [each.place for each in placed])
        return tuple(plan)

    def _begin(self) -> None:
        """Nothing has happened yet."""
        self._links = dict(self._planned)
        self._unstarted = self._targets.brokers & self._targets.start_down
        plan = self._targets.rules.cells
        self._members = None if plan is None else Membership(plan)

    def steps_of(self, entry: Mapping[str, Any]) -> list[Fault]:
        """The steps of one entry, which are not checked against a plan; raises `InputError`."""
        return self._entry(entry, ("faults", "0"))

    def _entry(self, entry: Mapping[str, Any], path: tuple[str, ...]) -> list[Fault]:
        known = (*_VERBS, *self._orders)
        verbs = [key for key in entry if key in known]
        if len(verbs) != 1:
            raise self._at(path, f"{len(verbs)} of them in {sorted(entry)}", f"`at` and one of {', '.join(known)}")
        verb = verbs[0]
        began_us = self._time(entry, path, "at", required=True)
        lasting_us = self._time(entry, path, "for")
        steps, repair, others = self._steps(verb, entry, path, began_us)
        for key in entry:
            if key not in ("at", "for", verb, *others):
                allowed = ", ".join(("at", "for", verb, *others))
                raise self._at((*path, str(key)), "an unknown key", allowed)
        if "for" not in entry:
            return [*steps]
        if repair is None:
            raise self._at((*path, "for"), f"`for` with {verb}", "`for` with what can be undone")
        if lasting_us <= 0:
            raise self._at((*path, "for"), repr(entry["for"]), "a time above zero")
        return [*steps, dataclasses.replace(repair, time_us=began_us + lasting_us)]

    def _steps(self, verb: str, entry: Mapping[str, Any], path: tuple[str, ...], at_us: int) -> _Steps:
        value = entry[verb]
        if verb in _NODE_VERBS:
            return self._node_steps(verb, entry, path, at_us)
        if verb in _LINK_VERBS:
            return self._link_steps(verb, entry, path, at_us)
        if verb in _OVERLAY_VERBS:
            return self._overlay_steps(verb, entry, path, at_us)
        if verb in _COMMANDS:
            return self._command(verb, entry, path, at_us)
        if verb in _ACTOR_VERBS:
            kind, repair = _ACTOR_VERBS[verb]
            nodes = self._targets.actor_of(self._name(entry, path, verb))
            return _Steps((Fault(at_us, kind, nodes),), None if repair is None else Fault(at_us, repair, nodes))
        if verb in _HOST_VERBS:
            if type(value) is not int:
                raise self._at((*path, verb), repr(value), "the number of a host, from 0")
            kind, repair = _HOST_VERBS[verb]
            return _Steps(
                (Fault(at_us, kind, host=value),), None if repair is None else Fault(at_us, repair, host=value)
            )
        if verb == "partition":
            return _Steps((self._partition(value, path, at_us),), Fault(at_us, FaultKind.UNITE))
        if verb == "join" and CELL in self._orders.get(verb, ()):
            return self._join_cell(entry, path, at_us)
        if verb == "join":
            name, to = self._name(entry, path, verb), self._name(entry, path, "to")
            new = Fault(at_us, FaultKind.CONNECT, (name, to), link=self._new_link)
            self._links[link_key(name, to)] = self._new_link
            return _Steps((new, Fault(at_us, FaultKind.RESTART, (name,))), None, ("to",))
        if verb == _MOVE:
            return self._move(entry, path, at_us)
        if verb in self._orders:
            names = tuple(self._orders[verb])
            arguments = tuple((each, self._name(entry, path, each)) for each in names)
            about = (self._name(entry, path, verb),)
            if self._members is not None:
                self._members.obey(verb, about[0], [name for _, name in arguments])
            return _Steps((Fault(at_us, FaultKind.ORDER, about, verb=verb, arguments=arguments),), None, names)
        return _Steps((Fault(at_us, FaultKind.UNITE),))

    def _join_cell(self, entry: Mapping[str, Any], path: tuple[str, ...], at_us: int) -> _Steps:
        """A broker that has not been started gets its links, is started, and is told to join; another is only told."""
        assert self._members is not None
        name, cell = self._name(entry, path, "join"), self._name(entry, path, CELL)
        order = Fault(at_us, FaultKind.ORDER, (name,), verb="join", arguments=((CELL, cell),))
        if name not in self._unstarted:
            return _Steps((order,), None, (CELL,))
        self._unstarted -= {name}
        peers = entry.get("to", self._members.around(cell))
        if not isinstance(peers, list) or not all(isinstance(each, str) for each in peers):
            raise self._at((*path, "to"), repr(peers), "a list of brokers")
        for each in peers if cell in self._members.plan.cells else ():
            if each not in self._members.around(cell):
                allowed = f"brokers of its cell and of the neighbouring ones: {', '.join(self._members.around(cell))}"
                raise self._at((*path, "to"), repr(each), allowed)
        self._members.obey("join", name, [cell])
        links = [Fault(at_us, FaultKind.CONNECT, (name, each), link=self._new_link) for each in peers]
        self._links |= {link_key(name, each): self._new_link for each in peers}
        return _Steps((*links, Fault(at_us, FaultKind.RESTART, (name,)), order), None, (CELL, "to"))

    def _node_steps(self, verb: str, entry: Mapping[str, Any], path: tuple[str, ...], at_us: int) -> _Steps:
        name = self._name(entry, path, verb)
        kind, repair = _NODE_VERBS[verb]
        first = Fault(at_us, kind, (name,))
        others: tuple[str, ...] = ()
        if verb == "kill":
            others = ("signal", "disk")
            if entry.get("signal", "SIGKILL") != "SIGKILL":
                raise self._at((*path, "signal"), repr(entry["signal"]), "SIGKILL (without it: Ray's kill)")
            if entry.get("disk", "lost") != "lost":
                raise self._at((*path, "disk"), repr(entry["disk"]), "lost (without it: what was stored stays)")
            first = dataclasses.replace(first, sigkill="signal" in entry, disk_lost="disk" in entry)
        elif verb == "slow":
            others = ("work",)
            first = dataclasses.replace(first, work_us=self._time(entry, path, "work", required=True))
        return _Steps((first,), None if repair is None else Fault(at_us, repair, (name,)), others)

    def _link_steps(self, verb: str, entry: Mapping[str, Any], path: tuple[str, ...], at_us: int) -> _Steps:
        kind, repair = _LINK_VERBS[verb]
        ends = self._ends(entry, path, verb)
        if link_key(*ends) not in self._links:
            raise self._at((*path, verb), repr(entry[verb]), "two nodes with a link between them")
        first = Fault(at_us, kind, ends)
        second = None if repair is None else Fault(at_us, repair, ends)
        if verb != "link":
            return _Steps((first,), second)
        changes = {key: each for key, each in entry.items() if key not in ("at", "for", verb)}
        if not changes:
            raise self._at(path, "a change of a link that changes nothing", "keys of a link, such as loss or delay")
        spec = self._changed(self._links[link_key(*ends)], changes, path)
        return _Steps((dataclasses.replace(first, link=spec),), second, tuple(changes))

    def _overlay_steps(self, verb: str, entry: Mapping[str, Any], path: tuple[str, ...], at_us: int) -> _Steps:
        kind, repair = _OVERLAY_VERBS[verb]
        ends = self._ends(entry, path, verb)
        key = link_key(*ends)
        if verb == "disconnect":
            again = self._links.get(key, self._new_link)
            return _Steps((Fault(at_us, kind, ends),), Fault(at_us, repair, ends, link=again))
        changes = {name: each for name, each in entry.items() if name not in ("at", "for", verb)}
        self._links[key] = self._changed(self._new_link, changes, path)
        return _Steps((Fault(at_us, kind, ends, link=self._links[key]),), Fault(at_us, repair, ends), tuple(changes))

    def _move(self, entry: Mapping[str, Any], path: tuple[str, ...], at_us: int) -> _Steps:
        name, to = self._name(entry, path, _MOVE), self._name(entry, path, "to")
        links = [key for key in self._links if name in key and not self._targets.brokers.issuperset(key)]
        if not links or name in self._targets.brokers or to in links[-1]:
            raise self._at((*path, _MOVE), repr(name), "a client, which goes from its broker to another")
        now_at = links[-1]
        spec = self._links.pop(now_at)
        self._links[link_key(name, to)] = spec
        steps = Fault(at_us, FaultKind.DISCONNECT, now_at), Fault(at_us, FaultKind.CONNECT, (name, to), link=spec)
        return _Steps(steps, None, ("to",))

    def _command(self, verb: str, entry: Mapping[str, Any], path: tuple[str, ...], at_us: int) -> _Steps:
        name, key = self._name(entry, path, verb), "event" if verb == "publish" else "filter"
        if key not in entry:
            raise self._at(path, f"no `{key}`", f"`{key}`: what to {verb}{_PREPOSITIONS[verb]}")
        given = entry[key]
        try:
            if key == "event":
                if not isinstance(given, dict):
                    raise InputError(key, repr(given), "attributes and their values, such as {price: 10}")
                issuer = self._targets.rules.publishers.get(name, 0)
                Event(issuer, 0, 0, given).check()
                return _Steps(
                    (Fault(at_us, FaultKind.PUBLISH, (name,), issuer=issuer, attributes=tuple(given.items())),),
                    None, (key,),
                )  # fmt: skip
            if not isinstance(given, str):
                raise InputError(key, repr(given), "a filter, such as 'price > 10'")
            wanted = subscription_text(parse_subscription(given))
        except InputError as error:
            raise self._at((*path, key), error.found, error.allowed) from None
        kind = FaultKind[verb.upper()]
        own = next(self._subscribers) if kind is FaultKind.SUBSCRIBE else self._subscriber_of(name, wanted, at_us)
        issuer = entry.get("subscriber", own)
        if type(issuer) is not int:
            raise self._at((*path, "subscriber"), repr(issuer), "the number of a subscriber")
        fault = Fault(at_us, kind, (name,), issuer=issuer, wanted=wanted)
        self._commands.append(fault)
        return _Steps((fault,), None, (key, "subscriber"))

    def _subscriber_of(self, name: NodeName, wanted: str, at_us: int) -> int:
        """Who wants that at the client: the newest by a step, or else by its script (-1: nobody)."""
        before = [each for each in self._commands if each.time_us <= at_us and each.wanted == wanted]
        withdrawn = {each.issuer for each in before if each.kind is FaultKind.UNSUBSCRIBE}
        of_steps = (each.issuer for each in before if each.kind is FaultKind.SUBSCRIBE and each.nodes == (name,))
        found = [each for each in (*self._targets.scripted(name, wanted), *of_steps) if each not in withdrawn]
        return found[-1] if found else -1

    def _name(self, entry: Mapping[str, Any], path: tuple[str, ...], key: str) -> NodeName:
        if key not in entry:
            raise self._at(path, f"no `{key}`", f"`{key}`: the name of a node")
        if not isinstance(entry[key], str):
            raise self._at((*path, key), repr(entry[key]), "the name of a node")
        return str(entry[key])

    def _ends(self, entry: Mapping[str, Any], path: tuple[str, ...], key: str) -> tuple[NodeName, NodeName]:
        value = entry[key]
        if not (isinstance(value, list) and len(value) == 2 and all(isinstance(each, str) for each in value)):
            raise self._at((*path, key), repr(value), "the names of the two ends, such as [b1, b2]")
        return value[0], value[1]

    def _changed(self, spec: LinkSpec, changes: Mapping[str, Any], path: tuple[str, ...]) -> LinkSpec:
        try:
            return changed_link(spec, changes)
        except ValueError as error:
            raise self._at(path, str(changes), str(error)) from None

    def _partition(self, value: Any, path: tuple[str, ...], at_us: int) -> Fault:
        if not isinstance(value, list) or not all(isinstance(group, list) and group for group in value):
            raise self._at((*path, "partition"), repr(value), "a list of groups, such as [[b0, b1], [b2]]")
        listed = [name for group in value for name in group]
        for name in listed:
            if name not in self._targets.nodes:
                raise self._at((*path, "partition"), repr(name), "nodes of the run")
        groups = [[str(name) for name in group] for group in value]
        rest = [name for name in self._targets.nodes if name not in listed]
        stays_with: dict[NodeName, list[NodeName]] = {}
        for first, second in self._links:  # a client that is not listed stays with its broker
            for client, broker in ((first, second), (second, first)):
                if client in rest and broker in listed:
                    stays_with.setdefault(client, []).append(broker)
        for client, brokers in stays_with.items():
            if len(brokers) == 1 and not any(client in key and set(key) & set(rest) - {client} for key in self._links):
                next(group for group in groups if brokers[0] in group).append(client)
                rest.remove(client)
        if rest:
            groups.append(rest)
        return Fault(at_us, FaultKind.PARTITION, groups=tuple(tuple(group) for group in groups))

    def _random(self, entry: Mapping[str, Any], path: tuple[str, ...]) -> list[Fault]:
        options = entry["random"]
        if not isinstance(options, dict) or len(entry) != 1:
            raise self._at(
                (*path, "random"), repr(options)[:60], "a mapping with `every` and `until`, and nothing beside it"
            )
        path = (*path, "random")
        settings = read_options(RandomFaults, options, path, self._at)
        try:
            return draw_faults(settings, self._targets, self._links, self._seed, self._new_link)
        except InputError as error:
            raise self._at((*path, error.place), error.found, error.allowed) from None

    def _time(self, entry: Mapping[str, Any], path: tuple[str, ...], key: str, required: bool = False) -> int:
        if key not in entry:
            if required:
                raise self._at(path, f"no `{key}`", f"`{key}`: a time with its unit, such as '5 s'")
            return 0
        try:
            return int(parse_duration(entry[key]))
        except ValueError as error:
            raise self._at((*path, key), repr(entry[key]), str(error)) from None
