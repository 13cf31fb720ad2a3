"""The soak of redundant publishers' brokers, live: every broker dies twice, and the three of a pubend lose their disks.

`python -m benchmarks.redundant_soak [--seconds 900] [--folder FOLDER]` plays ten brokers of an overlay with shortcuts
on Ray, and prints the verdict. All events are published at b0. It and its backup b1 keep one log, and b2 is their
witness. One broker after the other is killed, at random times; each of these three loses its disk, too, one of the two
times. Publishers whose broker is killed go to the other one that keeps the log, subscribers to some broker, and stay
there until those die. Nothing that was accepted may be missing. `--virtual` plays it in virtual time.
"""

import random
from typing import Any

from benchmarks.durable_soak import deaths_in_turn, play

_KEEPERS = ("b0", "b1")
_WITNESS = "b2"


def soak(seconds: float, brokers: int = 10, publishers: int = 4, subscribers: int = 4, seed: int = 1) -> dict[str, Any]:
    """The scenario, without a runtime. The last half of the brokers have that many subscribers each."""
    names = [f"b{number}" for number in range(brokers)]
    homes = names[-(brokers // 2) :]
    at = {f"c{number}": _KEEPERS[0] for number in range(publishers)}
    at |= {f"c{publishers + number}": homes[number // subscribers] for number in range(subscribers * len(homes))}
    backups = {_KEEPERS[0]: [_KEEPERS[1], _WITNESS]}
    rng = random.Random(seed)
    order = [broker for _ in range(2) for broker in rng.sample(names, len(names))]
    wiped_in = {broker: rng.randrange(2) for broker in (*_KEEPERS, _WITNESS)}

    def how(number: int, broker: str) -> dict[str, str]:
        return {"disk": "lost"} if wiped_in.get(broker) == number // len(names) else {"signal": "SIGKILL"}

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
        "faults": deaths_in_turn(rng, order, seconds, at, [_KEEPERS, homes], how),
    }  # fmt: skip


if __name__ == "__main__":
    play(__doc__, soak, "redundant-soak")
