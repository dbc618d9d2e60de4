"""Acts on a group: its position, its pending entries and consumers, its policies."""

from __future__ import annotations

from itertools import islice
from typing import Final, NamedTuple

from protocol.encoder import bulk
from protocol.errors import CommandError
from server.config.policies import GROUP, read_settings
from server.delivery.group_ref import GroupRef
from server.runtime.quantities import number
from server.web.page.letters import (
    MOST_IDS,
    seen_ids,
)
from server.web.page.page_request import (
    PageRequest,
    Refused,
    consumer_url,
    group_url,
    policy_command,
)
from server.web.page.policy_form import policy_inputs
from server.web.page.preview import id_of
from server.web.page.running import Asked, Command, Input, Maker, PageAction
from server.web.page.sampling import rules_of
from server.web.page.stream_screen import identity_of
from server.web.page.walking import entries
from server.web.page.wording import counted, id_text, shown
from storage.engine import ids
from storage.engine.groups import Group
from storage.engine.log import EntryLog
from storage.engine.pending import Consumer, PendingEntry

MOST_BACK: Final = 10_000
"""How many entries a group can go back from the page."""

MOST_CHOICES: Final = 200
"""How many consumers there are to choose from."""


# --- the position of a group -----------------------------------------------------------------


async def _move(request: PageRequest) -> PageAction:
    database, key, stream, group = request.group()
    to, by = request.fields.text("to"), request.fields.text("by")
    if not (to or by):
        at = id_text(group.last_id)
        raise Asked(
            f"Move the position of {shown(group.name)}",
            f"It is at {at}. Say where to, or by how many entries to go back.",
            group_url(database.index, key, group.name),
            [
                Input("to", "To a time or ID", hint="2026-01-31 12:00", time=True),
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
    passed = 0
    async for payload in entries(log, ids.MIN, position, request.pace, newest=True):
        if passed == by:
            return id_of(payload), passed
        passed += 1
    return ids.MIN, passed


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


def _set_position(request: PageRequest, group: Group, position: int, about: str) -> PageAction:
    database, key, _, _ = request.group()
    command = [b"XGROUP", b"SETID", key, group.name, ids.text(position)]
    back = group_url(database.index, key, group.name)
    title = f"Move the position of {shown(group.name)}"
    return PageAction(title, about, database.index, [[command]], back)


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

    def action(
        self,
        title: str,
        about: str,
        *commands: Command,
        grave: bool = False,
        noun: tuple[str, str] | None = None,
    ) -> PageAction:
        """An action with them."""
        db, batches = self.ref.db.index, [list(commands)]
        return PageAction(title, about, db, batches, self.back, self.state, grave, noun)


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


async def _acknowledge(request: PageRequest) -> PageAction:
    chosen = _chosen(request)
    command = [b"XACK", chosen.ref.key, chosen.ref.group.name, *chosen.texts]
    about = "They count as done: the group does not get them again."
    noun = "entry was acknowledged", "entries were acknowledged"
    return chosen.action(f"Acknowledge {chosen.said}", about, command, grave=True, noun=noun)


async def _claim(request: PageRequest) -> PageAction:
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


async def _give_back(request: PageRequest) -> PageAction:
    chosen = _chosen(request)
    about = "The next reader of the group gets them; the delivery does not count."
    noun = "entry was given back", "entries were given back"
    return chosen.action(f"Give {chosen.said} back", about, _release(chosen), noun=noun)


async def _bury(request: PageRequest) -> PageAction:
    chosen = _chosen(request)
    ref = chosen.ref
    rules = rules_of(request.server, ref)
    if rules is None or not rules.dead_letter:
        raise Refused("The group has no policy dead-letter, so there is nowhere to go.", 409)
    command = [b"XNACK", ref.key, ref.group.name, b"FATAL", b"IDS"]
    command += [b"%d" % len(chosen.entries), *chosen.texts]
    about = f"They move to {shown(rules.dead_letter)} with the reason fatal."
    noun, title = ("entry was moved", "entries were moved"), f"Make dead letters of {chosen.said}"
    return chosen.action(title, about, command, grave=True, noun=noun)


async def _remove(request: PageRequest) -> PageAction:
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


def _to_pause(value: bytes) -> Maker:
    async def action(request: PageRequest) -> PageAction:
        database, key, _, group = request.group()
        paused = value == b"yes"
        command = policy_command(b"SET", key, group.name, b"paused", value)
        about = (
            "Its readers wait until it is resumed." if paused else "Its readers get entries again."
        )
        back = group_url(database.index, key, group.name)
        title = f"{'Pause' if paused else 'Resume'} {shown(group.name)}"
        return PageAction(
            title, about, database.index, [[command]], back, group.policy.get(b"paused", b"")
        )

    return action


async def _set_policies(request: PageRequest) -> PageAction:
    database, key, stream, group = request.group()
    back = group_url(database.index, key, group.name)
    title = f"Policies of {shown(group.name)}"
    ref = GroupRef(database, key, stream, group)
    if not request.fields.text("filled"):
        others = request.server.policies.settings_of_group(ref, {})
        about = "An empty field means the policy of the stream or the configuration."
        about += " A time without a unit is in milliseconds."
        raise Asked(title, about, back, policy_inputs(group.policy, others))
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
    return PageAction(title, "They take effect at once.", database.index, [commands], back, state)


KINDS: Final[dict[str, Maker]] = {
    "ack": _acknowledge,
    "back": _give_back,
    "bury": _bury,
    "claim": _claim,
    "pause": _to_pause(b"yes"),
    "policy": _set_policies,
    "position": _move,
    "remove": _remove,
    "resume": _to_pause(b"no"),
}
