"""The laboratory: what the reproductions of several papers share."""
