"""The datasets of the multipath paper (Publiy, section 7): DT1 to DT5, DT-C and DT-FB, to their published counts.

DT1 to DT5 follow the generator of the paper's own code, whose settings are not printed: each of `publishing` brokers
has `contents` distinct publications; for the one of rank i, floor(share(i) * multiplier * subscribing) brokers are
drawn, with repetition, out of `subscribing` ones, where share(i) is i ** -skew over the sum for all ranks but the
last. Each broker drawn holds one subscription, `src = … AND rank = …`. The settings below are those that come out at
the published counts and matching shares (docs/protocols/multipath.md has the comparison).

DT-C has families of subscriptions that cover each other. DT-FB is a
friendship graph: each user subscribes to the posts of their friends, and how much each user posts follows recorded wall
posts.
"""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import networkx as nx

from murmur_pubsub.errors import InputError
from murmur_pubsub.values import Value
from workloads.overlay import Overlay
from workloads.social import read_friendships

Attributes = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class ZipfDataset:
    """Settings of the paper's generator. publishing, subscribing: how many brokers do (None: all); `leaves`:
    subscribing ones are edge brokers."""

    publishing: int | None
    contents: int
    subscribing: int | None
    multiplier: float
    skew: float = 1.0
    leaves: bool = False


@dataclass(frozen=True, slots=True)
class Dataset:
    """What was generated. subscriptions: (broker, filter text). contents: for each possible publication, the broker
    it is published at, its attributes, and how often it is published against the others (its weight)."""

    name: str
    subscriptions: tuple[tuple[str, str], ...]
    contents: tuple[tuple[str, Attributes, float], ...]
    description: Mapping[str, float | int | str]

    def draw(self, count: int, seed: int) -> list[int]:
        """The contents of this number of publications: their numbers, by weight."""
        rng = random.Random(f"{seed}/{self.name}/publications")
        return rng.choices(range(len(self.contents)), [weight for _, _, weight in self.contents], k=count)


ZIPF_DATASETS: Mapping[str, ZipfDataset] = {
    "DT1": ZipfDataset(60, 11, None, 1.0),
    "DT2": ZipfDataset(60, 10, 60, 10.0),
    "DT3": ZipfDataset(None, 10, 126, 1.0, leaves=True),
    "DT4": ZipfDataset(None, 24, 20, 3.0),
    "DT5": ZipfDataset(None, 25, None, 32.0),
}
PUBLISHED: Mapping[str, tuple[int, float]] = {
    "DT1": (6_552, 0.08), "DT2": (19_472, 0.53), "DT3": (28_690, 0.09), "DT4": (900, 0.09), "DT5": (6_000, 0.54),
    "DT-C": (10_000, 0.04), "DT-FB": (120_000, 0.065),
}  # fmt: skip
"""Subscriptions, and matching share for each publication, as the paper prints them (Figure 8a)."""


def zipf_dataset(name: str, overlay: Overlay, seed: int) -> Dataset:
    """DT1 to DT5 over an overlay of the size that the dataset is for."""
    settings = ZIPF_DATASETS[name]
    rng = random.Random(f"{seed}/{name}")
    publishing = _some(overlay.brokers, settings.publishing, rng)
    subscribing = _some(overlay.leaves if settings.leaves else overlay.brokers, settings.subscribing, rng)
    weights = [rank**-settings.skew for rank in range(1, settings.contents + 1)]
    norm = sum(weights[:-1]) or 1.0
    subscriptions: list[tuple[str, str]] = []
    contents: list[tuple[str, Attributes, float]] = []
    holders: list[int] = []
    for source, broker in enumerate(publishing):
        for rank, weight in enumerate(weights):
            draws = int(weight / norm * settings.multiplier * len(subscribing))
            drawn = dict.fromkeys(rng.choice(subscribing) for _ in range(draws))
            subscriptions += [(each, f"src = {source} AND rank = {rank}") for each in drawn]
            contents.append((broker, {"src": source, "rank": rank}, 1.0))
            holders.append(len(drawn))
    description = _description(name, overlay, seed, subscriptions, contents, holders, len(subscribing))
    description |= {"publishing brokers": len(publishing), "subscribing brokers": len(subscribing)}
    return Dataset(name, tuple(subscriptions), tuple(contents), description)


