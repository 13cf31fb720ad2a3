"""Papers: their tables and figures made again, beside what the paper printed."""
