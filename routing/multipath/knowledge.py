"""What the parts of a multipath router share: primary network, subscriptions, links, and the view of them."""

from typing import NamedTuple

from murmur_pubsub.machine import Effect, NodeName, Send
from murmur_pubsub.message import Message
from routing.multipath.load import Loads
from routing.multipath.parameters import MultipathParameters
from routing.multipath.primary_network import PrimaryNetwork
from routing.multipath.soft_links import SoftLinks
from routing.multipath.subscription_tables import MasterSubscriptionTable
from routing.multipath.view import View, WorkingView


class Office(NamedTuple):
    """Of two offices the greater holds: see `routing.multipath.messages.CoordinatorNamed`."""

    term: int
    epoch: int
    name: NodeName


class Knowledge:
    """One broker's state. The view is made anew when it is looked at after a change."""

    def __init__(self, name: NodeName, epoch: int, parameters: MultipathParameters) -> None:
        self.name = name
        self.parameters = parameters
        self.network = PrimaryNetwork(name, parameters.delta, epoch)
        self.mst = MasterSubscriptionTable()
        self.mst.note_origin(name, (epoch, 0), ())
        self.links = SoftLinks(parameters)
        self.loads = Loads()
        self.office: Office | None = None
        """Who hosts the coordinator of moves."""
        if parameters.coordinator is not None:
            self.office = Office(0, 0, parameters.coordinator)
        self._view: View | None = None

    @property
    def view(self) -> View:
        """The view of now."""
        if self._view is None:
            mom = self.network.mom
            self._view = View(mom, self.mst.ppaths)
            self.links.drop_where(lambda peer: peer not in mom or peer in self.network.peers)
            self.loads.keep_only(mom)
        return self._view

    def working(self) -> WorkingView:
        """The working map and table over the links of now."""
        view = self.view
        network = self.network
        if network.down:
            real = [peer for peer in network.peers if peer not in network.down]
        else:
            real = list(network.peers)
        return view.working(self.mst, [*real, *self.links.soft], self.links.candidates, self.parameters.covering)

    def links_changed(self) -> None:
        """A link or an origin has come or gone: working map and table are made anew."""
        if self._view is not None:
            self._view.drop_working(self.links.sent)

    def map_changed(self) -> None:
        """The primary network has changed."""
        self.links_changed()
        self._view = None

    def protected(self) -> dict[NodeName, None]:
        """Soft links that bridge a neighbour that is away."""
        network = self.network
        bridges = {peer: None for away in network.down for peer, _ in network.bridges(away)}
        return {peer: None for peer in bridges if peer in self.links.soft}

    def new_peers(self, peers: list[NodeName]) -> list[Effect]:
        """The primary neighbours have changed: store it, and say so to all that should know."""
        self.network.set_peers(peers)
        return [self.network.record(), *self.peers_changed(), *self.network.tell_own()]

    def peers_changed(self) -> list[Effect]:
        """What follows from other primary neighbours for the own links, and for the coordinator."""
        self.map_changed()
        self.links.trim(len(self.network.peers), self.protected())
        return self.report()

    def report(self) -> list[Effect]:
        """The coordinator is told of the primary neighbours."""
        return self.to_coordinator(self.network.said_by(self.name, 0))

    def to_coordinator(self, message: Message) -> list[Effect]:
        """The message to whoever hosts the coordinator, if anybody does."""
        return [] if self.office is None else [Send(self.office.name, message)]
