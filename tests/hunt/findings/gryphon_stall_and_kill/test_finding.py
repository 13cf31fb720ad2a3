"""Found by `murmur hunt`: forgets what is over, eventually: b1 keeps 41 entries in Submissions._ahead
though nothing is broken any more, and no node kept more than 0 at first, 6.099 s into the run

Shrunk from 4 brokers, 4 clients, 134 publications, 12 faults to 3 brokers, 4 clients, 106
publications, 3 faults. `murmur run` plays scenario.yaml, which has the same schedule.
"""

import yaml

from murmuration.hunt.symptoms import tried

SCHEDULE = """
name: schedule
runtime: virtual
seed: 3848
overlay:
  kind: star
  brokers: 3
workload:
  kind: zipf
  clients: 4
  subscribers_per_actor: 2
  publishers: 2
  publications: 106
  rate_per_s: 40
  attributes: 2
  predicates: 1
  matching_rate: 0.5
  covered: 0.5
broker:
  routing: cells
  reliability: gryphon
  parameters:
    gryphon:
      order: publisher
      nrt: 500 ms
      sit: 100 ms
      forgetting: 50 ms
      receive_cache: 20
      window: 5
links:
  delay: 2 ms
  reordering: 0.3
failure_detection:
  heartbeat: 100 ms
  timeout: 300 ms
  reconnect: 20 ms
drain:
  limit: 60 s
faults:
- at: 80 ms
  stall: c1
  for: 1976 ms
- at: 1761 ms
  link:
  - c1
  - b1
  loss: 0.3
  duplication: 0.3
  reordering: 0.3
  for: 3000 ms
- at: 3433 ms
  kill: c1
  for: 600 ms
recovery_limit: 30 s
"""


def test_the_schedule_shows_nothing_wrong() -> None:
    symptom = tried(yaml.safe_load(SCHEDULE), properties=()).symptom
    assert symptom is None, symptom.words
