"""What may be changed from the page, in steps: what is missing is asked for, the commands are
shown, then they run.

An action is made of what a form says, and is made anew when it is confirmed. If other commands came
of that than were shown, or what they are about is not as it was, nothing runs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

from protocol.encoder import bulk
from protocol.errors import CommandError
from server.config.policies import GROUP, read_settings
from server.delivery.group_ref import GroupRef
from server.web.page.drawing import Screen
from server.web.page.letters import (
    MOST_IDS,
    Letter,
    filtered_ids,
    letters_of,
    read_letter,
    seen_ids,
)
from server.web.page.page_request import (
    REDRIVE,
    PageRequest,
    Refused,
    consumer_url,
    group_url,
    letters_url,
    policy_command,
    stream_url,
)
from server.web.page.preview import id_of
from server.web.page.running import Action, Command, run
from server.web.page.sampling import rules_of
from server.web.page.stream_screen import identity_of
from server.web.page.wording import counted, id_text, is_text, kind_of, number, shown, size
from storage.engine import ids
from storage.engine.groups import Group
from storage.engine.log import EntryLog
from storage.engine.pending import Consumer, PendingEntry
from storage.engine.stream import Stream
from storage.errors import InvalidID
from storage.keyspace.databases import Database

MOST_BACK: Final = 10_000
"""How many entries a group can go back from the page."""

MOST_FIELDS: Final = 50
NEW_FIELDS: Final = 4
LONGEST: Final = 16 * 1024
"""How many fields of an entry can be edited, how many an entry has that is added from the page, and
how many bytes a value may have to be edited; longer ones stay as they are."""

MOST_CHOICES: Final = 200
"""How many consumers there are to choose from."""

BATCH: Final = 500
"""How many letters are moved or deleted in one transaction."""

_STEP: Final = 500


class Input(NamedTuple):
    """What is asked for before there is a command: a line, an area, or a choice; ``note`` stands in
    place of a field that stays as it is."""

    name: str
    label: str
    value: str = ""
    area: bool = False
    options: tuple[str, ...] = ()
    note: str = ""
    hint: str = ""


class Asked(Exception):
    """Something has to be said first."""

    def __init__(self, title: str, about: str, back: str, inputs: list[Input]) -> None:
        super().__init__(title)
        self.title = title
        self.about = about
        self.back = back
        self.inputs = inputs


async def act(request: PageRequest) -> Screen:
    """The screen of an action: what has to be said, what would run, or, once that is confirmed,
    what has run. Raises :class:`Refused` if it may not run, and nothing has changed then."""
    if not request.server.state.config.web_actions:
        raise Refused("This page is read-only: the setting web-actions is no.", 403)
    login = request.viewer.login
    if login is None or not login.sent(request.fields.secret("csrf")):
        raise Refused("This form does not come from a page that you were shown.", 403)
    kind = "edit" if request.fields.text("edit") else request.fields.text("kind")
    if kind not in _KINDS:
        raise Refused("There is no such action.", 400)
    try:
        action = await _KINDS[kind](request)
    except Asked as asked:
        return _screen(request, "fill", asked.title, asked.about, asked.back, asked.inputs)
    for batch in action.batches:
        for command in batch:
            request.require(*command)
            await request.pace.rest()
    confirmed = request.fields.text("confirm")
    if not confirmed:
        return _screen(request, "ask", action.title, action.about, action.back, [], action)
    if confirmed != action.digest():
        raise Refused("Something has changed since the command was shown: nothing was done.", 409)
    await run(request.server, request.viewer.user.name, request.peer, action)
    return _screen(request, "done", action.title, action.about, action.back, [], action)


def _screen(
    request: PageRequest,
    step: str,
    title: str,
    about: str,
    back: str,
    inputs: list[Input],
    action: Action | None = None,
) -> Screen:
    """One of the three steps, with the fields that the next one needs again."""
    left_out = {each.name for each in inputs} | {"csrf", "confirm", "filled"}
    kept = [pair for pair in request.fields.pairs if pair[0] not in left_out]
    if step == "ask":
        kept.append(("filled", "1"))
    given: dict[str, Any] = {"step": step, "about": about, "back": back, "kept": kept}
    given |= {"heading": title, "inputs": inputs, "action": action}
    return Screen("act.html", title, given)


# --- the position of a group -----------------------------------------------------------------


async def _move(request: PageRequest) -> Action:
    database, key, stream, group = request.group()
    to, by = request.fields.text("to"), request.fields.text("by")
    if not (to or by):
        at = id_text(group.last_id)
        raise Asked(
            f"Move the position of {shown(group.name)}",
            f"It is at {at}. Say where to, or by how many entries to go back.",
            group_url(database.index, key, group.name),
            [
                Input("to", "To a time (UTC) or ID", hint="2026-01-31 12:00"),
                Input("by", "Or back by this many entries", hint="100"),
            ],
        )
    if to:
        group = _seen_group(request)
        first = identity_of(to)
        position = first - 1 if first else ids.MIN
        about = f"Entries from {id_text(first)} on will be delivered (again)."
        return _set_position(request, group, position, about)
    count = request.fields.whole("by", 0, 0, MOST_BACK + 1)
    if not 1 <= count <= MOST_BACK:
        raise Refused(f"A group can go back by 1 to {number(MOST_BACK)} entries.", 400)
    position, passed = await _before(request, stream.log, group.last_id, count)
    about = f"The last {number(passed)} entries before the position will be delivered again."
    return _set_position(request, _seen_group(request), position, about)


async def _before(request: PageRequest, log: EntryLog, position: int, by: int) -> tuple[int, int]:
    """The position so many entries before another one, and how many there were."""
    passed, high = 0, position
    while passed < by and high > ids.MIN:
        entries = log.reverse(ids.MIN, high, min(_STEP, by - passed))
        if not entries:
            break
        passed += len(entries)
        high = id_of(entries[-1]) - 1
        await request.pace.rest()
    rest = log.reverse(ids.MIN, high, 1)
    return (id_of(rest[0]) if rest else ids.MIN), passed


def _seen_group(request: PageRequest) -> Group:
    """The group, if it is still where it was seen."""
    _, _, _, group = request.group()
    if request.fields.text("seen") != id_text(group.last_id):
        raise Refused(
            f"The group has moved on to {id_text(group.last_id)} since you saw it: nothing was"
            " done.",
            409,
        )
    return group


def _set_position(request: PageRequest, group: Group, position: int, about: str) -> Action:
    database, key, _, _ = request.group()
    command = [b"XGROUP", b"SETID", key, group.name, ids.text(position)]
    back = group_url(database.index, key, group.name)
    title = f"Move the position of {shown(group.name)}"
    return Action(title, about, database.index, [[command]], back)


# --- pending entries and consumers -----------------------------------------------------------


class _Chosen(NamedTuple):
    """Pending entries of a group that a form names, or all of a consumer's."""

    ref: GroupRef
    entries: list[PendingEntry]
    consumer: Consumer | None

    @property
    def texts(self) -> list[bytes]:
        return [ids.text(each.id) for each in self.entries]

    @property
    def said(self) -> str:
        return counted(len(self.entries), "entry", "entries")

    @property
    def state(self) -> bytes:
        """Who has them, and how often they were delivered."""
        return b"".join(
            b"%d %d %s " % (each.id, each.deliveries, bulk(each.owner.name if each.owner else b""))
            for each in self.entries
        )

    @property
    def back(self) -> str:
        where = self.ref.db.index, self.ref.key, self.ref.group.name
        return consumer_url(*where, self.consumer.name) if self.consumer else group_url(*where)

    def action(self, title: str, about: str, *commands: Command, grave: bool = False) -> Action:
        """An action with them."""
        db = self.ref.db.index
        return Action(title, about, db, [list(commands)], self.back, self.state, grave)


