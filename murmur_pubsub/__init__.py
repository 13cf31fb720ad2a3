"""The vocabulary: events, filters, matching, the machine contract, the wire and the journal."""
