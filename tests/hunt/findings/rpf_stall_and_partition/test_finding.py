"""Found by `murmur hunt`: 108 deliveries were duplicates

Shrunk from 6 brokers, 6 clients, 116 publications, 6 faults to 6 brokers, 6 clients, 116
publications, 2 faults. `murmur run` plays scenario.yaml, which has the same schedule.
"""

import yaml

from murmuration.hunt.symptoms import tried

SCHEDULE = """
name: schedule
runtime: virtual
seed: 7951
overlay:
  kind: structured
  brokers: 6
  probe: 200 ms
  probe_timeout: 100 ms
  leaf_set: 16
workload:
  kind: zipf
  clients: 6
  subscribers_per_actor: 2
  publishers: 2
  publications: 116
  rate_per_s: 10
  attributes: 2
  predicates: 1
  matching_rate: 0.5
broker:
  routing: rpf
  reliability: best_effort
  parameters:
    rpf:
      resets: true
      reverse_paths: direct
links:
  delay: 2 ms
failure_detection:
  heartbeat: 100 ms
  timeout: 300 ms
  reconnect: 20 ms
drain:
  limit: 5 s
datagrams:
  delay: 1 ms
faults:
- at: 70 ms
  stall: b1
  for: 600 ms
- at: 70 ms
  partition:
  - - b0
    - b1
    - b5
  for: 200 ms
recovery_limit: 30 s
"""


def test_the_schedule_shows_nothing_wrong() -> None:
    symptom = tried(yaml.safe_load(SCHEDULE), properties=()).symptom
    assert symptom is None, symptom.words
