"""Where the filters of the matching index live, and how they move so that no call waits long.

New filters wait in a short list of newcomers. A few thousand live in levels (`murmur_pubsub.matching_level`), each at
least twice as large as the next: a level is built in bulk, so levels that are not much larger are merged into it.
Beyond that, filters go into blocks (`murmur_pubsub.matching_block`), which take them 64 at a time and are never built
anew. When a larger block is opened those before it are moved into it: what an event costs grows with the blocks to ask.

Whatever takes longer than a few milliseconds is a task in short steps, of which each call takes one: merging levels,
opening a block, moving filters out of what is mostly struck out. A filter is in one place at any time.
"""

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Generic, TypeAlias

from murmur_pubsub.matching_level import Destination, IndexEntry, Level
from murmur_pubsub.matching_places import NUMBER_BITS, Places, place_of

if TYPE_CHECKING:
    from murmur_pubsub.matching_block import Block

_NEWCOMERS_MAX = 24
"""Newcomers that a question may find: they are asked one by one."""
_BACKLOG_MAX = 32
"""Newcomers that may wait while there is no question."""
_AT_ONCE = 96
"""A level of this size is built within one call."""
_GROWTH = 2
"""A level at least this many times larger than what is built stays apart: a filter is then built in about log2 times.
An index that is asked as often as it has filters in levels, and not changed, merges them all."""
_LEVELS_MAX = 12_288
"""With more filters than this in levels, most of them go into a block."""
_SCOUTS = 4_096
"""So many stay, those of fewest constraints: most destinations are found among them."""
_CAPACITY_MIN = 65_536
_CAPACITY_MAX = 1 << NUMBER_BITS
_CAPACITY_GROWTH = 4
_LISTED_AT_ONCE = 512
_MOVED_AT_ONCE = 64
_COMPLETED = 64
"""Events that found all destinations, after which is decided who is to be asked first."""

Home: TypeAlias = "Level[Destination] | Block[Destination]"