def covering_dataset(
    overlay: Overlay, seed: int, subscriptions: int = 10_000, share: float = 0.04, ranges: Sequence[int] = (2, 3, 4, 5)
) -> Dataset:
    """DT-C: families of filters, each within the one before by a narrower box, while no family's first covers
    another's. `ranges`: how many sides the box of each of a family has, none fewer than the one before, at most five.
    Boxes are tuned so that a publication matches the wanted share of all filters."""
    rng = random.Random(f"{seed}/DT-C")
    families = [_Family(rng, ranges) for _ in range(-(-subscriptions // len(ranges)))]
    events = [(rng.randrange(_TOPICS), [rng.random() for _ in range(_SIDES)]) for _ in range(2_000)]
    low, high = 0.05, 0.95
    for _ in range(12):
        width = (low + high) / 2
        low, high = (width, high) if _reached(families[:250], width, events[:300]) < share else (low, width)
    texts = [text for family in families for text in family.texts(high)][:subscriptions]
    held = tuple((rng.choice(overlay.brokers), text) for text in texts)
    contents = tuple(
        (rng.choice(overlay.brokers), {"topic": topic} | {f"x{at}": value for at, value in enumerate(values)}, 1.0)
        for topic, values in events
    )
    description: dict[str, float | int | str] = {
        "dataset": "DT-C", "seed": seed, "brokers": len(overlay.brokers), "subscriptions": len(held),
        "distinct filters": len(dict.fromkeys(texts)),
        "matching share": round(_reached(families[:250], high, events[300:]), 4),
        "filters that another covers": f"{100 * (len(ranges) - 1) // len(ranges)} %",
    }  # fmt: skip
    return Dataset("DT-C", held, contents, description)


_TOPICS = 12
_SIDES = 5


class _Family:
    """Filters that cover each other: each asks for the topic and so many ranges, all a little narrower than those of
    the one before."""

    def __init__(self, rng: random.Random, ranges: Sequence[int]) -> None:
        self.topic = rng.randrange(_TOPICS)
        self._ranges = ranges
        self._places = [rng.random() for _ in range(_SIDES)]

    def boxes(self, width: float) -> list[list[tuple[float, float]]]:
        """The ranges of each filter, the first one's sides `width` long."""
        found = []
        for member, sides in enumerate(self._ranges):
            side = width * (1.0 - 0.04 * member)
            box = []
            for attribute, place in enumerate(self._places[:sides]):
                wide = side if attribute < 2 else 0.5 + side / 2
                centre = wide / 2 + place * (1.0 - wide) if attribute >= 2 else width / 2 + place * (1.0 - width)
                box.append((round(centre - wide / 2, 4), round(centre + wide / 2, 4)))
            found.append(box)
        return found

    def texts(self, width: float) -> list[str]:
        """The filters."""
        return [
            " AND ".join(
                [f"topic = {self.topic}", *(f"x{at} BETWEEN {low} AND {high}" for at, (low, high) in enumerate(box))]
            )
            for box in self.boxes(width)
        ]


def _reached(families: Sequence[_Family], width: float, events: Sequence[tuple[int, list[float]]]) -> float:
    """The share of the families' filters that an event matches."""
    boxes = [(family.topic, box) for family in families for box in family.boxes(width)]
    hits = sum(
        topic == at and all(low <= value <= high for (low, high), value in zip(box, values, strict=False))
        for at, values in events
        for topic, box in boxes
    )
    return hits / len(events) / len(boxes)


def social_dataset(
    overlay: Overlay,
    seed: int,
    graph: Path | None = None,
    wall: Path | None = None,
    subscriptions: int = 120_000,
) -> Dataset:
    """DT-FB: friendships out of an edge list (None: a generated small world of 4,039 users with as many), users
    spread over brokers along a walk through the graph, so that friends are often at one broker; activity after the
    posts of a wall trace (None: Zipf)."""
    rng = random.Random(f"{seed}/DT-FB")
    friends = read_friendships(graph) if graph is not None else _generated_friends(seed)
    pairs = [(user, friend) for user, listed in friends.items() for friend in listed]
    kept = sorted(rng.sample(pairs, min(subscriptions, len(pairs))))
    homes = _homes(friends, overlay, rng)
    users = list(friends)
    posts = _posts(wall, len(users))
    rng.shuffle(users)
    activity = dict(zip(users, posts, strict=False))
    texts = [(homes[user], f"author = {friend}") for user, friend in kept]
    contents = [(homes[user], {"author": user}, float(count)) for user, count in activity.items() if count]
    followers = Counter(friend for _, friend in kept)
    brokers_of: dict[int, dict[str, None]] = {}
    for user, friend in kept:
        brokers_of.setdefault(friend, {})[homes[user]] = None
    total = sum(weight for _, _, weight in contents)
    matching = sum(weight * followers[int(each["author"])] for _, each, weight in contents) / total
    reach = sum(weight * len(brokers_of.get(int(each["author"]), ())) for _, each, weight in contents) / total
    description: dict[str, float | int | str] = {
        "dataset": "DT-FB", "seed": seed, "brokers": len(overlay.brokers), "subscriptions": len(texts),
        "users": len(users), "graph": "recorded" if graph else "generated", "wall": "recorded" if wall else "Zipf",
        "distinct filters": len(brokers_of), "authors": len(contents),
        "matching subscriptions a publication": round(matching, 2),
        "matching brokers a publication": round(reach, 2),
        "matching share": round(reach / len(overlay.brokers), 4),
    }  # fmt: skip
    return Dataset("DT-FB", tuple(texts), tuple(contents), description)


def read_wall_posts(path: Path) -> list[int]:
    """How many posts each author of a wall trace wrote, most first; lines "source TAB destination TAB time" after a
    heading. Raises `InputError` with the line of what is wrong."""
    counts: Counter[str] = Counter()
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"wall posts {path}", str(error), "a readable trace") from None
    for number, line in enumerate(lines[1:], 2):
        fields = line.split("\t")
        if len(fields) != 3:
            raise InputError(f"{path}, line {number}", repr(line[:60]), "source, destination and time, tab between")
        counts[fields[0]] += 1
    if not counts:
        raise InputError(str(path), "no posts", "at least one")
    return sorted(counts.values(), reverse=True)


def _posts(wall: Path | None, users: int) -> list[int]:
    if wall is not None:
        return read_wall_posts(wall)
    return [int(1_000 / (rank + 1)) or 1 for rank in range(users)]


def _generated_friends(seed: int) -> dict[int, list[int]]:
    graph = nx.connected_watts_strogatz_graph(4_039, 44, 0.12, seed=seed)
    return {user: sorted(graph.neighbors(user)) for user in sorted(graph)}


def _homes(friends: Mapping[int, Sequence[int]], overlay: Overlay, rng: random.Random) -> dict[int, str]:
    order: dict[int, None] = {}
    starts = list(friends)
    rng.shuffle(starts)
    for start in starts:
        waiting = [start]
        while waiting:
            user = waiting.pop()
            if user not in order:
                order[user] = None
                waiting += [friend for friend in friends[user] if friend not in order]
    brokers = len(overlay.brokers)
    return {user: overlay.brokers[number * brokers // len(order)] for number, user in enumerate(order)}


def _some(brokers: Sequence[str], count: int | None, rng: random.Random) -> list[str]:
    if count is None or count >= len(brokers):
        return list(brokers)
    return rng.sample(list(brokers), count)


def _description(
    name: str,
    overlay: Overlay,
    seed: int,
    subscriptions: Sequence[tuple[str, str]],
    contents: Sequence[tuple[str, Attributes, float]],
    holders: Sequence[int],
    subscribing: int,
) -> dict[str, float | int | str]:
    return {
        "dataset": name, "seed": seed, "brokers": len(overlay.brokers), "subscriptions": len(subscriptions),
        "distinct publications": len(contents), "matching brokers a publication": round(sum(holders) / len(holders), 2),
        "matching share": round(sum(holders) / len(holders) / subscribing, 4),
    }  # fmt: skip
