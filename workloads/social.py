"""The social workload: everyone subscribes to the posts of their friends.

A friendship graph (a SNAP edge list, or a generated one) gives the filters: user u subscribes to
`author = v` for each friend v, and v to u. Posts follow a Zipf activity over the users, whose ranks are dealt out
by the seed. One client node stands for all users at its broker.
"""

import random
import re
from array import array
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import networkx as nx

from murmur_pubsub.errors import InputError
from workloads.client_placement import equal_parts
from workloads.limits import (
    CLIENTS_MAX,
    FILTERS_MAX,
    USERS_MAX,
    at_least_one,
    at_most,
    clients_in_all,
    positive_rate,
    zipf_exponent,
)
from workloads.overlay import Overlay
from workloads.plan import ClientPlan, TimedPublication, Workload
from workloads.popularity import Arrival, Zipf, publishing_times

_USER = re.compile(r"[0-9]{1,18}")
_TOPICS = ("family", "music", "news", "sport", "travel", "work")

_POSTS_MAX = 100_000_000
"""As 32 bytes each."""


@dataclass(frozen=True, slots=True)
class SocialOptions:
    """Posts on the walls of a social graph, read by friends."""

    path: str | None = None
    """A file with a friendship `u v` a line (none: a power-law graph is generated)."""
    users: int = 500
    """Users of a generated graph."""
    mean_degree: int = 10
    """Friends of a user in a generated graph, on average."""
    posts: int = 2_000
    """How many posts there are."""
    rate_per_s: float | None = 500.0
    """Publications a second, all publishers together (none: as fast as the system takes them)."""
    arrival: Arrival = "poisson"
    """How publications follow each other."""
    exponent: float = 0.8
    """Of the Zipf distribution of topics."""
    users_at: Literal["random", "neighbours"] = "random"
    """Users of one broker are drawn at random, or are neighbours in the graph."""
    clients_per_broker: int = 1
    """Client nodes at each broker."""

    def __post_init__(self) -> None:
        at_least_one(self, "users", "mean_degree", "posts", "clients_per_broker")
        positive_rate(self.rate_per_s)
        zipf_exponent(self.exponent)
        at_most(_POSTS_MAX, "posts", posts=self.posts)
        clients_in_all(clients_per_broker=self.clients_per_broker)
        if self.path is None:
            at_most(USERS_MAX, "users", users=self.users)
            at_most(FILTERS_MAX, "filters", users=self.users, mean_degree=self.mean_degree)
        if self.path is None and self.users <= self.mean_degree // 2 + 1:
            raise InputError(
                "workload.users", str(self.users), f"more than {self.mean_degree // 2 + 1} for that degree"
            )


def _numbers() -> "array[int]":
    return array("q")


@dataclass(frozen=True, slots=True)
class Posts:
    """The posts of one client's users, 32 bytes each; attributes are made as they are walked."""

    times_us: "array[int]" = field(default_factory=_numbers)
    authors: "array[int]" = field(default_factory=_numbers)
    topics: "array[int]" = field(default_factory=_numbers)
    lengths: "array[int]" = field(default_factory=_numbers)

    def add(self, time_us: int, author: int, topic: int, length: int) -> None:
        """One more post, not before the last."""
        self.times_us.append(time_us)
        self.authors.append(author)
        self.topics.append(topic)
        self.lengths.append(length)

    def __iter__(self) -> Iterator[TimedPublication]:
        for time_us, author, topic, length in zip(self.times_us, self.authors, self.topics, self.lengths, strict=True):
            yield time_us, author, {"author": author, "topic": _TOPICS[topic], "length": length}


