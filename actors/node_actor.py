"""The Ray actor around nodes: one each, or as many as the scenario's `density` puts into it.

Ray starts, names, watches and kills these actors and carries the calls below; events never travel in actor
calls. Imports stay light: every one is paid for by every actor.
"""

import gc
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ray

from actors.actor_settings import ActorSettings
from actors.handshake import Address
from actors.processes import own_place
from actors.resident import Arrival, Household, Listening, Resident
from actors.scratch import make_scratch
from actors.search_path import extend_search_path
from murmur_pubsub.errors import InputError, RunError
from murmur_pubsub.machine import NodeName
from murmur_pubsub.protocol_error import ProtocolError


class NodeActor:
    """The process of some nodes of a live run. Nodes come by `listen`, and again after a crash; all of them are told
    by `meet` and `moved` where the nodes of the run are; `ask` puts one question to several."""

    def __init__(self, settings: ActorSettings) -> None:
        self._settings = settings
        self._household = Household(settings)

    async def listen(self, arrivals: Sequence[Arrival]) -> dict[NodeName, Listening]:
        """Make these nodes, with sockets and journals. Raises `ProtocolError` for a machine that cannot be made."""
        settings, residents = self._settings, self._household.residents
        others = len(residents)
        extend_search_path(settings.search_path)
        if settings.scratch is not None:
            make_scratch(Path(settings.scratch))
        Path(settings.journal_folder).mkdir(parents=True, exist_ok=True)
        coming = {arrival.spec.name: Resident(arrival, self._household) for arrival in arrivals}
        if not others:
            # What the imports made lives as long as the actor: the collector need not walk it again and again.
            _freeze()
            gc.set_threshold(50_000, 20, 50)
        host = settings.host or ray.util.get_node_ip_address()
        place = own_place(ray.get_runtime_context().get_node_id())
        listening = {
            name: Listening(*resident.listen(host), place, resident.clock.zero_ns) for name, resident in coming.items()
        }
        residents.update(coming)
        return listening

    async def meet(self, brokers: frozenset[NodeName], addresses: Mapping[NodeName, Address]) -> None:
        """Learn which nodes are brokers, and where nodes are reached."""
        self._household.brokers = brokers
        self._household.addresses.update(addresses)

    async def moved(self, addresses: Mapping[NodeName, Address]) -> None:
        """These nodes have new incarnations at new addresses."""
        self._household.addresses.update(addresses)

    async def begin(self) -> None:
        """Get ready for publishing, which is about to begin: what subscriptions made is walked by the collector now,
        and not amid the events."""
        _freeze()
        for resident in self._household.residents.values():
            resident.begin()

    async def ask(self, what: str, arguments: Mapping[NodeName, tuple[Any, ...]]) -> dict[NodeName, Any]:
        """The answers of those nodes that are here; raises the first of what they raise, when all were asked."""
        answers: dict[NodeName, Any] = {}
        failure: Exception | None = None
        for name, given in arguments.items():
            resident = self._household.residents.get(name)
            if resident is None:
                continue
            try:
                answers[name] = await getattr(resident, what)(*given)
            except (InputError, RunError, ProtocolError) as error:
                failure = failure or error
            except Exception as error:
                failure = failure or RunError(f"the actor of {name} failed: {error!r}")
        if failure is not None:
            raise failure
        return answers

    async def crash(self, name: NodeName) -> None:
        """Have one node gone, as if it had been alone in this process and that had been killed."""
        await self._household.residents.pop(name).crash()

    @ray.method(concurrency_group="watch")
    async def at_work(self, waited: str) -> tuple[tuple[int, ...], ProtocolError] | None:
        """What a machine is at that keeps this actor from answering: a thread of its own answers this call."""
        for resident in list(self._household.residents.values()):
            if (said := resident.at_work(waited)) is not None:
                return said
        return None


def _freeze() -> None:
    gc.collect()
    gc.freeze()
