"""What epidemic push finds again over the routings of a structured overlay: `python -m benchmarks.structured_push`.

64 nodes in virtual time, a filter at every second one, 200 events at 50 a second; a share of all events, digests,
requests and answers gets lost. A delivery counts whenever it comes.
"""

import tempfile
from pathlib import Path

from murmuration.papers.irbr.run import PROBE_US, PROTOCOLS, PastryNetwork
from murmuration.papers.irbr.workload import Generator, Rates
from reliability.epidemic.parameters import Algorithm, EpidemicParameters

NODES = 64
EVENTS = 200
LOSSES = (0.05, 0.1, 0.2)
ALGORITHMS: tuple[Algorithm, ...] = ("none", "push")


def delivery_rate(routing: str, algorithm: Algorithm, loss: float) -> tuple[float, int]:
    """Deliveries made of those due, and how many were made twice or to nodes that are not interested."""
    generator = Generator(Rates(matching=0.2), 1)
    epidemic = EpidemicParameters(algorithm, interval_us=50_000, rest_after_us=2_000_000)
    with tempfile.TemporaryDirectory() as folder:
        network = PastryNetwork(routing, NODES, 1, Path(folder), PROBE_US, loss, epidemic)
        runtime = network.runtime
        for name in network.names[::2]:
            network.subscribe(name, generator.filter())
        runtime.run(until_us=runtime.now_us + PROBE_US)
        for _ in range(EVENTS):
            network.publish(network.rng.choice(network.names), generator.event())
            runtime.run(until_us=runtime.now_us + 20_000)
        runtime.run(until_us=runtime.now_us + 4_000_000)
        network.close()
    tally = network.oracle.tally()
    return tally.made / tally.required, tally.duplicate + tally.spurious


def main() -> None:
    """Print the table."""
    print("| routing | loss | without | push | twice or unwanted |\n| --- | --- | --- | --- | --- |")
    for routing in PROTOCOLS:
        for loss in LOSSES:
            (without, wrong), (push, also_wrong) = (delivery_rate(routing, each, loss) for each in ALGORITHMS)
            print(f"| {routing} | {loss} | {without:.3f} | {push:.3f} | {wrong + also_wrong} |", flush=True)


if __name__ == "__main__":
    main()
