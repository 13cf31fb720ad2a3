"""`python -m murmuration`: the command `murmur`."""

from murmuration.commands.main import main

main()
