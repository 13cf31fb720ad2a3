"""Found by `murmur hunt`: 38 required deliveries are missing without a fault that explains it

Shrunk from 10 brokers, 7 clients, 48 publications, 5 faults to 10 brokers, 7 clients, 41
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
    - m00b
    m000:
    - m000a
    m001:
    - m001a
    m1:
    - m1a
    - m1b
    - m1c
    m10:
    - m10a
  links:
  - - p
    - m0
  - - m0
    - m00
  - - m00
    - m000
  - - m00
    - m001
  - - p
    - m1
  - - m1
    - m10
workload:
  kind: zipf
  clients: 7
  subscribers_per_actor: 2
  publishers: 1
  publications: 41
  rate_per_s: 40
  attributes: 2
  predicates: 1
  matching_rate: 0.5
  resubscriptions: 3
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
  loss: 0.3
  reordering: 0.1
failure_detection:
  heartbeat: 100 ms
  timeout: 300 ms
  reconnect: 20 ms
drain:
  limit: 300 s
faults:
- at: 1610 ms
  stall: m001a
recovery_limit: 2 min
"""


def test_the_schedule_shows_nothing_wrong() -> None:
    symptom = tried(yaml.safe_load(SCHEDULE), properties=()).symptom
    assert symptom is None, symptom.words
