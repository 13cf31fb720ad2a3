"""What the parts of a multipath router share: primary network, subscriptions, links, and the view of them."""

from murmur_pubsub.machine import Effect, NodeName, Send
from routing.multipath.load import Loads
from routing.multipath.messages import Neighbours
from routing.multipath.parameters import MultipathParameters
from routing.multipath.primary_network import PrimaryNetwork
from routing.multipath.soft_links import SoftLinks
from routing.multipath.subscription_tables import MasterSubscriptionTable
from routing.multipath.view import View, WorkingView


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

    def new_peers(self, peers: list[NodeName], tell: bool = True) -> list[Effect]:
        """The primary neighbours have changed: say so (unless all brokers that should know do) and to the coordinator.
        Raises `InputError` over the fanout."""
        self.parameters.check_degree(len(peers))
        self.network.set_peers(peers)
        self.map_changed()
        self.links.trim(len(peers), self.protected())
        effects = self.network.tell_own() if tell else []
        if self.parameters.coordinator is not None:
            epoch, version, stated = self.network.own
            effects.append(Send(self.parameters.coordinator, Neighbours(self.name, epoch, version, 0, stated)))
        return effects
