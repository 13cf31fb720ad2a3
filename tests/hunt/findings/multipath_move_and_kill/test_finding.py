"""A move leaves two brokers neighbours without a link. Then one of them is restarted: if the other tells it nothing, 48
deliveries are missing. `murmur run` plays scenario.yaml, which has the same schedule.
"""

import yaml

from murmuration.hunt.symptoms import tried

SCHEDULE = """
name: schedule
runtime: virtual
seed: 3656
overlay:
  kind: random
  brokers: 5
workload:
  kind: zipf
  clients: 5
  subscribers_per_actor: 2
  publishers: 2
  publications: 100
  rate_per_s: 40
  attributes: 2
  predicates: 1
  matching_rate: 0.5
  resubscriptions: 5
  covered: 0.5
broker:
  routing: multipath
  reliability: best_effort
  parameters:
    multipath:
      strategy: S0
      delta: 3
      round: 1 s
      cool_down_rounds: 0
      uplink_messages_per_s: 30
      meter: 200 ms
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
- at: 1100 ms
  move: b2
  from: b3
  to: b4
- at: 1700 ms
  kill: b4
  for: 50 ms
recovery_limit: 30 s
"""


def test_the_schedule_shows_nothing_wrong() -> None:
    symptom = tried(yaml.safe_load(SCHEDULE), properties=()).symptom
    assert symptom is None, symptom.words
