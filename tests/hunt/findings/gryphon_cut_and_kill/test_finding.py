"""Found by `murmur hunt`: 7 required deliveries are missing without a fault that explains it

Shrunk from 8 brokers, 7 clients, 107 publications, 6 faults to 6 brokers, 3 clients, 58
publications, 2 faults. `murmur run` plays scenario.yaml, which has the same schedule.
"""

import yaml

from murmuration.hunt.symptoms import tried

SCHEDULE = """
name: schedule
runtime: virtual
seed: 8003
overlay:
  kind: cells
  cells:
    p:
    - p0
    m0:
    - m0a
    - m0b
    - m0c
    m00:
    - m00a
    m1:
    - m1a
  links:
  - - p
    - m0
  - - m0
    - m00
  - - p
    - m1
workload:
  kind: zipf
  clients: 3
  subscribers_per_actor: 2
  publishers: 2
  publications: 58
  rate_per_s: 40
  attributes: 2
  predicates: 1
  matching_rate: 0.5
  resubscriptions: 0
broker:
  routing: cells
  reliability: gryphon
  parameters:
    gryphon:
      order: total
      gct: 50 ms
      nack_chunk: 50 ms
      cache: 5
      receive_cache: 20
      checkpoint: 5
links:
  delay: 2 ms
failure_detection:
  heartbeat: 100 ms
  timeout: 300 ms
  reconnect: 20 ms
drain:
  limit: 60 s
faults:
- at: 290 ms
  cut:
  - p0
  - m0b
  for: 600 ms
- at: 1700 ms
  kill: p0
recovery_limit: 30 s
"""


def test_the_schedule_shows_nothing_wrong() -> None:
    symptom = tried(yaml.safe_load(SCHEDULE), properties=()).symptom
    assert symptom is None, symptom.words
