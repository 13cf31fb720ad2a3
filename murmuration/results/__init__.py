"""Runs that were played: what the judge says of them, and what happened, as tables."""
