"""Errors whose cause lies with the person who wrote the input, not with the program.

A bad scenario, trace, dataset, journal or command line ends in an `InputError`; the command line prints it
without a traceback and exits with code 2.
"""


class InputError(Exception):
    """Input that cannot be used: `place` names file and position, `found` what stands there, `allowed` what may."""

    def __init__(self, place: str, found: str, allowed: str) -> None:
        super().__init__(place, found, allowed)
        self.place = place
        self.found = found
        self.allowed = allowed

    def __str__(self) -> str:
        return f"{self.place}: found {self.found}; allowed: {self.allowed}"


class WireError(Exception):
    """Bytes from a peer that are no valid frame, message, event or filter: counted, journaled and dropped."""


class RunError(Exception):
    """A run that cannot go on: an actor died, a machine raised, nothing settles. Names the node where it can."""
