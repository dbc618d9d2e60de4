"""The ``penstock`` command, and ``python -m penstock``."""

from __future__ import annotations

import gc
import sys

from penstock import add_packages
from penstock.output import protect


def main() -> int:
    """Runs the command with the arguments of the process; returns its exit status.

    What is made during the start stays, so there is no garbage to look for: the collector is turned
    on by what runs then, a tool at once, a server when it serves.
    """
    gc.disable()
    add_packages()
    protect()
    from penstock.cli import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
