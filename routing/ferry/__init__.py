"""The baseline of the Vinifera paper: one rendezvous node an attribute name, as in Ferry."""
