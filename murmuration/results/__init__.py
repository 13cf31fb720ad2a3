"""Runs for programs: play one, have it judged, and load what happened as tables."""
