"""Carries out the steps of a fault plan on a virtual network, but for those of clients, which the run issues."""

from murmur_pubsub.deployment import Deployment, LinkPlan
from murmur_pubsub.faults import COMMANDS, Fault, FaultKind, link_key
from murmur_pubsub.machine import NodeName, Order
from murmur_virtual.storage import VirtualStorage
from murmur_virtual.virtual_runtime import VirtualRuntime


class VirtualFaultInjector:
    """`gone` and `came` are the nodes that the last step took away or brought (back)."""

    def __init__(self, runtime: VirtualRuntime, deployment: Deployment) -> None:
        self.gone: list[NodeName] = []
        self.came: list[NodeName] = []
        self._runtime = runtime
        self._specs = {spec.name: spec for spec in deployment.nodes}
        self._links = {link_key(plan.first, plan.second): plan.spec for plan in deployment.links}
        self._hosts = deployment.hosts
        self._killed: dict[tuple[NodeName, ...], list[NodeName]] = {}
        """Which nodes the kill of an actor took down."""

    def carry_out(self, step: int, fault: Fault) -> None:
        """Do what the fault says, now, as that step of the plan."""
        assert fault.kind not in COMMANDS
        self.gone, self.came = [], []
        runtime, nodes = self._runtime, fault.nodes
        match fault.kind:
            case FaultKind.KILL:
                self._kill(nodes[0])
                if fault.disk_lost:
                    runtime.nodes[nodes[0]].storage = VirtualStorage()
            case FaultKind.RESTART:
                self._start(nodes[0])
            case FaultKind.STALL:
                runtime.stall(nodes[0])
            case FaultKind.RESUME:
                runtime.resume(nodes[0])
            case FaultKind.SLOW:
                runtime.slow(nodes[0], fault.work_us)
            case FaultKind.CUT:
                runtime.cut(nodes[0], nodes[1])
            case FaultKind.HEAL:
                runtime.heal(nodes[0], nodes[1])
            case FaultKind.CHANGE_LINK:
                runtime.links.change(nodes[0], nodes[1], fault.link or self._links[link_key(*nodes)])
            case FaultKind.CONNECT:
                assert fault.link is not None
                self._links[link_key(*nodes)] = fault.link
                runtime.connect(LinkPlan(nodes[0], nodes[1], fault.link))
            case FaultKind.DISCONNECT:
                runtime.links.remove(nodes[0], nodes[1])
            case FaultKind.ORDER:
                arguments = [name for _, name in fault.arguments]
                runtime.nodes[nodes[0]].take_input(Order(step, fault.verb, arguments), runtime.now_us)
            case FaultKind.PARTITION:
                runtime.links.partition(fault.groups)
            case FaultKind.UNITE:
                runtime.links.unite()
            case FaultKind.KILL_ACTOR:
                up = self._killed[nodes] = [name for name in nodes if self._is_up(name)]
                for name in up:
                    self._kill(name)
            case FaultKind.RESTART_ACTOR:
                for name in self._killed.pop(nodes):
                    self._start(name)
            case FaultKind.LOSE_HOST:
                for name in self._on(fault.host):
                    if not runtime.nodes[name].down:
                        self._kill(name, silently=True)
            case FaultKind.RETURN_HOST:
                for name in self._on(fault.host):
                    if runtime.nodes[name].down:
                        self._start(name)

    def _on(self, host: int) -> list[NodeName]:
        """The nodes planned for that host, as far as they were ever there."""
        return [name for name in self._specs if self._hosts.get(name, 0) == host and name in self._runtime.nodes]

    def _is_up(self, name: NodeName) -> bool:
        return name in self._runtime.nodes and not self._runtime.nodes[name].down

    def _kill(self, name: NodeName, silently: bool = False) -> None:
        self._runtime.crash(name, silently)
        self.gone.append(name)

    def _start(self, name: NodeName) -> None:
        if name in self._runtime.nodes:
            self._runtime.restart(name)
        else:
            self._runtime.add_node(self._specs[name])
            self._runtime.links.node_is_back(name)
        self.came.append(name)
