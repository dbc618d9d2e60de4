"""What may be changed from the page, in two steps: the commands are shown first, then they run.

An action is made of what a form says, and is made anew when it is confirmed. If other commands came
of that than were shown, because something has changed meanwhile, nothing runs. The commands go the
way of a client's: through the dispatcher, with a session of the user who has logged in, so whatever
is checked, noted and written of a client's commands is of these.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import Final, NamedTuple

from penstock.html.document import notice
from penstock.html.markup import Html, joined, tag
from protocol.encoder import bulk
from server.net.admission import farewell
from server.road.session import Session
from server.services import Services
from server.web.page.document import csrf_field, hidden
from server.web.page.letters import letters_of, seen_ids
from server.web.page.page_request import PageRequest, Refused, group_url, packed, url
from server.web.page.preview import id_of
from server.web.page.stream_screen import identity_of
from server.web.page.wording import id_text, number, shown
from storage.engine import ids
from storage.engine.groups import Group
from storage.engine.log import EntryLog
from storage.engine.stream import Stream
from storage.keyspace.databases import Database

MOST_BACK: Final = 10_000
"""How many entries a group can go back from the page."""

_STEP: Final = 500


class Action(NamedTuple):
    """Commands that are to run in a database, all or none; what they do; and where that is seen."""

    title: str
    about: str
    db: int
    commands: list[list[bytes]]
    back: str

    def digest(self) -> str:
        """What distinguishes the commands from all others."""
        whole = b"".join(
            b"*%d\r\n" % len(command) + b"".join(map(bulk, command)) for command in self.commands
        )
        return hashlib.sha256(b"%d " % self.db + whole).hexdigest()


async def act(request: PageRequest) -> tuple[str, Html]:
    """The screen of an action: what would run, or, once that is confirmed, what has run; with its
    title. Raises :class:`Refused` if it may not run, and nothing has changed then."""
    if not request.server.state.config.web_actions:
        raise Refused("This page is read-only: the setting web-actions is no.", 403)
    login = request.viewer.login
    if login is None or not login.sent(request.fields.secret("csrf")):
        raise Refused("This form does not come from a page that you were shown.", 403)
    kind = request.fields.text("kind")
    if kind not in _KINDS:
        raise Refused("There is no such action.", 400)
    action = await _KINDS[kind](request)
    for command in action.commands:
        request.require(*command)
    confirmed = request.fields.text("confirm")
    if not confirmed:
        return action.title, _ask(request, action)
    if confirmed != action.digest():
        raise Refused("Something has changed since the command was shown: nothing was done.", 409)
    await run(request.server, request.viewer.user.name, request.peer, action)
    return action.title, _done(action)


# --- what there is to do ---------------------------------------------------------------------


async def _set_to_time(request: PageRequest) -> Action:
    group = _seen_group(request)
    first = identity_of(request.fields.text("to"))
    position = first - 1 if first else ids.MIN
    about = f"Entries from {id_text(first)} on will be delivered (again)."
    return _set_position(request, group, position, about)


async def _go_back(request: PageRequest) -> Action:
    by = request.fields.whole("by", 0, 0, MOST_BACK + 1)
    if not 1 <= by <= MOST_BACK:
        raise Refused(f"A group can go back by 1 to {number(MOST_BACK)} entries.", 400)
    _, _, stream, group = request.group()
    position, passed = await _before(request, stream.log, group.last_id, by)
    group = _seen_group(request)
    about = f"The last {number(passed)} entries before the position will be delivered again."
    return _set_position(request, group, position, about)


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
    return Action(title, about, database.index, [command], back)


async def _redrive(request: PageRequest) -> Action:
    database, key, stream = request.stream()
    request.require(b"XRANGE", key, b"-", b"+")
    commands: list[list[bytes]] = []
    to_groups: list[bytes] = []
    letters = letters_of(stream, seen_ids(request.fields))
    for entry_id, letter in letters:
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
        commands.append([b"PENSTOCK", b"REDRIVE", key, *to_groups])
    about = _about_redrive(key, len(letters), len(to_groups))
    back = url("/letters", db=database.index, key=packed(key))
    return Action("Redrive", about, database.index, commands, back)


def _about_redrive(key: bytes, count: int, to_groups: int) -> str:
    """What becomes of so many dead letters, of which so many come from policies of groups."""
    said = []
    if to_groups:
        said.append(
            f"{_letters(to_groups)} will go back to the group: as pending entries with no delivery"
            " counted, or added anew where the stream has lost them."
        )
    if count > to_groups:
        said.append(
            f"{_letters(count - to_groups)} will be added to the stream of origin, without the"
            " fields that were added."
        )
    return f"{' '.join(said)} They are removed from {shown(key)}."


def _letters(count: int) -> str:
    return f"{number(count)} dead letter{'s' if count > 1 else ''}"


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
        raise Refused(f"{shown(origin)} is no stream.", 409)
    if value is not None and value.last_id == ids.MAX:
        raise Refused(f"{shown(origin)} takes no more entries.", 409)


_KINDS: Final = {"setid-time": _set_to_time, "setid-back": _go_back, "redrive": _redrive}


# --- showing it ------------------------------------------------------------------------------


def _ask(request: PageRequest, action: Action) -> Html:
    kept = ("kind", "db", "key", "group", "seen", "to", "by")
    form = tag(
        "form",
        csrf_field(request),
        *(
            hidden(name, request.fields.secret(name))
            for name in kept
            if request.fields.secret(name)
        ),
        *(hidden("id", value) for value in request.fields.every("id")),
        hidden("confirm", action.digest()),
        tag("button", "Run it", class_="danger"),
        tag("a", "Leave it", href=action.back, class_="button plain"),
        method="post",
        action="/act",
        class_="filter",
    )
    where = f"As user {shown(request.viewer.user.name)} in database {action.db}:"
    return joined(
        [tag("h1", action.title), tag("p", action.about), tag("p", where), _list(action), form]
    )


def _list(action: Action) -> Html:
    """The commands as they will run, long arguments cut."""
    lines = "\n".join(" ".join(_argument(word) for word in command) for command in _whole(action))
    return tag("pre", lines, class_="commands")


def _whole(action: Action) -> list[list[bytes]]:
    """The commands with those around them that make it all or none."""
    if len(action.commands) == 1:
        return action.commands
    return [[b"MULTI"], *action.commands, [b"EXEC"]]


def _argument(word: bytes) -> str:
    text = shown(word)
    return f'"{text}"' if " " in text else text


def _done(action: Action) -> Html:
    back = tag("a", "Back", href=action.back, class_="button")
    return joined([tag("h1", action.title), notice("Done.", "good"), _list(action), tag("p", back)])


# --- running it ------------------------------------------------------------------------------


class _Answer:
    """Waits until what was done is as safe as the settings promise."""

    ended = False

    def __init__(self) -> None:
        self.safe: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def release(self, data: bytes | None) -> None:
        """It is."""
        self._settle(True)

    def abandon(self) -> None:
        """Nobody knows."""
        self._settle(False)

    def close(self) -> None:
        """The connection of a client would end."""
        self.abandon()

    def send(self, data: bytes) -> None:
        """A browser is sent nothing that it has not asked for."""

    def traffic(self) -> dict[str, int]:
        """Return that there are no buffers."""
        return {}

    def waiting_bytes(self) -> tuple[int, int]:
        """Return that nothing waits."""
        return 0, 0

    @property
    def is_debugging(self) -> bool:
        """The page is frozen with everything else."""
        return False

    def check_output(self, more: int = 0) -> bool:
        """Little waits for a browser."""
        return False

    def _settle(self, safe: bool) -> None:
        if not self.safe.done():
            self.safe.set_result(safe)


async def run(server: Services, user: bytes, peer: str, action: Action) -> None:
    """Runs the commands as a client does who is that user; raises :class:`Refused` with the error
    of the first that fails."""
    state = server.state
    if server.pauses.active:
        raise Refused("Writes are held back at present (CLIENT PAUSE): nothing was done.", 503)
    account = state.users.get(user)
    if account is None:
        raise Refused("The user is gone.", 403)
    state.last_id += 1
    session = state.new_session(state.last_id, peer, "page")
    session.name = b"page"
    session.log_in(account)
    session.db = state.keyspace.databases[action.db]
    answer = _Answer()
    session.link.wire = answer
    state.sessions[session.id] = session
    try:
        # No other client comes between these: nothing is awaited.
        for command in _whole(action):
            _run_one(server, session, command)
        if server.traffic.gate.holding:
            server.traffic.gate.hold(answer, b"")
            if not await answer.safe:
                raise Refused("It may or may not be on the disk: writing has failed.", 500)
    finally:
        farewell(server, session)


def _run_one(server: Services, session: Session, command: list[bytes]) -> None:
    reply = server.dispatcher.execute(session, command)
    if reply is None:
        raise Refused("The command takes too long to be run from here.", 500)
    if reply.startswith(b"-"):
        raise Refused(f"{shown(command[0])}: {shown(reply[1:].rstrip())}", 409)
