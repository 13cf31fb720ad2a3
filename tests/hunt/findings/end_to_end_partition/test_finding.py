"""Found by `murmur hunt`: forgets what is over, eventually: b0 keeps 45 entries in DurableLog._live
though nothing is broken any more, and no node kept more than 0 at first, 5.352 s into the run

Shrunk from 5 brokers, 5 clients, 116 publications, 3 faults to 5 brokers, 5 clients, 113
publications, 1 faults. `murmur run` plays scenario.yaml, which has the same schedule.
"""

import yaml

from murmuration.hunt.symptoms import tried

SCHEDULE = """
name: schedule
runtime: virtual
seed: 5111
overlay:
  kind: chain
  brokers: 5
workload:
  kind: zipf
  clients: 5
  subscribers_per_actor: 2
  publishers: 2
  publications: 113
  rate_per_s: 40
  attributes: 2
  predicates: 1
  matching_rate: 0.5
  covered: 0.5
  resubscriptions: 10
broker:
  routing: multipath
  reliability: end_to_end
  parameters:
    end_to_end:
      pubends:
      - b0
      - b1
      backups:
        b0:
        - b2
        - b1
        b1:
        - b3
        - b0
      beat: 50 ms
      silence: 300 ms
links:
  delay: 2 ms
failure_detection:
  heartbeat: 100 ms
  timeout: 300 ms
  reconnect: 20 ms
drain:
  limit: 60 s
datagrams:
  delay: 1 ms
faults:
- at: 370 ms
  partition:
  - - b3
    - b4
    - c3
    - c4
  for: 2030 ms
recovery_limit: 30 s
"""


def test_the_schedule_shows_nothing_wrong() -> None:
    symptom = tried(yaml.safe_load(SCHEDULE), properties=()).symptom
    assert symptom is None, symptom.words