def _chosen(request: PageRequest, none: bool = False) -> _Chosen:
    """The entries; raises :class:`Refused` if one is not pending any more, or if there are none
    unless ``none`` may be."""
    database, key, stream, group = request.group()
    request.require(b"XPENDING", key, group.name)
    consumer = group.consumers.get(request.fields.name("consumer"))
    if request.fields.text("consumer") and consumer is None:
        raise Refused("The consumer is not there any more.", 409)
    if consumer is not None and not request.fields.every("id"):
        chosen = group.pending.owned_ids(consumer, ids.MIN, MOST_IDS)
    else:
        chosen = seen_ids(request.fields)
    entries = []
    for each in chosen:
        entry = group.pending.get(each)
        if entry is None:
            raise Refused(f"{id_text(each)} is not pending any more: nothing was done.", 409)
        entries.append(entry)
    if not entries and not none:
        raise Refused("There is nothing to do: it holds no entries.", 409)
    return _Chosen(GroupRef(database, key, stream, group), entries, consumer)


async def _acknowledge(request: PageRequest) -> Action:
    chosen = _chosen(request)
    command = [b"XACK", chosen.ref.key, chosen.ref.group.name, *chosen.texts]
    about = "They count as done: the group does not get them again."
    return chosen.action(f"Acknowledge {chosen.said}", about, command, grave=True)


