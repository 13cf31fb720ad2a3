"""The table of all systems: every pair of protocols that can run, under the same workloads, faults and judge."""
