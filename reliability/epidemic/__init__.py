"""Epidemic recovery of lost events: push, pulls and their combination."""