async def _claim(request: PageRequest) -> Action:
    chosen = _chosen(request)
    group = chosen.ref.group
    name = request.fields.secret("to")
    title = f"Claim {chosen.said} for another consumer"
    if not name:
        others = (each for each in group.consumers.values() if each is not chosen.consumer)
        options = tuple(shown(each.name) for each in islice(others, MOST_CHOICES))
        about = "Each counts as one more delivery."
        raise Asked(title, about, chosen.back, [Input("to", "New consumer", options=options)])
    command = [b"XCLAIM", chosen.ref.key, group.name, name.encode(), b"0", *chosen.texts]
    about = f"They go to {name!r}, which gets them when it reads its pending entries again."
    return chosen.action(title, about, command)


def _release(chosen: _Chosen) -> Command:
    """Gives entries back; those that are with nobody are due at once then."""
    command = [b"XNACK", chosen.ref.key, chosen.ref.group.name, b"SILENT", b"IDS"]
    command += [b"%d" % len(chosen.entries), *chosen.texts]
    nobody = all(each.owner is None for each in chosen.entries)
    return [*command, b"RETRYCOUNT", b"0"] if nobody else command


async def _give_back(request: PageRequest) -> Action:
    chosen = _chosen(request)
    about = "The next reader of the group gets them; the delivery does not count."
    return chosen.action(f"Give {chosen.said} back", about, _release(chosen))


async def _bury(request: PageRequest) -> Action:
    chosen = _chosen(request)
    ref = chosen.ref
    rules = rules_of(request.server, ref)
    if rules is None or not rules.dead_letter:
        raise Refused("The group has no policy dead-letter, so there is nowhere to go.", 409)
    command = [b"XNACK", ref.key, ref.group.name, b"FATAL", b"IDS"]
    command += [b"%d" % len(chosen.entries), *chosen.texts]
    about = f"They move to {shown(rules.dead_letter)} with the reason fatal."
    return chosen.action(f"Make dead letters of {chosen.said}", about, command, grave=True)


async def _remove(request: PageRequest) -> Action:
    chosen = _chosen(request, none=True)
    ref, consumer = chosen.ref, chosen.consumer
    if consumer is None:
        raise Refused("Choose a consumer to remove.", 400)
    if consumer.owned > len(chosen.entries):
        raise Refused(f"It holds more than {number(MOST_IDS)} entries: give them back first.", 409)
    commands = [_release(chosen)] if chosen.entries else []
    commands.append([b"XGROUP", b"DELCONSUMER", ref.key, ref.group.name, consumer.name])
    about = f"The {chosen.said} that it holds are given back first." if chosen.entries else ""
    action = chosen.action(f"Remove {shown(consumer.name)}", about, *commands, grave=True)
    return action._replace(back=group_url(ref.db.index, ref.key, ref.group.name))


# --- policies --------------------------------------------------------------------------------


def _to_pause(value: bytes) -> _Maker:
    async def action(request: PageRequest) -> Action:
        database, key, _, group = request.group()
        paused = value == b"yes"
        command = policy_command(b"SET", key, group.name, b"paused", value)
        about = (
            "Its readers wait until it is resumed." if paused else "Its readers get entries again."
        )
        back = group_url(database.index, key, group.name)
        title = f"{'Pause' if paused else 'Resume'} {shown(group.name)}"
        return Action(
            title, about, database.index, [[command]], back, group.policy.get(b"paused", b"")
        )

    return action


