"""The ``penstock`` command, and ``python -m penstock``."""

from __future__ import annotations

import sys

from penstock._path import add_packages


def main() -> int:
    """Runs the command with the arguments of the process; returns its exit status."""
    add_packages()
    from penstock.cli import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
