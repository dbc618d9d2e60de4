"""``python -m server`` is the ``penstock`` command."""

from __future__ import annotations

import sys

from penstock.cli import main

sys.exit(main())
