"""The pages of ``penstock top``: what is on them, and what keys do. There is no terminal here.

A page is asked for its lines, of which there are as many as fit, and told which key was pressed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.text import Text

from penstock.operate.groups import GroupReport, Rates, cells_of, verdict
from penstock.terminal import plural, shown
from server.delivery.health import FINE, PAUSED, TROUBLES
from server.runtime.quantities import duration

UP: Final = "up"
DOWN: Final = "down"
PAGE_UP: Final = "page up"
PAGE_DOWN: Final = "page down"
HOME: Final = "home"
END: Final = "end"
ENTER: Final = "enter"
BACK: Final = "back"
ERASE: Final = "erase"

KEYS: Final = "arrows move, Enter opens, Esc goes back, s sorts, / filters, q quits"

_HEADS: Final = ("lag", "pending", "oldest", "tries", "cons", "in/s", "read/s")
_STATE: Final = 11
"""How wide the first column is, for the longest state and a space."""
_LEAST: Final = 12
"""How wide names are at least."""
_STYLES: Final = {PAUSED: "yellow", FINE: "green"}

Order = Callable[[GroupReport], Any]

ORDERS: Final[dict[str, Order]] = {
    "trouble": lambda group: group.facts().order(),
    "oldest": lambda group: -(group.oldest or 0),
    "lag": lambda group: -(group.lag or 0),
    "pending": lambda group: -group.pending,
    "name": lambda group: (),
}
"""What groups can be sorted by, each also by name."""


class TopPage(Protocol):
    """Something that fills a terminal."""

    def press(self, key: str) -> None:
        """Does what a key is for."""

    def lines(self, width: int, height: int) -> list[Text]:
        """Return what to show: no more lines than ``height``."""


class RowCursor:
    """Which of some rows is chosen, and which is the first that is shown."""

    def __init__(self) -> None:
        self.at = 0
        self._first = 0
        self._room = 1

    def press(self, key: str, count: int) -> None:
        """Moves it among ``count`` rows, if the key is for that."""
        steps = {UP: -1, "k": -1, DOWN: 1, "j": 1, PAGE_UP: -self._room, PAGE_DOWN: self._room}
        step = steps.get(key, {HOME: -count, END: count}.get(key, 0))
        self.at = max(0, min(count - 1, self.at + step))

    def visible(self, count: int, room: int) -> range:
        """Return which rows are shown where there is room for so many."""
        self._room = max(1, room)
        self.at = max(0, min(count - 1, self.at))
        self._first = max(min(self._first, self.at), self.at - self._room + 1, 0)
        self._first = max(0, min(self._first, count - self._room))
        return range(self._first, min(count, self._first + self._room))


class GroupsPage:
    """All groups, each on a line."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._cursor = RowCursor()
        self._order = "trouble"
        self._groups: Sequence[GroupReport] = ()
        self._rates = Rates()
        self.filter = ""
        self.is_typing = False

    def put(self, groups: Sequence[GroupReport], rates: Rates) -> None:
        """Takes what was found; the group that was chosen stays so."""
        chosen = self.chosen
        self._groups, self._rates = groups, rates
        listed = [(each.stream, each.group) for each in self._listed()]
        if chosen is not None and self._cursor.at and (chosen.stream, chosen.group) in listed:
            self._cursor.at = listed.index((chosen.stream, chosen.group))

    def _listed(self) -> list[GroupReport]:
        found = [each for each in self._groups if self.filter in _name(each)]
        order = ORDERS[self._order]
        return sorted(found, key=lambda each: (order(each), each.stream, each.group))

    @property
    def chosen(self) -> GroupReport | None:
        """The group under the cursor, if there is one."""
        listed = self._listed()
        return listed[min(self._cursor.at, len(listed) - 1)] if listed else None

    def press(self, key: str) -> None:
        """Moves, sorts, or changes the filter."""
        if self.is_typing:
            self._type(key)
        elif key == "/":
            self.is_typing = True
        elif key == "s":
            names = [*ORDERS]
            self._order = names[(names.index(self._order) + 1) % len(names)]
        elif key == BACK:
            self.filter = ""
        else:
            self._cursor.press(key, len(self._listed()))

    def _type(self, key: str) -> None:
        if key in (ENTER, BACK):
            self.is_typing = False
            self.filter = self.filter if key == ENTER else ""
        elif key == ERASE:
            self.filter = self.filter[:-1]
        elif len(key) == 1:
            self.filter += key

    def lines(self, width: int, height: int) -> list[Text]:
        """A verdict, a head, the groups, and the keys."""
        listed = self._listed()
        head = Text(f"{self._server}: {verdict(self._groups)}", style="bold")
        rows = [_cells(group, self._rates) for group in listed]
        widths = [max(map(len, column)) + 1 for column in zip(_HEADS, *rows, strict=True)]
        names = max([cell_len(_name(each)) for each in listed], default=0)
        room = min(max(_LEAST, width - _STATE - sum(widths)), max(_LEAST, names))
        table = [_row("state", "stream / group", _HEADS, widths, room, "dim")]
        for at in self._cursor.visible(len(listed), height - 3):
            group = listed[at]
            line = _row(group.facts().state(), _name(group), rows[at], widths, room)
            if at == self._cursor.at:
                line.stylize("reverse")
            table.append(line)
        return _cropped([head, *table, self._foot(len(listed))], width)

    def _foot(self, count: int) -> Text:
        if self.is_typing:
            return Text(f"/{self.filter}\N{FULL BLOCK}  Enter keeps the filter, Esc ends it")
        some = f"{count} of {plural(len(self._groups), 'group')} with {self.filter!r}, "
        return Text(f"{some if self.filter else ''}by {self._order}: {KEYS}", style="dim")


