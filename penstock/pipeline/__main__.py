"""``python -m penstock.pipeline``, and the script for ``spark-submit``."""

from __future__ import annotations

import sys

from penstock.pipeline.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
