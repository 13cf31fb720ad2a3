"""Found by `murmur hunt`: 2 required deliveries are missing without a fault that explains it

Shrunk from 10 brokers, 7 clients, 48 publications, 5 faults to 6 brokers, 4 clients, 42
publications, 1 faults. `murmur run` plays scenario.yaml, which has the same schedule.
"""

import yaml

from murmuration.hunt.symptoms import tried

SCHEDULE = """
name: schedule
runtime: virtual
seed: 460
overlay:
  kind: cells
  cells:
    p:
    - p0
    m0:
    - m0a
    m00:
    - m00a
    m001:
    - m001a
    m1:
    - m1a
    m10:
    - m10a
  links:
  - - p
    - m0
  - - m0
    - m00
  - - m00
    - m001
  - - p
    - m1
  - - m1
    - m10
workload:
  kind: zipf
  clients: 4
  subscribers_per_actor: 2
  publishers: 2
  publications: 42
  rate_per_s: 40
  attributes: 2
  predicates: 1
  matching_rate: 0.5
  resubscriptions: 0
  covered: 0.5
broker:
  routing: cells
  reliability: gryphon
  parameters:
    gryphon:
      cache: 5
      receive_cache: 20
      window: 5
links:
  delay: 2 ms
failure_detection:
  heartbeat: 100 ms
  timeout: 300 ms
  reconnect: 20 ms
drain:
  limit: 300 s
faults:
- at: 1000 ms
  kill: m10a
recovery_limit: 30 s
"""


def test_the_schedule_shows_nothing_wrong() -> None:
    symptom = tried(yaml.safe_load(SCHEDULE), properties=()).symptom
    assert symptom is None, symptom.words
