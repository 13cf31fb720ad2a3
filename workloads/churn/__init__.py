"""Churn: which nodes are up when, from availability traces or a generator fitted to one, as starts and kills of
nodes."""
