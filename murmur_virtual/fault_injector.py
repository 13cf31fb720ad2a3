"""Carries out the steps of a fault plan on a virtual network."""

from murmur_pubsub.deployment import Deployment
from murmur_pubsub.faults import Fault, FaultKind, link_key
from murmur_pubsub.machine import NodeName
from murmur_virtual.virtual_runtime import Simulation


class Breaker:
    """`gone` and `came` are the nodes that the last step took away or brought (back)."""

    def __init__(self, simulation: Simulation, deployment: Deployment) -> None:
        self.gone: list[NodeName] = []
        self.came: list[NodeName] = []
        self._simulation = simulation
        self._specs = {spec.name: spec for spec in deployment.nodes}
        self._links = {link_key(plan.first, plan.second): plan.spec for plan in deployment.links}
        self._hosts = deployment.hosts

    def carry_out(self, fault: Fault) -> None:
        """Do what the step says, now."""
        self.gone, self.came = [], []
        simulation, nodes = self._simulation, fault.nodes
        match fault.kind:
            case FaultKind.KILL:
                self._kill(nodes[0])
            case FaultKind.RESTART:
                self._start(nodes[0])
            case FaultKind.STALL:
                simulation.stall(nodes[0])
            case FaultKind.RESUME:
                simulation.resume(nodes[0])
            case FaultKind.SLOW:
                simulation.slow(nodes[0], fault.work_us)
            case FaultKind.CUT:
                simulation.cut(nodes[0], nodes[1])
            case FaultKind.HEAL:
                simulation.heal(nodes[0], nodes[1])
            case FaultKind.CHANGE_LINK:
                simulation.wiring.change(nodes[0], nodes[1], fault.link or self._links[link_key(*nodes)])
            case FaultKind.PARTITION:
                simulation.wiring.partition(fault.groups)
            case FaultKind.UNITE:
                simulation.wiring.unite()
            case FaultKind.LOSE_HOST:
                for name in self._on(fault.host):
                    if not simulation.nodes[name].down:
                        self._kill(name, silently=True)
            case FaultKind.RETURN_HOST:
                for name in self._on(fault.host):
                    if simulation.nodes[name].down:
                        self._start(name)

    def _on(self, host: int) -> list[NodeName]:
        return [name for name in self._specs if self._hosts.get(name, 0) == host]

    def _kill(self, name: NodeName, silently: bool = False) -> None:
        self._simulation.crash(name, silently)
        self.gone.append(name)

    def _start(self, name: NodeName) -> None:
        if name in self._simulation.nodes:
            self._simulation.restart(name)
        else:
            self._simulation.add_node(self._specs[name])
            self._simulation.wiring.node_is_back(name)
        self.came.append(name)
