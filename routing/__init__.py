"""Routing: to which neighbours an event goes."""
