"""What may be claimed in a group with policies, by whatever command claims."""

from __future__ import annotations

from server.delivery.place import GroupPlace
from server.delivery.reading import bury_exhausted
from storage.engine.pending import PendingEntry


class Refusals:
    """Refuses entries that nobody may have yet, and those that were delivered as often as may be
    if claiming them is ``counting`` as a delivery; these are then dead letters."""

    __slots__ = ("_counting", "_exhausted", "_place")

    def __init__(self, place: GroupPlace, counting: bool) -> None:
        self._place = place
        self._counting = counting
        self._exhausted: list[PendingEntry] = []

    def refuses(self, identity: int, entry: PendingEntry) -> bool:
        """Whether an entry that could be claimed is not."""
        agenda = self._place.agenda
        if agenda.holds(entry, self._place.now):
            return True
        if self._counting and agenda.rules.is_exhausted(entry.deliveries):
            self._exhausted.append(entry)
            return True
        return False

    @property
    def allows_force(self) -> bool:
        """Whether entries may be claimed that are not pending: not where policies say which of them
        are delivered when."""
        return not self._place.agenda.rules.selects

    def bury(self) -> None:
        """Moves those that were delivered too often to the dead letters."""
        if self._exhausted:
            bury_exhausted(self._place, self._exhausted)
