"""The script that Spark's operator starts in the driver: ``penstock-pipeline``."""

from __future__ import annotations

import sys

from penstock_pipeline.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
