"""Scenario files, the driver and the command line."""
