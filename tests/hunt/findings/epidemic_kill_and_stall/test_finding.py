"""A broker begins again while one that is two links away is stalled. If a broker takes patterns from a neighbour whose
link is gone, its table contradicts itself. `murmur run` plays scenario.yaml, which has the same schedule.
"""

import yaml

from murmuration.hunt.symptoms import tried

SCHEDULE = """
name: schedule
runtime: virtual
seed: 1518
overlay:
  kind: chain
  brokers: 4
workload:
  kind: zipf
  clients: 1
  subscribers_per_actor: 1
  publishers: 1
  publications: 1
  rate_per_s: 40
  attributes: 2
  predicates: 1
  matching_rate: 0.5
broker:
  routing: forwarding
  reliability: epidemic
links:
  delay: 2 ms
failure_detection:
  heartbeat: 100 ms
  timeout: 300 ms
  reconnect: 20 ms
drain:
  limit: 300 s
datagrams:
  delay: 1 ms
faults:
- at: 2300 ms
  kill: b0
  for: 1200 ms
- at: 3500 ms
  stall: b2
  for: 600 ms
recovery_limit: 30 s
"""


def test_the_schedule_shows_nothing_wrong() -> None:
    symptom = tried(yaml.safe_load(SCHEDULE), properties=()).symptom
    assert symptom is None, symptom.words
