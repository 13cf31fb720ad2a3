"""Routing over a tree of cells of redundant brokers, as guaranteed delivery needs it."""
