"""The virtual-time runtime: the same machines in one process, a function of scenario and seed, bit for bit."""