class Homes(Generic[Destination]):
    """Entries by key; none of their filters matches nothing.

    in_turn: levels and blocks as they are to be asked. calm: nothing is to be done before a question.
    """

    def __init__(self) -> None:
        self.newcomers: dict[int, IndexEntry[Destination]] = {}
        self.in_turn: list[Home[Destination]] = []
        self._levels: dict[int, Level[Destination]] = {}
        self._blocks: dict[int, Block[Destination]] = {}
        self._next_number = 0
        self._places = Places()
        self._task: Iterator[None] | None = None
        self._unsettled = False
        self.calm = True
        self._questions = 0
        self._in_levels_max = 0
        self._completed = self._completed_at_once = 0

    def __len__(self) -> int:
        return len(self.newcomers) + len(self._places)

    def __contains__(self, key: int) -> bool:
        return key in self.newcomers or key in self._places

    def __iter__(self) -> Iterator[IndexEntry[Destination]]:
        for home in self.in_turn:
            for _, entry in home.numbered():
                yield entry
        yield from self.newcomers.values()

    def add(self, entry: IndexEntry[Destination]) -> None:
        """Take the entry in; its key is not in use."""
        self.newcomers[entry.key] = entry
        self.calm = False
        self._questions = 0
        self._settle(_BACKLOG_MAX)

    def pop(self, key: int) -> IndexEntry[Destination]:
        """Take the entry out; raises KeyError if there is none."""
        self.calm = False
        self._questions = 0
        entry = self.newcomers.pop(key, None)
        if entry is None:
            where, number = self._places.pop(key)
            home = self._levels[where] if where in self._levels else self._blocks[where]
            entry = home.entry(number)
            home.strike(number)
            self._unsettled = self._unsettled or _is_hollow(home)
        self._settle(_BACKLOG_MAX)
        return entry

    def before_question(self) -> None:
        """See that there are few newcomers and, if nothing has changed for many questions, one level with all."""
        self._settle(_NEWCOMERS_MAX)
        if self._task is not None or self._unsettled:
            return
        homes = len(self._levels) + bool(self.newcomers)
        if not self._levels or homes < 2 or self._in_levels_max > _LEVELS_MAX:
            self.calm = True
            return
        self._questions += 1
        if self._in_levels_max < self._questions:
            if self.newcomers:
                self._house_newcomers()
            else:
                self._task = self._merge(list(self._levels))

    def note_completed(self, asked: int) -> None:
        """Every destination was found among the first so many: the first is to be one that is mostly enough."""
        if len(self.in_turn) < 2:
            return
        self._completed += 1
        self._completed_at_once += asked == 1
        if self._completed == _COMPLETED:
            if self._completed_at_once * 2 < _COMPLETED and len(self.in_turn[0]) < len(self.in_turn[1]):
                self.in_turn.append(self.in_turn.pop(0))
            self._completed = self._completed_at_once = 0

    def _settle(self, newcomers_max: int) -> None:
        """See that there are no more newcomers than this, and take a step of what else is to be done."""
        if len(self.newcomers) > newcomers_max:
            self._house_newcomers()
        if self._task is None:
            if not self._unsettled:
                return
            self._task = self._next_task()
            if self._task is None:
                self._unsettled = False
                return
        try:
            next(self._task)
        except StopIteration:
            self._task = None

    def check_invariants(self) -> None:
        """Raise AssertionError if a filter is not where it is said to be."""
        homes: dict[int, Home[Destination]] = {**self._levels, **self._blocks}
        assert len(homes) == len(self.in_turn)
        assert all(each in self.in_turn for each in homes.values())
        assert sum(map(len, homes.values())) == len(self._places)
        for where, home in homes.items():
            numbered = list(home.numbered())
            assert len(numbered) == len(home)
            for number, entry in numbered:
                assert self._places.get(entry.key) == place_of(where, number)

    def _house_newcomers(self) -> None:
        entries = list(self.newcomers.values())
        where = self._open_block()
        if where is None:
            self._build_at_once(entries)
        else:
            entries = entries[: self._blocks[where].room]
            self._append(where, entries)
        for entry in entries:
            del self.newcomers[entry.key]
        self._unsettled = True

    def _build_at_once(self, entries: list[IndexEntry[Destination]]) -> None:
        """Make the newcomers a level, with those of small levels that are not much larger."""
        merged = []
        for where, level in sorted(self._levels.items(), key=lambda each: len(each[1])):
            if len(level) >= _GROWTH * len(entries) or len(level) + len(entries) > _AT_ONCE:
                break
            merged.append(where)
            entries = [*(entry for _, entry in level.numbered()), *entries]
        level = Level(entries)
        for _ in level.build():
            pass
        for where in merged:
            del self._levels[where]
        where = self._number()
        for number, entry in enumerate(entries):
            self._places.put(entry.key, place_of(where, number))
        self._levels[where] = level
        self._put_in_turn()

    def _next_task(self) -> Iterator[None] | None:
        for where, level in self._levels.items():
            if _is_hollow(level):
                return self._merge([where])
        in_levels = sum(map(len, self._levels.values()))
        if self._open_block() is None:
            if in_levels > _LEVELS_MAX:
                return self._open()
        elif in_levels > (_SCOUTS + _LEVELS_MAX) // 2:
            return self._move_into_block()
        similar = self._similar_levels()
        if similar:
            return self._merge(similar)
        newest = next(reversed(self._blocks.values()), None)
        for where, block in self._blocks.items():
            if _is_hollow(block) or (newest is not None and block.capacity < newest.capacity):
                return self._move_out(where)
        return None

    def _similar_levels(self) -> list[int]:
        """The smallest levels of which none is much larger than those before it together; none if there are not two."""
        levels = sorted(self._levels.items(), key=lambda each: len(each[1]))
        for begin in range(len(levels)):
            total, group = 0, []
            for where, level in levels[begin:]:
                if total and (len(level) >= _GROWTH * total or total + len(level) > _LEVELS_MAX):
                    break
                total += len(level)
                group.append(where)
            if len(group) > 1:
                return group
        return []

    def _merge(self, sources: list[int]) -> Iterator[None]:
        """Build one level of these."""
        entries, places = yield from self._listed(sources)
        level = Level(entries)
        yield from level.build()
        where = self._number()
        keys = [entry.key for entry in entries]
        yield
        for number in self._places.move(keys, places, place_of(where, 0)):
            level.strike(number)  # removed meanwhile, or gone elsewhere
        gone = [self._levels.pop(source) for source in sources if source in self._levels]
        if len(level):
            self._levels[where] = level
        self._put_in_turn()
        while gone:
            yield from gone.pop().discard()

    def _open(self) -> Iterator[None]:
        """Open a block: with the edges of the one before, or, if these leave gaps, with bounds of filters in levels."""
        # Loaded in two steps, and with numpy: an index without blocks does not need them.
        from murmur_pubsub.matching_columns import cuts_of

        yield
        from murmur_pubsub.matching_block import Block

        latest = next(reversed(self._blocks.values()), None)
        if latest is None or latest.crowded:
            entries, _ = yield from self._listed(list(self._levels))
            cuts = yield from cuts_of(entries)
        else:
            cuts = latest.cuts
        capacity = _CAPACITY_MIN
        while capacity < min(len(self._places), _CAPACITY_MAX):
            capacity *= _CAPACITY_GROWTH
        block: Block[Destination] = Block(capacity, cuts)
        yield from block.claim()
        self._blocks[self._number()] = block
        self._put_in_turn()

    def _move_into_block(self) -> Iterator[None]:
        """Move all filters in levels but the scouts into the open block, while it has room."""
        entries, places = yield from self._listed(list(self._levels))
        by_count: dict[int, list[tuple[IndexEntry[Destination], int]]] = {}
        for position, (entry, place) in enumerate(zip(entries, places, strict=True)):
            by_count.setdefault(len(entry.filter.constraints or ()), []).append((entry, place))
            if position % _LISTED_AT_ONCE == 0:
                yield
        moving = [each for count in sorted(by_count) for each in by_count[count]][_SCOUTS:]
        moving.reverse()
        while moving:
            where = self._open_block()
            if where is None:
                return
            batch: list[IndexEntry[Destination]] = []
            room = self._blocks[where].room
            while moving and len(batch) < room:
                entry, place = moving.pop()
                if self._places.get(entry.key) == place:
                    source, number = self._places.pop(entry.key)
                    self._levels[source].strike(number)
                    batch.append(entry)
            self._append(where, batch)
            yield

    def _move_out(self, where: int) -> Iterator[None]:
        """Make some filters of a block, which takes no more from now on, newcomers; let it go if it has none left."""
        block = self._blocks[where]
        block.closed = True
        for number, entry in block.first(_MOVED_AT_ONCE):
            block.strike(number)
            self._places.pop(entry.key)
            self.newcomers[entry.key] = entry
        if not len(block):
            del self._blocks[where]
            self._put_in_turn()
            yield from block.discard()
        yield

    def _listed(self, sources: list[int]) -> Generator[None, None, tuple[list[IndexEntry[Destination]], list[int]]]:
        """(the entries of these levels, their places)."""
        entries: list[IndexEntry[Destination]] = []
        places: list[int] = []
        for where in sources:
            for number, entry in self._levels[where].numbered() if where in self._levels else ():
                entries.append(entry)
                places.append(place_of(where, number))
                if len(entries) % _LISTED_AT_ONCE == 0:
                    yield
        return entries, places

    def _open_block(self) -> int | None:
        """The newest block, if it takes filters."""
        where = next(reversed(self._blocks), None)
        return where if where is not None and self._blocks[where].room else None

    def _append(self, where: int, entries: list[IndexEntry[Destination]]) -> None:
        block = self._blocks[where]
        for number, entry in enumerate(entries, block.size):
            self._places.put(entry.key, place_of(where, number))
        block.append(entries)

    def _number(self) -> int:
        self._next_number += 1
        return self._next_number

    def _put_in_turn(self) -> None:
        """Levels are asked first, the largest before others; then blocks, the oldest first."""
        levels = sorted(self._levels.values(), key=len, reverse=True)
        self._in_levels_max = sum(map(len, levels))
        self.in_turn = [*levels, *self._blocks.values()]


def _is_hollow(home: "Home[Destination]") -> bool:
    """Is less than a third left?"""
    return len(home) * 3 < home.size
