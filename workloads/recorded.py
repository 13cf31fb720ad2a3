"""Recorded publications: real events from files, with filters generated over what the files hold.

Two formats: PADRES publications (`[class,'STOCK'],[symbol,'YHOO'],[close,37.90],…`, a line each), in a folder or in a
`.tar` archive of any compression; and JSON lines, an object of attributes each. All events of one
value of `publisher_by` (the symbol, for quotes) come from one publisher, so that order means something.
"""

import json
import random
import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pubsub.errors import InputError
from pubsub.values import Value, domain_of
from workloads.overlay import Overlay
from workloads.placement import Where, place_clients
from workloads.plan import ClientPlan, TimedPublication, Workload
from workloads.popularity import Arrival, Zipf, publishing_times

_PAIR = re.compile(r"\[([A-Za-z_][A-Za-z0-9_.]*),('(?:[^']|'')*'|[^\],]+)\](?:,|$)")
_WIDTHS = 20
_SAMPLE = 1_000

Event = dict[str, Value]


@dataclass(frozen=True, slots=True)
class RecordedOptions:
    """path: archive, folder or file. publications: how many events to take (a sample spread over all files).
    filters over `category` (equality, Zipf over its values) and intervals over the attributes `ranges`."""

    path: str
    publications: int = 5_000
    rate_per_s: float | None = 500.0
    arrival: Arrival = "uniform"
    publishers: int = 4
    publisher_by: str = "symbol"
    clients: int = 8
    clients_at: Where = "all"
    subscriptions: int = 500
    category: str = "symbol"
    ranges: tuple[str, ...] = ("close", "volume")
    exponent: float = 0.8
    matching_rate: float = 0.005

    def __post_init__(self) -> None:
        for name in ("publications", "publishers", "clients", "subscriptions"):
            if getattr(self, name) < 1:
                raise InputError(f"workload.{name}", str(getattr(self, name)), "at least 1")
        if self.publishers > self.clients:
            raise InputError("workload.publishers", str(self.publishers), f"at most {self.clients}, the clients")
        if not 0 < self.matching_rate <= 1:
            raise InputError("workload.matching_rate", str(self.matching_rate), "above 0, at most 1")


def read_recorded(path: Path) -> Iterator[list[Event]]:
    """The events of each file, oldest first; raises `InputError` with file and line of what is wrong."""
    found = False
    for name, text in _files(path):
        found = True
        lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
        if lines and not lines[0][1].lstrip().startswith("{"):
            lines.reverse()  # PADRES files are newest first
        yield [parse_event(line, f"{name}, line {number}") for number, line in lines]
    if not found:
        raise InputError(str(path), "no files", "publications, one a line")


def parse_event(line: str, place: str) -> Event:
    """One event from a PADRES publication or a JSON object."""
    line = line.strip()
    if line.startswith("{"):
        try:
            event = json.loads(line)
        except ValueError as error:
            raise InputError(place, f"{line[:60]!r} ({error})", "a JSON object of attributes") from None
        for name, value in event.items():
            if domain_of(value) is None:
                raise InputError(place, f"the attribute {name} = {value!r:.40}", "a number, string or boolean")
        return dict(event)
    pairs = _PAIR.findall(line)
    if len(line) != sum(len(name) + len(text) + 4 for name, text in pairs) - 1:
        raise InputError(place, repr(line[:60]), "[name,value],[name,'text'],…")
    return {name: _value(text, place) for name, text in pairs}


def _value(text: str, place: str) -> Value:
    if text.startswith("'"):
        return text[1:-1].replace("''", "'")
    try:
        return int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)
    except ValueError:
        raise InputError(place, repr(text), "a number or a 'string'") from None


def _files(path: Path) -> Iterator[tuple[str, str]]:
    try:
        if path.is_dir():
            for each in sorted(each for each in path.iterdir() if each.is_file()):
                yield str(each), each.read_text()
        elif ".tar" in path.suffixes or path.suffix == ".tgz":
            with tarfile.open(path) as archive:
                for member in sorted(archive.getmembers(), key=lambda each: each.name):
                    opened = archive.extractfile(member)
                    if opened is not None:
                        yield f"{path}:{member.name}", opened.read().decode()
        else:
            yield str(path), path.read_text()
    except (OSError, UnicodeDecodeError, tarfile.TarError) as error:
        raise InputError(f"workload.path {path}", str(error), "recorded publications (see docs/reference.md)") from None


