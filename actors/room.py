"""What a live run needs of a computer, and whether that is there: memory, open files and sockets, ports.

All of it is said before anything starts, with what would fit.
"""

import resource
import sys
from collections import Counter
from pathlib import Path

import psutil

from murmur_pubsub.deployment import Deployment
from murmur_pubsub.errors import InputError

ACTOR_BYTES = 75 * 1024 * 1024
"""Memory that an idle actor of one node holds of its own (67 MB were measured), with a little to work in."""
NODE_BYTES = 1024 * 1024
"""What each further node of an actor takes, with a little to work in."""
RAY_BYTES = 900 * 1024 * 1024
"""What Ray itself holds besides actors."""
ACTOR_FILES = 80
"""Files and sockets that a process of Ray has open for itself."""
NODE_FILES = 6
"""What a node has open beside its links: it listens, and has a journal with a side file and a stable log of three."""
_RAISED_BY_RAY = 65_536
_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
_USUAL_PORTS = (49_152, 65_535)
_HOW = "`ulimit -n` before murmur; above the hard limit: /etc/security/limits.conf, or docker's --ulimit nofile"


def fitting_actors(memory_bytes: int, density: int = 1) -> int:
    """How many actors of that many nodes fit beside Ray into this much memory."""
    return max(0, (memory_bytes - RAY_BYTES) // (ACTOR_BYTES + (density - 1) * NODE_BYTES))


def fitting_nodes(memory_bytes: int, density: int = 1) -> int:
    """How many nodes fit beside Ray into this much memory."""
    return fitting_actors(memory_bytes, density) * density


def check_room(deployment: Deployment) -> None:
    """Raise `InputError` if this host has not the memory, files or ports for the deployment."""
    nodes = len(deployment.nodes)
    density = max(map(len, deployment.actors), default=1)
    check_memory(nodes, psutil.virtual_memory().available, density)
    check_files(deployment, _file_limit(*resource.getrlimit(resource.RLIMIT_NOFILE)))
    check_ports(nodes, _ports())


def check_memory(nodes: int, available_bytes: int, density: int = 1) -> None:
    """Raise `InputError` if that many nodes do not fit into this much free memory."""
    fitting = fitting_nodes(available_bytes, density)
    if nodes <= fitting:
        return
    actors = -(-nodes // density)
    needed = RAY_BYTES + actors * ACTOR_BYTES + (nodes - actors) * NODE_BYTES
    held = f"{nodes} actors" if density == 1 else f"{nodes} nodes in {actors} actors"
    enough = next((more for more in range(density + 1, nodes + 1) if fitting_nodes(available_bytes, more) >= nodes), 0)
    denser = f"density: {enough} or more, where nodes share actors" if enough else "fewer nodes"
    raise InputError(
        "density",
        f"{held}, which need {needed / 1e9:.1f} GB, and {available_bytes / 1e9:.1f} GB free",
        f"at most {fitting} {'actors' if density == 1 else 'nodes'} here; {denser}; or `--runtime virtual`: no actors",
    )


def check_files(deployment: Deployment, limit: int) -> None:
    """Raise `InputError` if an actor would have more files and sockets open than the limit for a process."""
    needs = _files_of_nodes(deployment)
    for nodes in deployment.actors or [(name,) for name in needs]:
        needed = ACTOR_FILES + sum(needs[name] for name in nodes)
        if needed > limit:
            fitting = (limit - ACTOR_FILES) * len(nodes) // (needed - ACTOR_FILES)
            fewer = f"density: {fitting} or less, or " if fitting > 0 and len(nodes) > 1 else ""
            raise InputError(
                "density",
                f"{len(nodes)} nodes in an actor, that of {nodes[0]}, with at least {needed:,} open files and sockets,"
                f" and {limit:,} allowed",
                f"{fewer}a limit of {needed:,} or more ({_HOW})",
            )


def check_ports(nodes: int, ports: int) -> None:
    """Raise `InputError` if the nodes, each of which listens at a port of its own, are more than half of the ports: the
    other half is for those who dial."""
    if nodes > ports // 2:
        allowed = f"at most {ports // 2:,} here, or more ports (sysctl net.ipv4.ip_local_port_range)"
        raise InputError("density", f"{nodes:,} nodes that listen, and {ports:,} ports", allowed)


def _files_of_nodes(deployment: Deployment) -> Counter[str]:
    """How many files and sockets each node has open, if its links are all that it talks over."""
    needs = Counter({spec.name: NODE_FILES + deployment.settings.keep_inputs for spec in deployment.nodes})
    for plan in deployment.links:
        needs[plan.first] += 1
        needs[plan.second] += 1
    return needs


def _file_limit(soft: int, hard: int) -> int:
    """How many files a process of Ray may have open: Ray raises the soft limit, to the hard one or as far as here."""
    raised = _RAISED_BY_RAY if hard == resource.RLIM_INFINITY else min(hard, _RAISED_BY_RAY)
    return sys.maxsize if soft == resource.RLIM_INFINITY else max(soft, raised)


def _ports() -> int:
    try:
        first, last = map(int, _PORTS.read_text().split())
    except OSError:
        first, last = _USUAL_PORTS
    return last - first + 1
