"""The virtual runtime in a web browser: the same code under WebAssembly, with tasks that a judge decides."""
