"""Sweeps: many runs of one scenario with other parameters and seeds, played as tasks and judged as they finish."""
