"""Durable subscriptions over guaranteed delivery: a subscriber that was away gets what it missed, in order, once."""
