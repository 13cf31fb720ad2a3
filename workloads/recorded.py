"""Recorded publications: real events from files, with filters generated over what the files hold.

Two formats: PADRES publications (`[class,'STOCK'],[symbol,'YHOO'],[close,37.90],…`, a line each), in a folder or in a
`.tar` archive of any compression; and JSON lines, an object of attributes each. All events of one
value of `publisher_by` (the symbol, for quotes) come from one publisher, so that order means something.

Files are read whole but parsed only where events are taken. Filters and their width come from a survey of a fixed
size, so that publishing more or less of a recording changes no subscription; the rate that the events really
published reach is measured and is part of the description.
"""

import json
import lzma
import random
import re
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from murmur_pubsub.errors import InputError
from murmur_pubsub.values import SENDABLE, Value, is_sendable, is_text
from workloads.client_placement import Where, place_clients
from workloads.limits import (
    FILTERS_MAX,
    PUBLISHERS_MAX,
    at_least_one,
    at_most,
    clients_in_all,
    positive_rate,
    share_of_filters,
    zipf_exponent,
)
from workloads.overlay import Overlay
from workloads.plan import ClientPlan, EventAttributes, TimedPublication, Workload
from workloads.popularity import Arrival, publishing_times

_PAIR = re.compile(r"\[([A-Za-z_][A-Za-z0-9_.]*),('(?:[^']|'')*'|[^\],]+)\](?:,|$)")
_INTEGER = re.compile(r"[+-]?[0-9]{1,20}")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_SURVEYED = 20_000

Take = Literal["latest", "first", "sample"]
Line = tuple[str, int, str]
"""(file, number from 1, text)."""


@dataclass(frozen=True, slots=True)
class RecordedOptions:
    """Recorded events, and filters over them."""

    path: str
    """An archive, folder or file."""
    publications: int = 5_000
    """How many events are taken, equally many of each file as far as it goes."""
    take: Take = "sample"
    """The latest events, the first, or a sample drawn by the seed; each in order of time."""
    rate_per_s: float | None = 500.0
    """Publications a second, all publishers together (none: as fast as the system takes them)."""
    arrival: Arrival = "uniform"
    """How publications follow each other."""
    publishers: int = 4
    """How many publishers there are."""
    publisher_by: str = "symbol"
    """The attribute by whose value an event belongs to a publisher."""
    clients: int = 8
    """Client nodes."""
    clients_at: Where = "all"
    """The brokers at which clients attach: all, or the leaves of the tree."""
    client_brokers: tuple[str, ...] = ()
    """Brokers at which clients attach, in turn, in place of `clients_at`."""
    subscriptions: int = 500
    """How many filters there are."""
    category: str = "symbol"
    """The attribute that filters compare for equality, Zipf-distributed over its values."""
    ranges: tuple[str, ...] = ("close", "volume")
    """The numeric attributes for which filters have intervals."""
    exponent: float = 0.8
    """Of the Zipf distribution."""
    matching_rate: float = 0.005
    """Share of all filters that an event should match. A sample keeps to it; the latest or first events differ as far
    as the data drifts."""

    def __post_init__(self) -> None:
        at_least_one(self, "publications", "publishers", "clients", "subscriptions")
        clients_in_all(clients=self.clients)
        at_most(PUBLISHERS_MAX, "publishers", publishers=self.publishers)
        at_most(FILTERS_MAX, "filters", subscriptions=self.subscriptions)
        share_of_filters(self.matching_rate)
        positive_rate(self.rate_per_s)
        zipf_exponent(self.exponent)


def read_recorded(path: Path) -> Iterator[list[EventAttributes]]:
    """The events of each file, oldest first; raises `InputError` with file and line of what is wrong."""
    for lines in _lines_by_file(path):
        yield [_event_of(line) for line in lines]


def parse_event(line: str, place: str) -> EventAttributes:
    """One event from a PADRES publication or a JSON object; raises `InputError` naming `place`."""
    line = line.strip()
    if line.startswith("{"):
        try:
            event = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(place, f"{line[:60]!r} ({error})", "a JSON object of attributes") from None
        for name, value in event.items():
            if not is_sendable(value) or not is_text(name):
                raise InputError(place, f"the attribute {name!a:.60} = {value!a:.40}", SENDABLE)
        return dict(event)
    pairs = _PAIR.findall(line)
    if len(line) != sum(len(name) + len(text) + 4 for name, text in pairs) - 1:
        raise InputError(place, repr(line[:60]), "[name,value],[name,'text'],…")
    parsed = {name: _value(text, place) for name, text in pairs}
    if len(parsed) != len(pairs):
        raise InputError(place, "an attribute named twice", "each attribute once")
    return parsed


def _value(text: str, place: str) -> Value:
    if text.startswith("'"):
        return text[1:-1].replace("''", "'")
    value: Value | None = None
    if _INTEGER.fullmatch(text):
        value = int(text)
    elif _NUMBER.fullmatch(text):
        value = float(text)
    if value is None or not is_sendable(value):
        raise InputError(place, repr(text[:60]), "a finite number of at most 64 bits, or a 'string'")
    return value


