"""Curiosity: which ticks have been asked for and are not answered yet.

Curiosity is soft: it is forgotten after a while, so that a nack or an answer that was lost can be asked for again.
Two generations take turns, so a tick is remembered for between one and two times the forgetting threshold.
"""

from murmur_pubsub.intervals import Interval, IntervalSet


class Curiosity:
    """The C ticks of one asker, or of what this broker has asked for itself. `asked`: the time in an asker's latest
    nack, which an answer carries back."""

    __slots__ = ("_older", "_recent", "asked")

    def __init__(self) -> None:
        self.asked = 1
        self._recent = IntervalSet()
        self._older = IntervalSet()

    def __bool__(self) -> bool:
        return bool(self._recent) or bool(self._older)

    def ask(self, first: int, last: int) -> list[Interval]:
        """Turn the ticks C; the parts that were not so before. Asking again does not keep them from being forgotten:
        two branches that ask in turn would keep each other's lost nack from ever being repeated."""
        news = [part for found in self._recent.missing(first, last) for part in self._older.missing(found[0], found[1])]
        for part in news:
            self._recent.add(*part)
        return news

    def answer(self, first: int, last: int) -> bool:
        """The ticks are known: was any of them asked for? They are so no more."""
        asked = False
        for generation in (self._recent, self._older):
            if generation and generation.within(first, last):
                generation.remove(first, last)
                asked = True
        return asked

    def grow_old(self) -> None:
        """Forget what was asked for before the last time."""
        self._older, self._recent = self._recent, IntervalSet()
