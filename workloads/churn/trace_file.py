"""Reader and writer of `.avt` availability traces (Godfrey's Repository of Availability Traces).

One node a line: its name, a tab, the number of its sessions, a tab, and the sessions as pairs of seconds, up and down,
separated by blanks. Sessions are in order and do not overlap; anything else is an `InputError` with the line.

Two artefacts of probing are mended on request. A *mass outage* is a probe that failed: at one instant an improbable
share of the nodes goes down, and nearly all of those are back at the next; their sessions are joined. What lies before
the first regular probe, or after the collection broke off, is cut by a window (`SKYPE_WINDOW_S` for the Skype
superpeer trace of Guha, Daswani and Jain, IPTPS 2006).
"""

import itertools
from collections import Counter, defaultdict
from pathlib import Path

from murmur_pubsub.errors import InputError
from workloads.churn.sessions import Availability, ChurnSession

SKYPE_WINDOW_S = (14_000, 2_168_484)
"""After the irregular first probes, up to the gap in the collection: the 25 days of the literature."""
_OUTAGE_SHARE = 0.15
_RETURN_SHARE = 0.6
_OUTAGE_S_MAX = 3_600


def read_trace(path: Path) -> Availability:
    """The whole trace, from 0 to its last second. Raises `InputError` naming file and line."""
    try:
        text = path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(str(path), str(error), "an .avt availability trace") from None
    sessions: dict[str, tuple[ChurnSession, ...]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        place = f"{path}, line {number}"
        name, held = _node(line, place)
        if name in sessions:
            raise InputError(place, f"node {name} again", "one line for each node")
        sessions[name] = held
    end_s = max((held[-1][1] for held in sessions.values() if held), default=0)
    if not end_s:
        raise InputError(str(path), "no session", "an .avt availability trace")
    return Availability(sessions, 0, end_s, {"trace": path.name})


def write_trace(trace: Availability, path: Path) -> None:
    """Write the sessions in the same format."""
    lines = []
    for name, held in trace.sessions.items():
        times = " ".join(f"{up_s} {down_s}" for up_s, down_s in held)
        lines.append(f"{name}\t{len(held)}\t {times}\n")
    path.write_text("".join(lines), encoding="ascii")


def _node(line: str, place: str) -> tuple[str, tuple[ChurnSession, ...]]:
    fields = line.split("\t")
    if len(fields) != 3:
        raise InputError(place, f"{len(fields)} fields", "a name, a count and sessions, separated by tabs")
    name, count, listed = fields
    try:
        times = [int(each) for each in listed.split()]
        expected = int(count)
    except ValueError as error:
        raise InputError(place, f"no number ({error})", "whole seconds") from None
    if len(times) != 2 * expected:
        raise InputError(place, f"{len(times)} times for {expected} sessions", "two times for each session")
    held = tuple(zip(times[::2], times[1::2], strict=True))
    before_s = -1
    for up_s, down_s in held:
        if down_s <= up_s:
            raise InputError(place, f"a session from {up_s} to {down_s}", "an end after its begin")
        if up_s <= before_s:
            raise InputError(place, f"a session from {up_s} after one to {before_s}", "sessions that do not overlap")
        before_s = down_s
    return name, held


def mend_outages(trace: Availability) -> Availability:
    """Join the sessions that a failed probe has cut in two; `description` says how many outages there were."""
    ends: Counter[int] = Counter()
    following: dict[int, Counter[int]] = defaultdict(Counter)
    for held in trace.sessions.values():
        for (_, down_s), (up_s, _) in itertools.pairwise(held):
            if up_s - down_s <= _OUTAGE_S_MAX:
                following[down_s][up_s] += 1
        ends.update(down_s for _, down_s in held)
    before = {down_s - 1: 0 for down_s in ends}
    before |= dict(zip(before, trace.population(list(before)).tolist(), strict=True))
    outages = {}
    for down_s, count in ends.items():
        if count < _OUTAGE_SHARE * before[down_s - 1] or not following[down_s]:
            continue
        up_s, back = following[down_s].most_common(1)[0]
        if back >= _RETURN_SHARE * count:
            outages[down_s] = up_s
    mended = {name: tuple(_join(list(held), outages)) for name, held in trace.sessions.items()}
    description = {**trace.description, "outages mended": len(outages)}
    return Availability(mended, trace.begin_s, trace.end_s, description)


def _join(held: list[ChurnSession], outages: dict[int, int]) -> list[ChurnSession]:
    joined: list[ChurnSession] = []
    for session in held:
        if joined and outages.get(joined[-1][1]) == session[0]:
            joined[-1] = (joined[-1][0], session[1])
        else:
            joined.append(session)
    return joined
