"""The vocabulary of content-based publish/subscribe: events, filters, matching, the machine contract, wire and journal."""
