"""Errors whose cause lies with the person who wrote the input, not with the program.

A bad scenario, trace, dataset, journal or command line ends in an `InputError`; the command line prints it
without a traceback and exits with code 2.
"""

import difflib
import errno
import re
from pathlib import Path

_OF_A_PLACE = frozenset(
    {
        errno.EACCES,
        errno.EEXIST,
        errno.EISDIR,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.ENOENT,
        errno.ENOTDIR,
        errno.ENOTEMPTY,
        errno.EPERM,
        errno.EROFS,
    }
)
"""What the operating system says of a place where no such file can be, however much room there is."""


class InputError(Exception):
    """Input that cannot be used: `place` names file and position, `found` what stands there, `allowed` what may."""

    def __init__(self, place: str, found: str, allowed: str) -> None:
        super().__init__(place, found, allowed)
        self.place = place
        self.found = found
        self.allowed = allowed

    def __str__(self) -> str:
        meant = self._meant()
        hint = f" (did you mean {meant!r}?)" if meant else ""
        return f"{self.place}: found {self.found}{hint}; allowed: {self.allowed}"

    def _meant(self) -> str | None:
        """The allowed name that is closest to what was found, if one is close.

        The name that was found stands in quotes; what is unknown or not there is named by the end of its place. Names
        that are allowed are the single words of a list, in quotes or not."""
        quoted = re.findall(r"'([\w./-]+)'", self.found)
        if not quoted and self.found.startswith(("an unknown", "no such")):
            quoted = [re.split(r"[\s.]", self.place)[-1]]
        listed = [re.fullmatch(r"('?)([\w-]+)\1", each) for each in re.split(r",\s*|\s+or\s+|[()]", self.allowed)]
        names = [each[2] for each in listed if each]
        close = [near for name in quoted for near in difflib.get_close_matches(name, names, 1)]
        return close[0] if close and close[0] not in quoted else None


class WireError(Exception):
    """Bytes from a peer that are no valid frame, message, event or filter: counted, journaled and dropped."""


class RunError(Exception):
    """A run that cannot go on: an actor died, a machine raised, nothing settles. Names the node where it can."""


class DiskError(RunError):
    """A file cannot be written, as on a full disk, and no machine is to blame: `place` is the file, `why` says why.
    `no_place`: that is no matter of room, another place would do. So it is bad input, whatever was done before."""

    def __init__(self, place: str, why: str, no_place: bool = False) -> None:
        super().__init__(place, why, no_place)
        self.place = place
        self.why = why
        self.no_place = no_place

    def __str__(self) -> str:
        return f"{self.place}: {self.why}"

    @classmethod
    def of(cls, path: Path, error: OSError) -> "DiskError":
        """That of the file, from what the operating system said."""
        return cls(str(path), error.strerror or str(error), error.errno in _OF_A_PLACE)
