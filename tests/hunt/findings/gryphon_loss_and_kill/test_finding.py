"""A link loses half of its messages for a while; then the publishers' broker is restarted. If its log was cut at the
checkpoint and not below what is still needed, one delivery is missing. `murmur run` plays scenario.yaml, which has the
same schedule.
"""

import yaml

from murmuration.hunt.symptoms import tried

SCHEDULE = """
name: schedule
runtime: virtual
seed: 27
overlay:
  kind: cells
  cells:
    p:
    - p0
    m:
    - m0
    n:
    - n0
  links:
  - - p
    - m
  - - m
    - n
workload:
  kind: zipf
  clients: 3
  subscribers_per_actor: 2
  publishers: 2
  publications: 40
  rate_per_s: 80
  attributes: 2
  predicates: 1
  matching_rate: 0.8
broker:
  routing: cells
  reliability: gryphon
  parameters:
    gryphon:
      checkpoint: 5
links:
  delay: 2 ms
failure_detection:
  heartbeat: 100 ms
  timeout: 300 ms
  reconnect: 20 ms
drain:
  limit: 300 s
faults:
- at: 300 ms
  link:
  - p0
  - m0
  loss: 0.5
  for: 500 ms
- at: 640 ms
  kill: p0
  for: 50 ms
recovery_limit: 30 s
"""


def test_the_schedule_shows_nothing_wrong() -> None:
    symptom = tried(yaml.safe_load(SCHEDULE), properties=()).symptom
    assert symptom is None, symptom.words
