"""The filter table (IRBR section 5.2): entries (range of identifiers, filter) for the ranges outside this node's own.

The filters of a range do not cover each other; to see to that, each range has a set of its own, since most messages
only add an entry. One matching index holds all entries besides, so that one query says which ranges want an event, or
in which rows a filter is covered. What this node's own subscribers want is kept apart.

A range has many nodes, and an entry does not name the holder of its filter. So that a cancellation does not take away
what another node of the range asked for while it was on its way, subscriptions are remembered for a while, each with
the identifier of its subscriber. The number of its operation is kept too: a node may ask for what it withdrew a moment
ago, and the cancellation may come last. So are cancellations: a subscription may come after its own one. An entry that
a cancellation has left for another node's sake is doubtful, since that node may have withdrawn it when the first one's
filter covered its own, and has then told nobody here. Doubtful entries draw events, and nobody relies on them.
"""

from collections.abc import Iterable, Mapping
from typing import ClassVar

from murmur_pubsub.filter import Filter
from murmur_pubsub.matching import MatchingIndex
from murmur_pubsub.values import Value
from routing.filter_digest import digest
from routing.filter_set import FilterSet
from routing.irbr.lately import Lately
from routing.pastry.identifiers import IdentifierRange


class FilterTable:
    """The entries; each knows since when it is there, in microseconds."""

    remembers: ClassVar = ("_asked", "_withdrawn")  # until the next operation that comes later than that

    def __init__(self) -> None:
        self._ranges: dict[IdentifierRange, dict[Filter, int]] = {}
        self._filters: dict[IdentifierRange, FilterSet] = {}
        self._entries: dict[int, tuple[IdentifierRange, Filter]] = {}
        self._since_us: dict[int, int] = {}
        self._index = MatchingIndex[IdentifierRange]()
        self._next_key = 0
        self._digests: dict[IdentifierRange, int] = {}
        self._doubtful: dict[int, int] = {}
        """Entries that a cancellation left, since another node had asked lately, and since when: that node may have
        withdrawn it, too."""
        self._asked = Lately()
        self._withdrawn = Lately()

    def __len__(self) -> int:
        return len(self._entries)

    def ranges(self) -> list[IdentifierRange]:
        """Those with entries."""
        return list(self._ranges)

    def of(self, wide: IdentifierRange) -> list[Filter]:
        """The filters of one range."""
        return list(self._ranges.get(wide, ()))

    def covered_in(self, wide: IdentifierRange, filters: Iterable[Filter]) -> list[Filter]:
        """The filters of the range that one of these covers, but for doubtful ones."""
        together = self._filters.get(wide)
        if together is None:
            return []
        covered = {held for each in filters for held in together.covered_by(each)}
        keys, doubtful = self._ranges[wide], self._doubtful
        return [held for held in together if held in covered and keys[held] not in doubtful]

    def entries(self) -> Iterable[tuple[IdentifierRange, Filter, int]]:
        """Every entry, and since when it is there."""
        return ((*entry, self._since_us[key]) for key, entry in self._entries.items())

    def put(self, wide: IdentifierRange, wanted: Filter, now_us: int) -> bool:
        """Add the entry in place of those of the range that it covers; False if one of them covers it already."""
        held = self._ranges.get(wide)
        if held is None:
            held = self._ranges[wide] = {}
            self._filters[wide] = FilterSet()
        elif wanted in held:
            return False
        filters = self._filters[wide]
        if filters.covers(wanted):
            return False
        hidden = filters.covered_by(wanted)
        filters.add(wanted)
        key = held[wanted] = self._next_key
        self._next_key += 1
        self._entries[key] = (wide, wanted)
        self._since_us[key] = now_us
        self._index.add(key, wanted, wide)
        self._digests.pop(wide, None)
        for covered in hidden:
            self._drop(held[covered])
        return True

    def remove(self, wide: IdentifierRange, wanted: Filter) -> bool:
        """Remove exactly that entry; False if there is none."""
        key = self._ranges.get(wide, {}).get(wanted)
        if key is None:
            return False
        self._drop(key)
        return True

    def subscribed(self, wide: IdentifierRange, wanted: Filter, subscriber: int, number: int, now_us: int) -> bool:
        """`put` what a node of the range has subscribed to, or goes on wanting where it cancels what covered it; not if
        its cancellation has overtaken that."""
        self._forget_old(now_us)
        if self._withdrawn.number(wide, wanted, subscriber) > number:
            return False
        if self.holds(wide, wanted):
            self._doubtful.pop(self._ranges[wide][wanted], None)
        self._asked.note(wide, wanted, subscriber, number, now_us)
        return self.put(wide, wanted, now_us)

    def cancelled(self, wide: IdentifierRange, wanted: Filter, subscriber: int, number: int, now_us: int) -> None:
        """`remove` what a node of the range wants no more, unless it or another one has asked for it lately; what was
        asked for lately and was covered by it is there again."""
        self.note_withdrawn(wide, wanted, subscriber, number, now_us)
        if -1 < self._asked.number(wide, wanted, subscriber) < number:
            self._asked.forget(wide, wanted, subscriber)
        lately = self._asked.of(wide)
        if wanted in lately:
            if subscriber not in lately[wanted] and self.holds(wide, wanted):
                self._doubtful[self._ranges[wide][wanted]] = now_us
        elif self.remove(wide, wanted):
            for covered in lately:
                if wanted.covers(covered):
                    self.put(wide, covered, now_us)

    def confirm(self, wide: IdentifierRange, before_us: int) -> None:
        """A node that stands for the range has the same entries for it: what was doubtful before that time is not."""
        for key in [key for key, since_us in self._doubtful.items() if since_us < before_us]:
            if self._entries[key][0] == wide:
                del self._doubtful[key]

    def note_withdrawn(self, wide: IdentifierRange, wanted: Filter, subscriber: int, number: int, now_us: int) -> None:
        """A node of that range wants it no more, by that operation."""
        self._forget_old(now_us)
        self._withdrawn.note(wide, wanted, subscriber, number, now_us)

    def withdrawn_lately(self, wanted: Filter) -> Iterable[tuple[IdentifierRange, int]]:
        """The ranges in which the filter was withdrawn lately, and which nodes did that."""
        return self._withdrawn.about(wanted)

    def _forget_old(self, now_us: int) -> None:
        self._asked.forget_old(now_us)
        self._withdrawn.forget_old(now_us)

    def remove_range(self, wide: IdentifierRange) -> list[Filter]:
        """Remove all entries of the range; their filters."""
        filters = self.of(wide)
        for wanted in filters:
            self.remove(wide, wanted)
        return filters

    def holds(self, wide: IdentifierRange, wanted: Filter) -> bool:
        """Is there exactly that entry?"""
        return wanted in self._ranges.get(wide, ())

    def since_us(self, wide: IdentifierRange, wanted: Filter) -> int:
        """Since when the entry is there."""
        return self._since_us[self._ranges[wide][wanted]]

    def covering(self, wanted: Filter) -> list[tuple[IdentifierRange, Filter]]:
        """The entries whose filter covers the given one, but for doubtful ones."""
        return [self._entries[key] for key in self._index.covering(wanted) if key not in self._doubtful]

    def covered_by(self, wanted: Filter) -> list[tuple[IdentifierRange, Filter]]:
        """The entries whose filter the given one covers."""
        return [self._entries[key] for key in self._index.covered_by(wanted)]

    def related(self, wanted: Filter) -> list[IdentifierRange]:
        """The ranges of the entries whose filter covers the given one or is covered by it."""
        return self._index.related(wanted)

    def destinations(self, attributes: Mapping[str, Value]) -> list[IdentifierRange]:
        """The ranges with a filter that an event with these attributes matches."""
        return self._index.destinations(attributes)

    def matching_entries(self, attributes: Mapping[str, Value]) -> list[tuple[IdentifierRange, Filter]]:
        """The entries whose filter an event with these attributes matches."""
        return [self._entries[key] for key in self._index.matching(attributes)]

    def matching(self, attributes: Mapping[str, Value]) -> list[Filter]:
        """The filters that an event with these attributes matches."""
        return list(dict.fromkeys(wanted for _, wanted in self.matching_entries(attributes)))

    def digest(self, wide: IdentifierRange) -> int:
        """A number that says whether two nodes hold the same filters for a range."""
        found = self._digests.get(wide)
        if found is None:
            found = self._digests[wide] = digest(self._ranges.get(wide, ()))
        return found

    def check_invariants(self) -> None:
        """Raise AssertionError if the table contradicts itself."""
        assert len(self._entries) == len(self._index) == sum(map(len, self._ranges.values()))
        assert self._entries.keys() == self._since_us.keys()
        for wide, filters in self._ranges.items():
            together = self._filters[wide]
            assert list(filters) == list(together)
            for wanted, key in filters.items():
                assert self._entries[key] == (wide, wanted)
                assert together.covered_by(wanted) == [wanted], f"two filters of {wide} cover each other"

    def _drop(self, key: int) -> None:
        wide, wanted = self._entries.pop(key)
        del self._ranges[wide][wanted], self._since_us[key]
        self._doubtful.pop(key, None)
        self._filters[wide].remove(wanted)
        if not self._ranges[wide]:
            del self._ranges[wide], self._filters[wide]
        self._index.remove(key)
        self._digests.pop(wide, None)
