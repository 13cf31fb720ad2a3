"""Found by `murmur hunt`: 1 deliveries were duplicates

Shrunk from 7 brokers, 7 clients, 95 publications, 7 faults to 4 brokers, 4 clients, 2 publications,
3 faults. `murmur run` plays scenario.yaml, which has the same schedule.
"""

import yaml

from murmuration.hunt.symptoms import tried

SCHEDULE = """
name: schedule
runtime: virtual
seed: 5587
overlay:
  kind: star
  brokers: 4
workload:
  kind: zipf
  clients: 4
  subscribers_per_actor: 2
  publishers: 2
  publications: 2
  rate_per_s: 40
  attributes: 2
  predicates: 1
  matching_rate: 0.5
  resubscriptions: 0
  covered: 0.5
broker:
  routing: multipath
  reliability: best_effort
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
- at: 0 ms
  kill: b0
  for: 200 ms
- at: 1 ms
  disconnect:
  - b0
  - b2
- at: 51 ms
  connect:
  - b1
  - b2
recovery_limit: 30 s
"""


def test_the_schedule_shows_nothing_wrong() -> None:
    symptom = tried(yaml.safe_load(SCHEDULE), properties=()).symptom
    assert symptom is None, symptom.words
