"""Acknowledgements as they go up: what all behind a broker have, and who those are.

Theory of operation. Of a cell each broker acknowledges what all behind the cell have, so the most that one of them says
holds. One that has not heard of a broker which has joined behind it does not wait for that one. Its word would make
final what the newcomer lacks. So a broker says with its acknowledgements which it knows to have joined, and a word that
leaves out one who is there is not taken. The publishers' broker knows of a newcomer before it heeds the filters of that
one; so whatever the newcomer is owed is kept until it has acknowledged it.
"""

from collections.abc import Iterable

from murmur_pubsub.machine import Effect
from reliability.gryphon.messages import Acks, MembersAcks
from reliability.gryphon.streams import BrokerStream
from routing.router import StreamRouter


def acknowledge(streams: Iterable[BrokerStream], router: StreamRouter) -> list[Effect]:
    """Accumulate, and tell upstream what is new."""
    news: dict[str, list[BrokerStream]] = {}
    for stream in streams:
        final = stream.accumulate()
        if stream.came_by is not None and final > stream.acked_up:
            stream.acked_up = final
            news.setdefault(stream.came_by, []).append(stream)
    effects: list[Effect] = []
    joined = router.joined
    for branch, told in news.items():
        upto = [number for stream in told for number in (stream.number, stream.acked_up)]
        acks = MembersAcks(upto, list(joined), []) if joined else Acks(upto, [])
        for path in router.ways(branch):
            effects += told[0].send_by(path, acks)
    return effects


def speaks_for_all(message: Acks | MembersAcks, router: StreamRouter) -> bool:
    """Has who says that taken all into account that are known here to be there?"""
    return router.knows_enough(message.joined if type(message) is MembersAcks else ())
