"""``python -m server`` in a checkout is the ``penstock`` command."""

from __future__ import annotations

import sys

from penstock.__main__ import main

sys.exit(main())
