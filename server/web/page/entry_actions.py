"""Acts on entries: add, trim, and what becomes of dead letters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from server.runtime.quantities import size
from server.web.page.letters import (
    ShownLetter,
    filtered_ids,
    letters_of,
    read_letter,
    seen_ids,
)
from server.web.page.page_request import (
    REDRIVE,
    PageRequest,
    Refused,
    letters_url,
    stream_url,
)
from server.web.page.running import Asked, Command, Input, Maker, PageAction
from server.web.page.wording import counted, id_text, is_text, kind_of, shown
from storage.engine import ids
from storage.engine.stream import Stream
from storage.errors import InvalidID
from storage.keyspace.databases import Database

MOST_FIELDS: Final = 50
NEW_FIELDS: Final = 4
LONGEST: Final = 16 * 1024
"""How many fields of an entry can be edited, how many an entry has that is added from the page, and
how many bytes a value may have to be edited; longer ones stay as they are."""

BATCH: Final = 500
"""How many letters are moved or deleted in one transaction."""

# --- entries ---------------------------------------------------------------------------------


async def _add(request: PageRequest) -> PageAction:
    database, key, _ = request.stream()
    back, title = stream_url(database.index, key), f"Add an entry to {shown(key)}"
    if not request.fields.text("filled"):
        pairs = [
            Input(f"{part}{at}", f"{part.capitalize()} {at + 1}", area=part == "value")
            for at in range(NEW_FIELDS)
            for part in ("name", "value")
        ]
        raise Asked(title, "Every group of the stream gets it.", back, pairs)
    items = _typed(request, None)
    if not items:
        raise Refused("An entry needs at least one field with a name.", 400)
    about = "Every group of the stream gets it."
    return PageAction(title, about, database.index, [[[b"XADD", key, b"*", *items]]], back)


def _typed(request: PageRequest, letter: ShownLetter | None) -> list[bytes]:
    """The names and values that were typed; of a letter those stay that could not be edited, and
    ends of lines are what they were."""
    fields, items = request.fields, []
    olds = [] if letter is None else letter.fields[1::2]
    for at in range(MOST_FIELDS if letter is not None else NEW_FIELDS):
        name, value = fields.secret(f"name{at}").encode(), fields.secret(f"value{at}").encode()
        if not name:
            continue
        old = olds[at] if at < len(olds) else b""
        if at < len(olds) and not _editable(old):
            value = old
        elif b"\r\n" not in old:
            value = value.replace(b"\r\n", b"\n")
        items += [name, value]
    return items


def _editable(value: bytes) -> bool:
    return len(value) <= LONGEST and is_text(value)


async def _edit(request: PageRequest) -> PageAction:
    database, key, stream = request.stream()
    request.require(b"XRANGE", key, b"-", b"+")
    text = request.fields.text("edit") or request.fields.text("id")
    try:
        entry_id = ids.parse(text.encode())
    except InvalidID:
        raise Refused("That is not the ID of an entry.", 400) from None
    [(_, letter)] = letters_of(stream, [entry_id])
    _need_stream(database, letter.origin)
    back = letters_url(database.index, key)
    title = "Edit and resend"
    if len(letter.fields) > 2 * MOST_FIELDS:
        raise Refused(f"It has more than {MOST_FIELDS} fields: redrive it as it is.", 400)
    to = shown(letter.origin)
    about = f"The edited entry is added to {to}, where every group gets it; the letter is deleted."
    if not request.fields.text("filled"):
        raise Asked(title, about, back, list(_inputs_of(letter)))
    items = _typed(request, letter)
    if not items:
        raise Refused("An entry needs at least one field with a name.", 400)
    commands = [[b"XADD", letter.origin, b"*", *items], [b"XDEL", key, ids.text(entry_id)]]
    payload = stream.log.get(entry_id) or b""
    return PageAction(title, about, database.index, [commands], back, payload)


def _inputs_of(letter: ShownLetter) -> Iterator[Input]:
    for at, (name, value) in enumerate(zip(letter.fields[::2], letter.fields[1::2], strict=True)):
        yield Input(f"name{at}", f"Name of field {at + 1}", name.decode(errors="replace"))
        if _editable(value):
            yield Input(f"value{at}", "Value", value.decode(), area=True)
        else:
            kind = kind_of(value) or "long or binary"
            yield Input(f"value{at}", "Value", note=f"{size(len(value))}, {kind}: stays as it is")


async def _trim(request: PageRequest) -> PageAction:
    database, key, stream = request.stream()
    back, title = stream_url(database.index, key), f"Trim {shown(key)}"
    if not request.fields.text("to"):
        held = counted(stream.log.length, "entry", "entries")
        about = f"It has {held}; the oldest are deleted for good."
        raise Asked(title, about, back, [Input("to", "How many of the newest to keep")])
    keep = request.fields.whole("to", -1, 0, 10**15)
    if keep < 0:
        raise Refused("The number of entries to keep is 0 or more.", 400)
    gone = max(0, stream.log.length - keep)
    went = counted(gone, "entry is", "entries are")
    about = f"{went} deleted for good, whether or not groups have read them."
    command = [b"XTRIM", key, b"MAXLEN", b"%d" % keep]
    noun = "entry was deleted", "entries were deleted"
    return PageAction(title, about, database.index, [[command]], back, grave=True, noun=noun)


# --- dead letters ----------------------------------------------------------------------------


async def _letters(request: PageRequest) -> tuple[Database, bytes, Stream, list[int]]:
    """The dead letters that a form names, or all that fit its filter."""
    database, key, stream = request.stream()
    request.require(b"XRANGE", key, b"-", b"+")
    if request.fields.text("all"):
        return database, key, stream, await filtered_ids(request, stream.log)
    return database, key, stream, seen_ids(request.fields)


async def _redrive(request: PageRequest) -> PageAction:
    database, key, stream, chosen = await _letters(request)
    batches: list[list[Command]] = []
    count = to_groups = 0
    for at in range(0, len(chosen), BATCH):
        some = chosen[at : at + BATCH]
        commands, grouped = await _redrive_some(request, database, key, stream, some)
        batches.append(commands)
        count, to_groups = count + len(some), to_groups + grouped
    back = letters_url(database.index, key)
    return PageAction(
        f"Redrive {counted(count, 'dead letter')}",
        _about_redrive(key, count, to_groups),
        database.index,
        batches,
        back,
        noun=("dead letter went back", "dead letters went back"),
        total=count,
    )


async def _redrive_some(
    request: PageRequest, database: Database, key: bytes, stream: Stream, chosen: list[int]
) -> tuple[list[Command], int]:
    """The commands for some letters, and how many of them go back to a group."""
    commands: list[Command] = []
    to_groups: list[bytes] = []
    for entry_id, letter in letters_of(stream, chosen):
        _need_stream(database, letter.origin)
        if letter.group is None:
            commands.append([b"XADD", letter.origin, b"*", *letter.fields])
            commands.append([b"XDEL", key, ids.text(entry_id)])
        else:
            _need_group(database, letter.origin, letter.group)
            # The command itself asks for no right to the stream that it adds to.
            request.require(b"XADD", letter.origin, b"*", *letter.fields)
            to_groups.append(ids.text(entry_id))
        await request.pace.rest()
    if to_groups:
        commands.append([*REDRIVE, key, *to_groups])
    return commands, len(to_groups)


async def _drop(request: PageRequest) -> PageAction:
    database, key, stream, chosen = await _letters(request)
    for entry_id in chosen:
        payload = stream.log.get(entry_id)
        if payload is None or read_letter(payload) is None:
            raise Refused(f"{id_text(entry_id)} is not there any more.", 409)
        await request.pace.rest()
    texts = [ids.text(each) for each in chosen]
    batches = [[[b"XDEL", key, *texts[at : at + BATCH]]] for at in range(0, len(texts), BATCH)]
    title = f"Delete {counted(len(texts), 'dead letter')}"
    back, about = letters_url(database.index, key), "They are gone for good."
    noun, count = ("dead letter was deleted", "dead letters were deleted"), len(texts)
    return PageAction(title, about, database.index, batches, back, b"", True, noun, count)


def _about_redrive(key: bytes, count: int, to_groups: int) -> str:
    """What becomes of so many dead letters, of which so many come from policies of groups."""
    said = []
    if to_groups:
        said.append(
            f"{counted(to_groups, 'dead letter')} will go back to the group: as pending entries"
            " with no delivery counted, or as new entries if the stream has lost them."
        )
    if count > to_groups:
        said.append(
            f"{counted(count - to_groups, 'dead letter')} will be added to the stream of origin,"
            " without the fields that were added."
        )
    return f"{' '.join(said)} They are removed from {shown(key)}."


def _need_group(database: Database, origin: bytes, group: bytes) -> None:
    """Raises :class:`Refused` where a letter has no group to go back to."""
    value = database.get(origin)
    if not isinstance(value, Stream) or group not in value.groups:
        raise Refused(f"The stream {shown(origin)} has no group {shown(group)} any more.", 409)


def _need_stream(database: Database, origin: bytes) -> None:
    """Raises :class:`Refused` where nothing can be added: a command that fails in a transaction
    does not stop the others, which would remove the letter."""
    value = database.get(origin)
    if value is not None and not isinstance(value, Stream):
        raise Refused(f"{shown(origin)} is not a stream.", 409)
    if value is not None and value.last_id == ids.MAX:
        raise Refused(f"{shown(origin)} takes no more entries.", 409)


KINDS: Final[dict[str, Maker]] = {
    "add": _add,
    "drop": _drop,
    "edit": _edit,
    "redrive": _redrive,
    "trim": _trim,
}
