"""Found with the mend taken out, and shrunk to 8 brokers, 5 clients, 44 publications, 2 faults: duplicates.

`murmur run` plays scenario.yaml, which has the same schedule.
"""

import yaml

from murmuration.hunt.symptoms import tried

SCHEDULE = """
name: schedule
runtime: virtual
seed: 9755
overlay:
  kind: structured
  brokers: 8
  probe: 200 ms
  probe_timeout: 100 ms
  leaf_set: 16
  identifiers:
  - 32769
  - 32763
  - 32762
  - 32787
  - 32785
  - 32783
  - 32770
  - 32752
workload:
  kind: zipf
  clients: 5
  subscribers_per_actor: 1
  publishers: 2
  publications: 44
  rate_per_s: 10
  attributes: 2
  predicates: 1
  matching_rate: 0.5
  resubscriptions: 0
  covered: 0.5
broker:
  routing: rpf
  reliability: best_effort
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
- at: 80 ms
  partition:
  - - b1
    - b2
  for: 200 ms
- at: 80 ms
  stall: b2
  for: 600 ms
"""


def test_the_schedule_shows_nothing_wrong() -> None:
    symptom = tried(yaml.safe_load(SCHEDULE), properties=()).symptom
    assert symptom is None, symptom.words
