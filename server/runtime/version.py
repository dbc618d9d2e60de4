"""What the server says it is."""

from __future__ import annotations

from typing import Final

PENSTOCK_VERSION: Final = "0.1.0"
"""The release of this program."""

REDIS_VERSION: Final = "8.10.0"
"""The release of Redis whose streams are served; clients decide by it what they may use."""
