"""What a scenario stands for: its overlay, workload, protocols and faults, as plain data for a runtime."""
