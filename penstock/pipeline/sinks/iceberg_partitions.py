"""How an Iceberg table is partitioned: ``item``, ``day(at)``, ``bucket(16, item)``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from pyiceberg.table import Table

PLAIN: Final = ("year", "month", "day", "hour")
NUMBERED: Final = ("bucket", "truncate")
ALLOWED: Final = "a column, year(c), month(c), day(c), hour(c), bucket(n, c), truncate(n, c)"


class Partition(NamedTuple):
    """A column, and what is made of its values: nothing (``identity``) or a transform."""

    column: str
    transform: str = "identity"
    number: int = 0

    @property
    def of_iceberg(self) -> str:
        """The transform as Iceberg writes it: ``day``, ``bucket[16]``."""
        return f"{self.transform}[{self.number}]" if self.number else self.transform

    def make(self) -> Any:
        """The transform of pyiceberg."""
        from pyiceberg import transforms

        kind = getattr(transforms, f"{self.transform.capitalize()}Transform")
        return kind(self.number) if self.number else kind()


def partition(text: str) -> Partition:
    """A partition of the file; raises ValueError with what is allowed."""
    found = re.fullmatch(r"\s*(\w+)\s*\(\s*(?:(\d+)\s*,\s*)?([^,()]+?)\s*\)\s*", text)
    if found is None:
        if re.search(r"[(),]", text):
            raise ValueError(f"is '{text}'; allowed: {ALLOWED}")
        return Partition(text.strip())
    name, number, column = found[1].lower(), int(found[2] or 0), found[3]
    if name not in (NUMBERED if number else PLAIN):
        raise ValueError(f"is '{text}'; allowed: {ALLOWED}")
    return Partition(column, name, number)


def partitions_of(table: Table) -> list[Partition]:
    """How a table is partitioned; the transforms are Iceberg's, with their numbers."""
    names = {field.field_id: field.name for field in table.schema().fields}
    return [
        Partition(names.get(field.source_id, field.name), str(field.transform))
        for field in table.spec().fields
    ]
