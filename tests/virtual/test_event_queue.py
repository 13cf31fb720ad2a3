"""The event queue against a heap: any order of pushes and pops gives the same entries in the same order."""

import heapq
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from murmur_virtual.event_queue import EventQueue

# A push so far ahead of the last popped time (0: at the same time; far: another bucket), or a pop (None).
histories = st.lists(
    st.one_of(st.none(), st.integers(0, 3), st.integers(0, 5_000), st.integers(0, 10**7)), max_size=200
)


@given(histories)
def test_the_queue_is_a_heap(history: list[int | None]) -> None:
    queue = EventQueue()
    heap: list[tuple[int, int]] = []
    now_us = pushed = 0
    for ahead_us in history:
        assert queue.peek_us() == (heap[0][0] if heap else None)
        if ahead_us is not None:
            pushed += 1
            assert queue.push(now_us + ahead_us, None, 0, "payload", None) == pushed
            heapq.heappush(heap, (now_us + ahead_us, pushed))
            continue
        entry: Any = queue.pop()
        if not heap:
            assert entry is None
            continue
        assert entry[:2] == heap[0]
        queue.unpop()
        assert queue.pop() == entry
        now_us, _ = heapq.heappop(heap)
