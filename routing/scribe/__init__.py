"""Scribe made content-based: one rendezvous tree over Pastry with a filter at every node of it."""
