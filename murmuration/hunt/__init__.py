"""Schedules: random scenarios with random faults, drawn from a seed, played in virtual time and judged."""
