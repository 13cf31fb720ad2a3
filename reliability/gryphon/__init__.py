"""Guaranteed delivery with knowledge and curiosity streams."""
