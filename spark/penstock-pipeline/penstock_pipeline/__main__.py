"""The command ``penstock-pipeline``, ``python -m penstock_pipeline``, and the script for
``spark-submit``."""

from __future__ import annotations

import sys

from penstock_pipeline.cli import main as run
from penstock_pipeline.output import protect, status


def main() -> int:
    """Run a command with the arguments of the process; return the exit status."""
    protect()
    return status(run(sys.argv[1:]))


if __name__ == "__main__":
    sys.exit(main())
