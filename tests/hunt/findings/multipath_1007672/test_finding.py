"""Found by `murmur hunt`: 12 required deliveries are missing without a fault that explains it

Shrunk from 6 brokers, 6 clients, 106 publications, 5 faults to 6 brokers, 6 clients, 77
publications, 2 faults. `murmur run` plays scenario.yaml, which has the same schedule.
"""

import yaml

from murmuration.hunt.symptoms import tried

SCHEDULE = """
name: schedule
runtime: virtual
seed: 731
overlay:
  kind: chain
  brokers: 6
workload:
  kind: zipf
  clients: 6
  subscribers_per_actor: 2
  publishers: 2
  publications: 77
  rate_per_s: 40
  attributes: 2
  predicates: 1
  matching_rate: 0.5
  resubscriptions: 2
  covered: 0.5
broker:
  routing: multipath
  reliability: best_effort
  parameters:
    multipath:
      strategy: S1
      covering: true
      delta: 3
      round: 200 ms
      cool_down_rounds: 0
      load_exchange: 100 ms
      watch: 200 ms
      coordinator: b0
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
- at: 1220 ms
  kill: b3
  for: 3000 ms
- at: 1240 ms
  partition:
  - - b5
    - c5
  for: 50 ms
recovery_limit: 30 s
"""


def test_the_schedule_shows_nothing_wrong() -> None:
    symptom = tried(yaml.safe_load(SCHEDULE), properties=()).symptom
    assert symptom is None, symptom.words
