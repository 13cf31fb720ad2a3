"""The command `murmur`, also as `python -m murmuration`."""

import sys

from murmuration.hidden_packages import hidden_package


def main() -> None:
    """Run the command line, if all of murmur's packages are those of this installation."""
    hidden = hidden_package()
    if hidden is not None:
        print(f"murmur: {hidden}", file=sys.stderr)
        sys.exit(2)
    from murmuration.commands.main import main as command_line

    command_line()


if __name__ == "__main__":
    main()
