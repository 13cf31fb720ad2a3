"""Benchmarks: each prints a table of ratios within one run. `python -m benchmarks` runs them all."""
