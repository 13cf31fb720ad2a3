"""The bare Cyclon-like loop that the virtual-time runtime is compared with: a heap, lists, nothing else.

No node objects, messages, codec, links or journal: the least that a Python event loop with this load can cost.
"""

import heapq
import random

from benchmarks.cyclon import SHUFFLE, VIEW


def run_bare_loop(nodes: int, cycles: int) -> int:
    """Run so many cycles of so many nodes; how many events were handled."""
    rng = random.Random(1)
    views = [[rng.randrange(nodes) for _ in range(VIEW)] for _ in range(nodes)]
    queue: list[tuple[float, int, int, int, list[int] | None]] = [
        (rng.random(), node, node, -1, None) for node in range(nodes)
    ]
    heapq.heapify(queue)
    number = nodes
    events = 0
    while queue:
        now, _, node, source, peers = heapq.heappop(queue)
        if now > cycles:
            break
        events += 1
        view = views[node]
        if source == -1:
            peer = view[rng.randrange(VIEW)]
            number += 1
            heapq.heappush(queue, (now + 0.02 + 0.05 * rng.random(), number, peer, node, rng.sample(view, SHUFFLE)))
            number += 1
            heapq.heappush(queue, (now + 1, number, node, -1, None))
            continue
        if source >= 0:
            number += 1
            heapq.heappush(queue, (now + 0.03, number, source, -2, rng.sample(view, SHUFFLE)))
        assert peers is not None
        view[:SHUFFLE] = peers
    return events
