"""The command `murmur`: reads arguments, calls one of the other rooms, and prints."""
