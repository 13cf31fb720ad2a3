"""Identifier range based routing (Wang, Jin, Wei and Li): filters by ranges of identifiers, not by neighbours."""
