"""Pastry, the structured overlay that IRBR, Scribe and reverse path forwarding route over (Middleware 2001)."""
