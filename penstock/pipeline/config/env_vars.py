"""Values from the environment: ``${NAME}`` and ``${NAME:-default}`` in texts of the file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_REFERENCE: Final = re.compile(r"\$\$|\$\{(?:([A-Za-z_]\w*)(?::-([^}]*))?)?\}?")


def expand(text: str, environment: Mapping[str, str]) -> str:
    """The text with each reference replaced; ``$$`` is a dollar sign.

    Raises ValueError for a variable that is not set and has no default, and for a bad reference.
    """

    def value(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$"
        if found[1] is None or not found[0].endswith("}"):
            raise ValueError(
                f"'{found[0]}' is no reference; allowed: ${{NAME}}, ${{NAME:-default}}"
            )
        given = environment.get(found[1], found[2])
        if given is None:
            raise ValueError(f"the environment variable {found[1]} is not set")
        return given

    return _REFERENCE.sub(value, text)
