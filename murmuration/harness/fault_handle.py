"""Faults by hand: what `Cluster.faults` offers, each checked against the state of the cluster beforehand."""

from collections.abc import Callable, Sequence
from typing import Any

from murmur_pubsub.deployment import Deployment, specs_of
from murmur_pubsub.errors import InputError
from murmur_pubsub.faults import Fault, FaultKind, link_key
from murmur_pubsub.links import LinkSpec
from murmur_pubsub.plan_checker import PlanChecker
from murmuration.scenario.durations import duration_of
from murmuration.scenario.schema import changed_link


class FaultHandle:
    """Breaks and mends the nodes and links of a running cluster, at once.

    Every call raises `InputError` for what could not take effect, such as a kill of a node that is down, and `RunError`
    for what did not. `look` has what has happened by itself noted, before anything is checked.
    """

    def __init__(
        self,
        deployment: Deployment,
        new_link: LinkSpec,
        look: Callable[[], None],
        carry_out: Callable[[Fault], int],
    ) -> None:
        self._look = look
        self._carry_out = carry_out
        self._links = specs_of(deployment.links)
        self._new_link = new_link
        self._orders = deployment.rules.orders
        self._names = [spec.name for spec in deployment.nodes]
        self._targets = deployment.fault_targets
        self._checker = PlanChecker(self._targets)
        self._members = self._checker.members

    def runs(self, name: str) -> bool:
        """Is the node neither down nor stalled?"""
        self._look()
        return self._checker.runs(name)

    def note(self, fault: Fault) -> None:
        """It has happened, though nobody has ordered it."""
        self._checker.note(fault)

    def kill(self, name: str, sigkill: bool = False, disk_lost: bool = False) -> None:
        """End the node's process: by Ray, or by the operating system's SIGKILL. Of nodes that share an actor this one
        is thrown away, and the process goes on. `disk_lost`: what a broker has stored is gone too."""
        self._do(Fault(0, FaultKind.KILL, (name,), sigkill=sigkill, disk_lost=disk_lost))

    def restart(self, name: str) -> None:
        """Start a node that is down again, from what it had stored."""
        self._do(Fault(0, FaultKind.RESTART, (name,)))

    def stall(self, name: str) -> None:
        """Stop the node's process; or hold the node alone, if others share that process."""
        self._do(Fault(0, FaultKind.STALL, (name,)))

    def resume(self, name: str) -> None:
        """Let a stalled node go on."""
        self._do(Fault(0, FaultKind.RESUME, (name,)))

    def slow(self, name: str, work: str) -> None:
        """Make each message cost the node that much more time, such as "2 ms"; "0 s" ends it."""
        self._do(Fault(0, FaultKind.SLOW, (name,), work_us=duration_of(work, "faults.slow")))

    def cut(self, first: str, second: str) -> None:
        """Let nothing pass the link between the two."""
        self._do(Fault(0, FaultKind.CUT, (first, second)))

    def heal(self, first: str, second: str) -> None:
        """Let the link come up again."""
        self._do(Fault(0, FaultKind.HEAL, (first, second)))

    def link(self, first: str, second: str, **changes: Any) -> None:
        """Change keys of the link, as in a scenario's `links`: loss=0.2, delay="50 ms". None: as planned."""
        key = link_key(first, second)
        if key not in self._links:
            raise InputError("faults.link", f"{first}-{second}", "two nodes with a link between them")
        spec = self._changed(self._links[key], changes, "link") if changes else None
        self._do(Fault(0, FaultKind.CHANGE_LINK, (first, second), link=spec))

    def connect(self, first: str, second: str, **changes: Any) -> None:
        """Make a link between two brokers that have none, as in a scenario's `links` but for these keys of it."""
        spec = self._changed(self._new_link, changes, "connect")
        self._do(Fault(0, FaultKind.CONNECT, (first, second), link=spec))
        self._links[link_key(first, second)] = spec

    def disconnect(self, first: str, second: str) -> None:
        """Take the link between two brokers out of the overlay."""
        self._do(Fault(0, FaultKind.DISCONNECT, (first, second)))

    def join(self, name: str, to: str) -> None:
        """Start a broker that is down and has no neighbours, with a link to that other one."""
        self.connect(name, to)
        self.restart(name)

    def join_cell(self, name: str, cell: str, to: Sequence[str] | None = None) -> int:
        """Start a broker that has not been started yet, with links to those of that cell and of the neighbouring ones,
        or to those named, and order it to join the cell. The number of the order; `Cluster.join_cell` waits for its
        answer."""
        if self._members is None:
            raise InputError("faults.join_cell", repr(cell), "protocols that have cells")
        for each in self._members.around(cell) if to is None else to:
            self.connect(name, each)
        self.restart(name)
        return self.order("join", name, cell)

    def order(self, verb: str, name: str, *arguments: str) -> int:
        """Tell the broker to do something, such as `order("move", "b9", "b8", "b5")`; what follows its name is as its
        protocol declares. The number of the order, by which `Cluster.answer` finds what became of it."""
        if verb not in self._orders:
            raise InputError(
                "faults.order", repr(verb), f"what the protocols know: {', '.join(self._orders) or 'none'}"
            )
        called = self._orders[verb]
        if len(arguments) != len(called):
            raise InputError(f"faults.{verb}", f"{len(arguments)} further names", ", ".join(called) or "none")
        pairs = tuple(zip(called, arguments, strict=True))
        return self._do(Fault(0, FaultKind.ORDER, (name,), verb=verb, arguments=pairs))

    def partition(self, *groups: Sequence[str]) -> None:
        """Separate these groups; nodes that are in none form one of their own."""
        listed = {name for group in groups for name in group}
        rest = tuple(name for name in self._names if name not in listed)
        divided = tuple(tuple(group) for group in groups) + ((rest,) if rest else ())
        self._do(Fault(0, FaultKind.PARTITION, groups=divided))

    def unite(self) -> None:
        """End the partition."""
        self._do(Fault(0, FaultKind.UNITE))

    def kill_actor(self, name: str) -> None:
        """End the process of the actor that holds the node, with all nodes in it (the scenario's `density`)."""
        self._do(Fault(0, FaultKind.KILL_ACTOR, self._targets.actor_of(name)))

    def restart_actor(self, name: str) -> None:
        """Start that actor again, with the nodes that `kill_actor` took down, or that had died by themselves before."""
        self._do(Fault(0, FaultKind.RESTART_ACTOR, self._targets.actor_of(name)))

    def lose_host(self, number: int) -> None:
        """Take the host away, with all its nodes."""
        self._do(Fault(0, FaultKind.LOSE_HOST, host=number))

    def return_host(self, number: int) -> None:
        """Start its nodes again, on another host if it stays away."""
        self._do(Fault(0, FaultKind.RETURN_HOST, host=number))

    def _changed(self, spec: LinkSpec, changes: dict[str, Any], call: str) -> LinkSpec:
        try:
            return changed_link(spec, changes)
        except ValueError as error:
            raise InputError(f"faults.{call}", f"{changes!r:.80}", str(error)) from None

    def _do(self, fault: Fault) -> int:
        self._look()
        self._checker.check(fault, f"faults.{fault.verb or fault.kind.name.lower()}")
        return self._carry_out(fault)