def _name(group: GroupReport) -> str:
    return f"{shown(group.stream)} / {shown(group.group)}"


def _cells(group: GroupReport, rates: Rates) -> list[str]:
    return [*cells_of(group), *rates.get((group.stream, group.group), ("", ""))]


def _row(
    state: str, name: str, cells: Sequence[str], widths: Sequence[int], room: int, style: str = ""
) -> Text:
    line = Text(style=style)
    line.append(f"{state:{_STATE}}", "red" if state in TROUBLES else _STYLES.get(state, ""))
    line.append(set_cell_size(fitted(name, room), room))
    line.append("".join(map(str.rjust, cells, widths)))
    return line


def fitted(text: str, width: int) -> str:
    """Return a text that is no wider, without some of its middle if it is too long."""
    if cell_len(text) <= width:
        return text
    tail = (width - 1) // 2
    end = chop_cells(text[::-1], tail)[0][::-1] if tail else ""
    return f"{chop_cells(text, width - 1 - tail)[0]}\N{HORIZONTAL ELLIPSIS}{end}"


def _cropped(lines: list[Text], width: int) -> list[Text]:
    for line in lines:
        line.truncate(width, overflow="ellipsis")
    return lines


class ListedEntry(NamedTuple):
    """An entry of a group's pending entries list; ``idle`` in milliseconds."""

    entry_id: bytes
    consumer: bytes
    idle: int
    deliveries: int


class GroupPage:
    """A group: what is wrong with it, its consumers, and the first of its pending entries."""

    def __init__(
        self,
        group: GroupReport,
        consumers: Sequence[dict[str, Any]],
        pending: Sequence[ListedEntry],
        cursor: RowCursor | None = None,
    ) -> None:
        self.group = group
        self._consumers = consumers
        self._pending = pending
        self.cursor = cursor or RowCursor()

    @property
    def chosen(self) -> ListedEntry | None:
        """The entry under the cursor, if there is one."""
        return self._pending[min(self.cursor.at, len(self._pending) - 1)] if self._pending else None

    def press(self, key: str) -> None:
        """Moves among the entries."""
        self.cursor.press(key, len(self._pending))

    def lines(self, width: int, height: int) -> list[Text]:
        """What is wrong, the consumers that hold most, and as many entries as fit."""
        group = self.group
        found = [Text(f"{_name(group)}: {group.facts().state()}", style="bold")]
        found += [Text(f"  {each}", style="red") for each in group.troubles]
        most = sorted(self._consumers, key=lambda each: (-each["pending"], each["name"]))
        found.append(Text(plural(len(most), "consumer"), style="dim"))
        for each in most[: max(1, height // 4)]:
            asked = f"asked {duration(each['idle'])} ago"
            found.append(Text(f"  {shown(each['name'])}: {each['pending']:,} pending, {asked}"))
        found.append(Text(f"{group.pending:,} pending, the first by ID:", style="dim"))
        for at in self.cursor.visible(len(self._pending), height - len(found) - 1):
            found.append(_pending_line(self._pending[at], at == self.cursor.at))
        found.append(Text("Enter shows the entry, Esc goes back, q quits", style="dim"))
        return _cropped(found, width)


def _pending_line(entry: ListedEntry, is_chosen: bool) -> Text:
    holder = f"with {shown(entry.consumer)} for {duration(entry.idle)}"
    times = f"delivered {plural(entry.deliveries, 'time')}"
    text = f"  {shown(entry.entry_id)}  {holder if entry.consumer else 'with nobody'}, {times}"
    return Text(text, style="reverse" if is_chosen else "")


class EntryPage:
    """An entry with its fields."""

    def __init__(self, entry_id: bytes, fields: Sequence[tuple[bytes, bytes]] | None) -> None:
        self._entry_id = entry_id
        self._fields = fields
        self._cursor = RowCursor()

    def press(self, key: str) -> None:
        """Moves among the fields."""
        self._cursor.press(key, len(self._fields or ()))

    def lines(self, width: int, height: int) -> list[Text]:
        """Each field on a line."""
        found = [Text(shown(self._entry_id), style="bold")]
        if self._fields is None:
            found.append(Text("The entry has been deleted from the stream.", style="red"))
        fields = self._fields or ()
        for at in self._cursor.visible(len(fields), height - len(found) - 1):
            name, value = fields[at]
            found.append(Text(f"  {shown(name)}  {shown(value)}"))
        return _cropped([*found, Text("Esc goes back, q quits", style="dim")], width)
