"""Reliability: what is tagged, cached, acknowledged and asked for again; and the broker that carries it."""