def read_friendships(path: Path) -> dict[int, list[int]]:
    """Each user's friends, from an undirected edge list; raises `InputError` with the line of what is wrong."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"workload.path {path}", str(error), "a readable edge list of numbers") from None
    friends: dict[int, dict[int, None]] = {}
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if len(words) != 2 or not all(_USER.fullmatch(word) for word in words):
            raise InputError(f"{path}, line {number}", repr(line[:60]), "two user numbers (at most 18 digits)")
        first, second = int(words[0]), int(words[1])
        if first == second:
            raise InputError(f"{path}, line {number}", f"a friendship of {first} with themselves", "two users")
        friends.setdefault(first, {})[second] = None
        friends.setdefault(second, {})[first] = None
    if not friends:
        raise InputError(str(path), "no friendships", "at least one")
    return {user: list(friends[user]) for user in sorted(friends)}


def build_social(overlay: Overlay, options: SocialOptions, seed: int) -> Workload:
    """The workload over the overlay."""
    if options.path is not None:
        friends = read_friendships(Path(options.path))
    else:
        graph = nx.powerlaw_cluster_graph(options.users, max(1, options.mean_degree // 2), 0.3, seed=seed)
        friends = {user: sorted(graph.neighbors(user)) for user in sorted(graph)}
    brokers = len(overlay.client_brokers)
    if brokers * options.clients_per_broker > CLIENTS_MAX:
        found = f"{options.clients_per_broker} at each of {brokers:,} brokers"
        raise InputError("workload.clients_per_broker", found, f"at most {CLIENTS_MAX:,} clients")
    users = list(friends)
    homes = _homes(friends, options, len(overlay.client_brokers) * options.clients_per_broker, seed)
    posts = [Posts() for _ in range(len(overlay.client_brokers) * options.clients_per_broker)]
    deliveries = 0
    for time_us, author, topic, length in _drawn_posts(users, options, seed):
        posts[homes[author]].add(time_us, author, topic, length)
        deliveries += len(friends[author])
    members: list[list[int]] = [[] for _ in posts]
    subscriptions: list[list[tuple[int, str]]] = [[] for _ in posts]
    for user, listed in friends.items():
        members[homes[user]].append(user)
        subscriptions[homes[user]] += [(user, f"author = {friend}") for friend in listed]
    clients = tuple(
        ClientPlan(
            f"c{number}",
            overlay.client_brokers[number // options.clients_per_broker],
            tuple(subscriptions[number]),
            tuple(members[number]),
            posts[number],
        )
        for number in range(len(posts))
    )
    total = sum(map(len, subscriptions))
    description: dict[str, float | int | str] = {
        "kind": "social",
        "seed": seed,
        "users": len(users),
        "mean degree": round(total / len(users), 2),
        "subscriptions": total,
        "distinct filters": len(users),
        "publications": options.posts,
        "deliveries expected": deliveries,
        "reached matching rate": round(deliveries / options.posts / total, 6),
    }
    return Workload(overlay, clients, description, options.posts)


def _drawn_posts(users: list[int], options: SocialOptions, seed: int) -> Iterator[tuple[int, int, int, int]]:
    """(time_us, author, topic number, length) of each post, in order of time."""
    rng = random.Random(f"{seed}/posts")
    ranked = users.copy()
    rng.shuffle(ranked)
    zipf = Zipf(len(ranked), options.exponent)
    for time_us in publishing_times(options.posts, options.rate_per_s, options.arrival, rng):
        yield time_us, ranked[zipf.draw(rng)], rng.choice(range(len(_TOPICS))), rng.randrange(1, 281)


def _homes(friends: dict[int, list[int]], options: SocialOptions, clients: int, seed: int) -> dict[int, int]:
    """The client number of each user: equally many each, by chance or along a walk through the graph."""
    order = list(friends)
    random.Random(f"{seed}/homes").shuffle(order)
    if options.users_at == "neighbours":
        order = _breadth_first(friends, order)
    homes, begin = {}, 0
    for client, count in enumerate(equal_parts(len(order), clients)):
        for user in order[begin : begin + count]:
            homes[user] = client
        begin += count
    return homes


def _breadth_first(friends: dict[int, list[int]], order: list[int]) -> list[int]:
    seen: dict[int, None] = {}
    for start in order:
        if start in seen:
            continue
        seen[start] = None
        waiting = deque([start])
        while waiting:
            for friend in friends[waiting.popleft()]:
                if friend not in seen:
                    seen[friend] = None
                    waiting.append(friend)
    return list(seen)
