"""The live runtime: every broker and client is a Ray actor, every link a TCP connection between two of them."""

import os

# Ray tells the driver's standard output of every worker that dies; here they die on purpose, and the run says so
# itself. Ray reads this when it is imported.
os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", "A worker died or was killed|Raylet is terminated")
