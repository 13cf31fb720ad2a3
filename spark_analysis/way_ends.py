"""Where the way of an event to a subscriber that did not get it ended: what findings are grouped by."""

import itertools
from collections.abc import Sequence

import networkx as nx

from murmur_pubsub.run_manifest import RunManifest
from spark_analysis.event_way import EventWay


class WayEnds:
    """Tells for a run where ways ended, along the overlay as it was planned."""

    def __init__(self, manifest: RunManifest) -> None:
        self._homes = manifest.homes
        self._overlay: nx.Graph[str] = nx.Graph(manifest.links)

    def of_missing(self, way: EventWay, client: str) -> str:
        """Where the event got to on its way to that client, in words."""
        reached = {visit.node for visit in way.visits}
        home = self._homes.get(client, client)
        if client in reached and client != home:
            return f"{client} had it and handed it to nobody"
        if home in reached:
            return f"{home} had it and did not hand it to {client}" + self._loss(way, home, client)
        planned = self._planned(next(iter(way.visits)).node, home)
        for here, following in itertools.pairwise(planned):
            if here in reached and following not in reached:
                return f"between {here} and {following}" + self._loss(way, here, following)
        return f"it did not reach {home}"

    def _planned(self, first: str, last: str) -> Sequence[str]:
        try:
            way: list[str] = nx.shortest_path(self._overlay, first, last)
        except (nx.NetworkXNoPath, nx.NodeNotFound):
            return ()
        return way

    def _loss(self, way: EventWay, sender: str, receiver: str) -> str:
        sent = [message for message in way.messages if message.sender == sender and message.receiver == receiver]
        if not sent and way.has_messages:
            return f": {sender} did not send it"
        return next((f": {message.loss}" for message in sent if message.loss is not None), "")
