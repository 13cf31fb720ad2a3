"""Exactly once over any overlay: routing carries events, and the two ends see to it that none is missing."""
