"""One event's way through the overlay, as lines of text."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import starmap

from spark_analysis.event_way import EventMessage, EventWay, Visit


def way_lines(way: EventWay, findings: Iterable[str] = ()) -> Iterator[str]:
    """What happened in order of time, a line for each visit of a node, and a summary. `findings`: the judge's words."""
    attributes = ", ".join(f"{name} = {value!r}" for name, value in way.attributes.items())
    yield f"event {way.source}:{way.sequence}, published {way.published_us / 1e6:,.6f} s into the run"
    yield f"attributes: {attributes or 'none'}"
    if not way.has_messages:
        yield "The run kept no messages (journal: deliveries): only publication, deliveries and losses are known."
    yield ""
    width = max(len(visit.node) for visit in way.visits)
    # What happened at the same time is in the order in which it was put together: faults last.
    happened = [(visit.time_us, f"{visit.node:<{width}}  {visit_words(visit)}") for visit in way.visits]
    happened += [(incident.time_us, f"{'':<{width}}  * {incident.text}") for incident in way.incidents]
    for time_us, text in sorted(happened, key=lambda each: each[0]):
        yield f"{(time_us - way.published_us) / 1e3:>12,.3f} ms  {text}".rstrip()
    yield ""
    yield way_summary(way)
    yield from findings


def visit_words(visit: Visit) -> str:
    """What came, and what was done."""
    parts = []
    if visit.published:
        parts.append("publishes it")
    elif visit.cause is not None:
        unseen = "" if visit.cause.sent else " (which its journal does not have)"
        hops = f", hop {visit.cause.hops}" if visit.cause.hops else ""
        parts.append(f"{visit.cause.kind} from {visit.cause.sender}{hops}{unseen}")
    if visit.delivered:
        numbers = ", ".join(map(str, visit.delivered))
        parts.append(f"delivers to subscriber{'s' if len(visit.delivered) > 1 else ''} {numbers}")
    sent: dict[str, Counter[str]] = {}
    for message in visit.sent:
        sent.setdefault(message.kind or "nothing", Counter())[_receiver(message)] += 1
    parts += [f"{kind} to {', '.join(starmap(_times, receivers.items()))}" for kind, receivers in sent.items()]
    return "; ".join(parts)


def _times(receiver: str, count: int) -> str:
    """A protocol that recovers messages may send one a thousand times."""
    return receiver if count == 1 else f"{receiver} {count:,} times"


def way_summary(way: EventWay) -> str:
    """Counts."""
    messages = list(way.messages)
    lost = sum(message.loss is not None for message in messages)
    unseen = sum(message.loss is None and message.received is None for message in messages)
    delivered = sum(len(visit.delivered) for visit in way.visits)
    last_us = max((visit.time_us for visit in way.visits if visit.delivered), default=way.published_us)
    last = f", the last after {(last_us - way.published_us) / 1e3:,.3f} ms" if delivered else ""
    counts = [
        f"{delivered:,} deliveries{last}",
        f"{len({visit.node for visit in way.visits}):,} nodes",
        f"{len(messages):,} messages, {lost:,} lost" + (f", {unseen:,} of unknown fate" if unseen else ""),
    ]  # fmt: skip
    return "; ".join(counts)


def _receiver(message: EventMessage) -> str:
    notes = []
    if message.copy:
        notes.append("a copy of the link's")
    if message.loss is not None:
        notes.append(message.loss)
    elif message.received is None:
        notes.append("did not arrive")
    return message.receiver + (f" ({', '.join(notes)})" if notes else "")
