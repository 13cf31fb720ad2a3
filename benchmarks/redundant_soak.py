"""The soak of redundant publishers' brokers, live: every broker dies twice, and the three of a pubend lose their disks.

`python -m benchmarks.redundant_soak [--seconds 900] [--folder FOLDER]` plays ten brokers of an overlay with shortcuts
on Ray, and prints the verdict. All events are published at b0. It and its backup b1 keep one log, and b2 is their
witness. One broker after the other is killed, at random times; each of these three loses its disk, too, one of the two
times. Publishers whose broker is killed go to the other one that keeps the log, subscribers to some broker, and stay
there until those die. Nothing that was accepted may be missing. `--virtual` plays it in virtual time.
"""

import random
from collections.abc import Sequence
from typing import Any

from benchmarks.durable_soak import play

_KEEPERS = ("b0", "b1")
_WITNESS = "b2"


def soak(seconds: float, brokers: int = 10, publishers: int = 4, subscribers: int = 4, seed: int = 1) -> dict[str, Any]:
    """The scenario, without a runtime. The last half of the brokers have that many subscribers each."""
    names = [f"b{number}" for number in range(brokers)]
    homes = names[-(brokers // 2) :]
    at = {f"c{number}": _KEEPERS[0] for number in range(publishers)}
    at |= {f"c{publishers + number}": homes[number // subscribers] for number in range(subscribers * len(homes))}
    backups = {_KEEPERS[0]: [_KEEPERS[1], _WITNESS]}
    return {
        "seed": seed,
        "overlay": {"kind": "random", "brokers": brokers},
        "workload": {
            "kind": "paced", "publishers": {_KEEPERS[0]: publishers}, "subscribers": dict.fromkeys(homes, subscribers),
            "rate_per_s": 25, "seconds": seconds,
        },
        "broker": {
            "routing": "multipath", "reliability": "end_to_end",
            "parameters": {"end_to_end": {"pubends": [_KEEPERS[0]], "backups": backups}},
        },
        "datagrams": {"delay": "1 ms"},
        "failure_detection": {"heartbeat": "500 ms", "timeout": "2 s", "reconnect": "100 ms"},
        "drain": {"limit": "30 s"},
        "faults": _faults(random.Random(seed), names, homes, at, seconds),
    }  # fmt: skip


def _faults(
    rng: random.Random, names: Sequence[str], homes: Sequence[str], at: dict[str, str], seconds: float
) -> list[dict[str, Any]]:
    """One broker after the other dies and is back before the next one does. `at`: client to the broker where it is."""
    rounds = [rng.sample(names, len(names)) for _ in range(2)]
    wiped_in = {broker: rng.randrange(2) for broker in (*_KEEPERS, _WITNESS)}
    turn_ms = int(seconds * 1_000 / (2 * len(names) + 0.5))
    faults: list[dict[str, Any]] = []
    for number, broker in enumerate([*rounds[0], *rounds[1]]):
        begin_ms = number * turn_ms + rng.randint(turn_ms // 10, turn_ms // 3)
        away_ms = rng.randint(turn_ms // 4, turn_ms // 2)
        killed = {"at": f"{begin_ms} ms", "kill": broker, "for": f"{away_ms} ms"}
        wiped = wiped_in.get(broker) == number // len(names)
        faults.append({**killed, "disk": "lost"} if wiped else {**killed, "signal": "SIGKILL"})
        others = [each for each in (_KEEPERS if broker in _KEEPERS else homes) if each != broker]
        for place, client in enumerate(client for client, home in at.items() if home == broker):
            at[client] = others[place % len(others)]
            faults.append({"at": f"{begin_ms + away_ms // 2} ms", "move_client": client, "to": at[client]})
    return faults


if __name__ == "__main__":
    play(__doc__, soak, "redundant-soak")
