"""Making values of the kinds that are named tuples, where it has to be quick."""

from __future__ import annotations

from typing import Final

make: Final = tuple.__new__
"""Makes one from its kind and a tuple of all its values. Calling the kind does the same in up to
three times as long: what is made for every command or every entry is made like this."""
