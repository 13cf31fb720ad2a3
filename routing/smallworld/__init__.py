"""A gossip overlay on a ring of identifiers: what Vinifera and its Ferry-like baseline stand on."""
