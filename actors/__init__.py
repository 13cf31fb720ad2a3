"""The live runtime: every broker and client is a Ray actor, every link a TCP connection between two of them."""
