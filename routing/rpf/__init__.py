"""Reverse path forwarding with covering over Pastry."""
