"""Ports that are free on this computer."""

import socket


def free_port() -> int:
    """One on which nobody listens now."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])