def _event_of(line: Line) -> EventAttributes:
    file, number, text = line
    return parse_event(text, f"{file}, line {number}")


def _lines_by_file(path: Path) -> Iterator[list[Line]]:
    """The lines of each file that are not blank, oldest first."""
    found = False
    for file, data in _files(path):
        found = True
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(file, str(error), "recorded publications as UTF-8 text") from None
        lines = [(file, number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
        if lines and not lines[0][2].lstrip().startswith("{"):
            lines.reverse()  # PADRES files are newest first
        yield lines
    if not found:
        raise InputError(f"workload.path {path}", "no files", "publications, one a line")


def _files(path: Path) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of each file by name, without hidden ones (what systems leave behind in folders)."""
    try:
        if path.is_dir():
            for each in sorted(each for each in path.iterdir() if each.is_file() and not each.name.startswith(".")):
                yield str(each), each.read_bytes()
        elif ".tar" in path.suffixes or path.suffix == ".tgz":
            yield from sorted(_members(path))
        else:
            yield str(path), path.read_bytes()
    except (OSError, EOFError, tarfile.TarError, lzma.LZMAError, zlib.error) as error:
        raise InputError(f"workload.path {path}", str(error), "recorded publications (see docs/reference.md)") from None


def _members(path: Path) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(path) as archive:
        for member in archive:  # in the archive's own order: going back would decompress it anew
            opened = archive.extractfile(member) if member.isfile() else None
            if opened is not None and not Path(member.name).name.startswith("."):
                yield f"{path}:{member.name}", opened.read()
        # To the end of the file, where its checksum stands: the archive in it ends before that.
        while archive.fileobj is not None and archive.fileobj.read(1 << 20):
            pass


def build_recorded(overlay: Overlay, options: RecordedOptions, seed: int) -> Workload:
    """The workload over the overlay."""
    from workloads.quantile_filters import QuantileFilters  # with numpy, which other workloads do without

    files = list(_lines_by_file(Path(options.path)))
    available = sum(map(len, files))
    if options.publications > available:
        allowed = f"at most {available}, which {options.path} holds"
        raise InputError("workload.publications", str(options.publications), allowed)
    events = [_event_of(line) for line in _taken(files, options.publications, options.take, f"{seed}/sample")]
    survey = _taken(files, min(_SURVEYED, available), options.take, f"{seed}/survey")
    filters = QuantileFilters(
        [_event_of(line) for line in survey],
        options.category, options.ranges, options.exponent, options.subscriptions, seed,
    )  # fmt: skip
    width = filters.tuned_width(options.matching_rate)
    reached = filters.measured(events, width)
    texts = filters.texts(width)
    description: dict[str, float | int | str] = {
        "kind": "recorded",
        "seed": seed,
        "subscriptions": len(texts),
        "distinct filters": len(dict.fromkeys(texts)),
        "publications": len(events),
        "publishers": options.publishers,
        "wanted matching rate": options.matching_rate,
        "reached matching rate": round(reached.rate, 6),
        "events the rate was measured on": reached.events,
    }
    return Workload(overlay, _clients(overlay, options, events, texts, seed), description, len(events))


def _clients(
    overlay: Overlay, options: RecordedOptions, events: list[EventAttributes], texts: list[str], seed: int
) -> tuple[ClientPlan, ...]:
    homes = place_clients(overlay, options.clients, options.clients_at, options.client_brokers)
    times = publishing_times(len(events), options.rate_per_s, options.arrival, random.Random(f"{seed}/times"))
    plans: list[list[TimedPublication]] = [[] for _ in homes]
    for time_us, publisher, event in zip(times, _publishers(events, options), events, strict=True):
        plans[publisher % options.clients].append((time_us, publisher, event))
    return tuple(
        ClientPlan(
            f"c{number}",
            home,
            tuple((at, texts[at]) for at in range(number, len(texts), options.clients)),
            tuple(range(number, options.publishers, options.clients)),
            tuple(plans[number]),
        )
        for number, home in enumerate(homes)
    )


def _taken(files: list[list[Line]], count: int, take: Take, seed: str) -> list[Line]:
    """`count` lines, as equally many of each file as there are, in rounds over the files."""
    rng = random.Random(seed)
    files = sorted(files, key=len)
    taken: list[list[Line]] = []
    left = count
    for number, lines in enumerate(files):
        fair = min(-(-left // (len(files) - number)), len(lines))
        left -= fair
        if take == "sample":
            taken.append([lines[at] for at in sorted(rng.sample(range(len(lines)), fair))])
        else:
            taken.append(lines[:fair] if take == "first" else lines[len(lines) - fair :])
    rounds = max(map(len, taken))
    return [lines[at] for at in range(rounds) for lines in taken if at < len(lines)]


def _publishers(events: list[EventAttributes], options: RecordedOptions) -> list[int]:
    """The publisher of each event; events without the attribute share one."""
    if not any(options.publisher_by in event for event in events):
        raise InputError("workload.publisher_by", repr(options.publisher_by), f"an attribute: {', '.join(events[0])}")
    known: dict[Value | None, int] = {}
    return [known.setdefault(event.get(options.publisher_by), len(known)) % options.publishers for event in events]
