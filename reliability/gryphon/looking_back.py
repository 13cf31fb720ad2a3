"""Where a subend begins; and with a finite DCT: what is older than that is wanted, though nothing later has come."""

from murmur_pubsub.machine import Effect
from reliability.gryphon.parameters import GryphonParameters
from reliability.gryphon.streams import BrokerStream, stream_timer
from reliability.gryphon.subend import Subend


def look_back(stream: BrokerStream, dct: int | None, now_us: int) -> tuple[bool, list[Effect]]:
    """Is something lacking that nobody asks for, and when to look again. While nothing is published the next look is
    twice as far away each time, so that a stream that is at rest comes to rest."""
    subend = stream.subend
    assert subend is not None
    assert dct is not None
    subend.heard(now_us // 1_000 - dct)
    lacks = subend.has_gap(stream.knowledge) and not stream.watching_gap
    return lacks, look_back_after(stream, 2 * subend.look_back)


def look_back_after(stream: BrokerStream, wait: int | None) -> list[Effect]:
    """Look in so many ms (None: never)."""
    if wait is None or stream.subend is None or stream.pubend is not None:
        return []
    stream.subend.look_back = wait
    return [stream_timer("dct", stream.number, wait * 1_000)]


def begin_subend(stream: BrokerStream, version: int, mark: int, parameters: GryphonParameters) -> list[Effect]:
    """From that tick on, or from what is not final here, the pubend heeds the filters of that version."""
    effects: list[Effect] = []
    begin = max(mark, stream.knowledge.final + 1)
    if stream.subend is None:
        stream.subend = Subend(begin, parameters)
        effects = look_back_after(stream, parameters.dct)
    stream.subend.begin(version, begin)
    return effects
