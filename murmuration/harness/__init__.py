"""The test harness: a cluster that a program or a test steers step by step, with clients and faults by hand."""