async def _set_policies(request: PageRequest) -> Action:
    database, key, stream, group = request.group()
    back = group_url(database.index, key, group.name)
    title = f"Policies of {shown(group.name)}"
    ref = GroupRef(database, key, stream, group)
    if not request.fields.text("filled"):
        others = request.server.policies.settings_of_group(ref, {})
        inputs = [
            Input(
                f"set {name.decode()}",
                name.decode(),
                shown(group.policy.get(name, b"")) if name in group.policy else "",
                hint=shown(others[name]) if name in others else policy.values.replace("`", ""),
            )
            for name, policy in GROUP.items()
        ]
        about = "An empty field means the policy of the stream or the configuration."
        raise Asked(title, about, back, [*inputs])
    words: list[bytes] = []
    gone: list[bytes] = []
    for name in GROUP:
        value = request.fields.text(f"set {name.decode()}").encode()
        if value and group.policy.get(name) != value:
            words += [name, value]
        elif not value and name in group.policy:
            gone.append(name)
    try:
        read_settings(words, GROUP)
    except CommandError as error:
        raise Refused(error.text.removeprefix("ERR "), 400) from None
    commands = [policy_command(b"DEL", key, group.name, *gone)] if gone else []
    commands += [policy_command(b"SET", key, group.name, *words)] if words else []
    if not commands:
        raise Refused("No policy was changed.", 400)
    state = b"".join(b"%s=%s " % pair for pair in sorted(group.policy.items()))
    return Action(title, "They take effect at once.", database.index, [commands], back, state)


# --- entries ---------------------------------------------------------------------------------


async def _add(request: PageRequest) -> Action:
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
    return Action(title, about, database.index, [[[b"XADD", key, b"*", *items]]], back)


def _typed(request: PageRequest, letter: Letter | None) -> list[bytes]:
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


async def _edit(request: PageRequest) -> Action:
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
    return Action(title, about, database.index, [commands], back, payload)


def _inputs_of(letter: Letter) -> Iterator[Input]:
    for at, (name, value) in enumerate(zip(letter.fields[::2], letter.fields[1::2], strict=True)):
        yield Input(f"name{at}", f"Name of field {at + 1}", name.decode(errors="replace"))
        if _editable(value):
            yield Input(f"value{at}", "Value", value.decode(), area=True)
        else:
            kind = kind_of(value) or "long or binary"
            yield Input(f"value{at}", "Value", note=f"{size(len(value))}, {kind}: stays as it is")


async def _trim(request: PageRequest) -> Action:
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
    return Action(title, about, database.index, [[command]], back, grave=True)


# --- dead letters ----------------------------------------------------------------------------


async def _letters(request: PageRequest) -> tuple[Database, bytes, Stream, list[int]]:
    """The dead letters that a form names, or all that fit its filter."""
    database, key, stream = request.stream()
    request.require(b"XRANGE", key, b"-", b"+")
    if request.fields.text("all"):
        return database, key, stream, await filtered_ids(request, stream.log)
    return database, key, stream, seen_ids(request.fields)


async def _redrive(request: PageRequest) -> Action:
    database, key, stream, chosen = await _letters(request)
    batches: list[list[Command]] = []
    count = to_groups = 0
    for at in range(0, len(chosen), BATCH):
        commands, grouped = _redrive_some(request, database, key, stream, chosen[at : at + BATCH])
        batches.append(commands)
        count, to_groups = count + len(chosen[at : at + BATCH]), to_groups + grouped
        await request.pace.rest()
    back = letters_url(database.index, key)
    return Action(
        f"Redrive {counted(count, 'dead letter')}",
        _about_redrive(key, count, to_groups),
        database.index,
        batches,
        back,
    )


def _redrive_some(
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
    if to_groups:
        commands.append([*REDRIVE, key, *to_groups])
    return commands, len(to_groups)


async def _drop(request: PageRequest) -> Action:
    database, key, stream, chosen = await _letters(request)
    for entry_id in chosen:
        payload = stream.log.get(entry_id)
        if payload is None or read_letter(payload) is None:
            raise Refused(f"{id_text(entry_id)} is not there any more.", 409)
    texts = [ids.text(each) for each in chosen]
    batches = [[[b"XDEL", key, *texts[at : at + BATCH]]] for at in range(0, len(texts), BATCH)]
    title = f"Delete {counted(len(texts), 'dead letter')}"
    back, about = letters_url(database.index, key), "They are gone for good."
    return Action(title, about, database.index, batches, back, grave=True)


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


_Maker = Callable[[PageRequest], Awaitable[Action]]

_KINDS: Final[dict[str, _Maker]] = {
    "ack": _acknowledge,
    "add": _add,
    "back": _give_back,
    "bury": _bury,
    "claim": _claim,
    "drop": _drop,
    "edit": _edit,
    "pause": _to_pause(b"yes"),
    "policy": _set_policies,
    "position": _move,
    "redrive": _redrive,
    "remove": _remove,
    "resume": _to_pause(b"no"),
    "trim": _trim,
}
