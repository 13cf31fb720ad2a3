"""Scenario files as data: read, checked in full, every mistake named with file and line."""
