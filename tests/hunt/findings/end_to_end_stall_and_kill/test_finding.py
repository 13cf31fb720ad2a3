"""Found by `murmur hunt`: forgets what is over, eventually: b1 keeps 49 entries in Submissions._ahead
though nothing is broken any more, and no node kept more than 0 at first, 5.676 s into the run

Shrunk from 4 brokers, 1 clients, 114 publications, 5 faults to 3 brokers, 1 clients, 54
publications, 2 faults. `murmur run` plays scenario.yaml, which has the same schedule.
"""

import yaml

from murmuration.hunt.symptoms import tried

SCHEDULE = """
name: schedule
runtime: virtual
seed: 837
overlay:
  kind: star
  brokers: 3
workload:
  kind: zipf
  clients: 1
  publishers: 1
  publications: 54
  rate_per_s: 40
  resubscriptions: 0
  covered: 0.5
  attributes: 2
  predicates: 1
  matching_rate: 0.5
  subscribers_per_actor: 1
broker:
  routing: cells
  reliability: end_to_end
  parameters:
    end_to_end:
      pubends:
      - b0
      backups:
        b0:
        - b1
        - b2
      beat: 50 ms
      silence: 300 ms
links:
  delay: 2 ms
  loss: 0.3
  duplication: 0.3
failure_detection:
  heartbeat: 100 ms
  timeout: 300 ms
  reconnect: 20 ms
drain:
  limit: 60 s
datagrams:
  delay: 1 ms
client_links:
  delay:
    uniform:
    - 500 us
    - 20 ms
  reordering_by: 100 ms
  loss: 0.3
density: 3
faults:
- at: 220 ms
  stall: b0
  for: 1339 ms
- at: 2935 ms
  kill_actor: c0
  for: 1200 ms
recovery_limit: 2 min
"""


def test_the_schedule_shows_nothing_wrong() -> None:
    symptom = tried(yaml.safe_load(SCHEDULE), properties=()).symptom
    assert symptom is None, symptom.words