def build_recorded(overlay: Overlay, options: RecordedOptions, seed: int) -> Workload:
    """The workload over the overlay."""
    events = _take(list(read_recorded(Path(options.path))), options.publications, options.path)
    publishers = _publishers(events, options)
    times = publishing_times(len(events), options.rate_per_s, options.arrival, random.Random(f"{seed}/times"))
    plans: list[list[TimedPublication]] = [[] for _ in range(options.publishers)]
    for time_us, publisher, event in zip(times, publishers, events, strict=True):
        plans[publisher].append((time_us, publisher, event))
    texts, reached = _filters(events, options, seed)
    homes = place_clients(overlay, options.clients, options.clients_at)
    clients = tuple(
        ClientPlan(
            f"c{number}",
            home,
            tuple((at, texts[at]) for at in range(number, len(texts), options.clients)),
            tuple(plans[number]) if number < options.publishers else (),
        )
        for number, home in enumerate(homes)
    )
    description: dict[str, float | int | str] = {
        "kind": "recorded",
        "subscriptions": len(texts),
        "distinct filters": len(dict.fromkeys(texts)),
        "publications": len(events),
        "wanted matching rate": options.matching_rate,
        "reached matching rate": round(reached, 6),
    }
    return Workload(overlay, clients, description, len(events))


def _take(files: list[list[Event]], count: int, path: str) -> list[Event]:
    """The latest `count` events, as equally many of each file as there are, in rounds over the files."""
    available = sum(map(len, files))
    if count > available:
        raise InputError("workload.publications", str(count), f"at most {available}, which {path} holds")
    files = sorted(files, key=len)
    taken: list[list[Event]] = []
    for number, events in enumerate(files):
        fair = -(-(count - sum(map(len, taken))) // (len(files) - number))
        taken.append(events[-min(fair, len(events)) :] if fair else [])
    rounds = max(map(len, taken))
    return [events[at] for at in range(rounds) for events in taken if at < len(events)]


def _publishers(events: list[Event], options: RecordedOptions) -> list[int]:
    known: dict[Value, int] = {}
    return [known.setdefault(event.get(options.publisher_by, ""), len(known)) % options.publishers for event in events]


def _filters(events: list[Event], options: RecordedOptions, seed: int) -> tuple[list[str], float]:
    """Filters whose intervals have the widths, in quantiles of the data, that come nearest to the wanted rate."""
    categories: dict[Value, list[Event]] = {}
    for event in events:
        for name in (options.category, *options.ranges):
            if name not in event:
                raise InputError(
                    "workload.category, workload.ranges", f"{name!r}", f"attributes of the events: {', '.join(event)}"
                )
        categories.setdefault(event[options.category], []).append(event)
    rng = random.Random(f"{seed}/filters")
    names = list(categories)
    rng.shuffle(names)
    zipf = Zipf(len(names), options.exponent)
    drawn = [(names[zipf.draw(rng)], [rng.random() for _ in options.ranges]) for _ in range(options.subscriptions)]
    sorted_values = {
        (category, name): np.sort(np.array([event[name] for event in listed], dtype=float))
        for category, listed in categories.items()
        for name in options.ranges
    }
    best: tuple[float, list[str], float] | None = None
    for step in range(1, _WIDTHS + 1):
        bounds = [_bounds(sorted_values, options, category, at, step / _WIDTHS) for category, at in drawn]
        reached = _rate(events[:: max(1, len(events) // _SAMPLE)], options, drawn, bounds)
        distance = abs(reached - options.matching_rate)
        if best is None or distance < best[0]:
            texts = [_text(options, category, each) for (category, _), each in zip(drawn, bounds, strict=True)]
            best = (distance, texts, reached)
    assert best is not None
    return best[1], best[2]


def _bounds(
    values: dict[tuple[Value, str], np.ndarray],
    options: RecordedOptions,
    category: Value,
    at: list[float],
    width: float,
) -> list[tuple[float, float]]:
    """An interval of each range attribute that holds the share `width` of the category's values."""
    bounds = []
    for name, position in zip(options.ranges, at, strict=True):
        ordered = values[category, name]
        low = position * (1 - width)
        last = len(ordered) - 1
        bounds.append((float(ordered[int(low * last)]), float(ordered[int((low + width) * last)])))
    return bounds


def _rate(
    sample: list[Event],
    options: RecordedOptions,
    drawn: list[tuple[Value, list[float]]],
    bounds: list[list[tuple[float, float]]],
) -> float:
    by_category: dict[Value, list[list[tuple[float, float]]]] = {}
    for (category, _), each in zip(drawn, bounds, strict=True):
        by_category.setdefault(category, []).append(each)
    tables = {category: np.array(each) for category, each in by_category.items()}
    matched = 0
    for event in sample:
        table = tables.get(event[options.category])
        if table is not None:
            values = np.array([event[name] for name in options.ranges], dtype=float)
            matched += int(((table[:, :, 0] <= values) & (values <= table[:, :, 1])).all(axis=1).sum())
    return matched / len(sample) / len(drawn)


def _text(options: RecordedOptions, category: Value, bounds: list[tuple[float, float]]) -> str:
    literal = "'" + category.replace("'", "''") + "'" if isinstance(category, str) else repr(category)
    parts = [f"{options.category} = {literal}"]
    for name, (low, high) in zip(options.ranges, bounds, strict=True):
        parts.append(f"{name} BETWEEN {low!r} AND {high!r}")
    return " AND ".join(parts)
