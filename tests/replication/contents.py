"""What a server holds, in a form in which a primary and its replicas are compared.

What is left out differs of itself: how entries lie in nodes, when consumers were last seen, how
strings are encoded (which no RDB file says), what only Penstock knows, which are idempotent IDs,
and what a command shows that the replica does not know. Keys whose names begin with :data:`NEWER`
may be changed by commands that the replicas do not know: of these, what docs/append-only-file.md
says is left out as well.
"""

from __future__ import annotations

from typing import Any, Final

from hiredis import ReplyError

from tests.durability.talking import Talker
from tests.support.views import Words, views_of_key

DATABASES: Final = range(3)
"""The databases that are used."""

NEWER: Final = "newer:"
"""How the names of keys begin that commands of Penstock alone may change."""

Contents = dict[str, Any]
"""What each view shows, by its database and its words."""

_PASSING: Final = frozenset(
    {
        *("radix-tree-keys", "radix-tree-nodes", "seen-time", "active-time", "idle", "inactive"),
        *("idmp-duration", "idmp-maxsize", "pids-tracked", "iids-tracked", "iids-added"),
        *("iids-duplicates", "nacked-count"),
    }
)
COUNTS_ALIKE: Final = "redis-8.0"
"""The server that counts as Penstock does how much of a stream a group has not read."""
_COUNTED: Final = frozenset({"lag"})
"""What a server does not store, but counts when it is asked. Redis 7.0 and Valkey do not know it of
a group that is behind the end of an empty stream, where Redis 8.0 says 0."""
_VAGUE: Final = _PASSING | {"max-deleted-entry-id", "lag"}
"""What a trimming with ACKED leaves in another state, too."""


def contents_of(port: int) -> Contents:
    """Everything that the server on this port holds."""
    with Talker(port) as talker:
        talker.ask("HELLO", 3)
        libraries = talker.ask("FUNCTION", "LIST", "WITHCODE")  # In no order.
        found: Contents = {"FUNCTION LIST": sorted(each["library_code"] for each in libraries)}
        for database in DATABASES:
            talker.ask("SELECT", database)
            keys = sorted(talker.ask("KEYS", "*"))
            found[f"{database}: KEYS"] = keys
            for key in keys:
                for view, shown in _key(talker, key).items():
                    found[f"{database}: {view}"] = shown
        return found


def _key(talker: Talker, key: str) -> Contents:
    groups = talker.ask("XINFO", "GROUPS", key)
    names = [] if isinstance(groups, ReplyError) else [group["name"] for group in groups]
    views = [*views_of_key(key, names), *(["XPENDING", key, name] for name in names)]
    return {
        " ".join(view): _shown(view, talker.ask(*view)) for view in views if view[0] != "OBJECT"
    }


def _shown(view: Words, reply: Any) -> Any:
    """What of a reply is compared."""
    if isinstance(reply, ReplyError):
        return str(reply)
    if view[0] not in ("XINFO", "XPENDING"):
        return reply
    if not view[2 if view[0] == "XINFO" else 1].startswith(NEWER):
        return _without(reply, _PASSING)
    return _without_nobody(view, _without(reply, _VAGUE))


def _without(reply: Any, names: frozenset[str]) -> Any:
    """A reply without what maps have under these names."""
    if isinstance(reply, dict):
        return {name: _without(each, names) for name, each in reply.items() if name not in names}
    if isinstance(reply, list):
        return [_without(each, names) for each in reply]
    return reply


def _without_nobody(view: Words, reply: Any) -> Any:
    """A reply without the consumer ``""``, who has at replicas what belongs to nobody."""
    kind = view[1]
    if view[0] == "XPENDING":
        return [reply[:3], [each for each in reply[3] or [] if each[0]]]
    if kind == "CONSUMERS":
        return [each for each in reply if each["name"]]
    for group in reply if kind == "GROUPS" else reply["groups"] if "FULL" in view else []:
        if kind == "GROUPS":
            del group["consumers"]
        else:
            group["consumers"] = [each for each in group["consumers"] if each["name"]]
    return reply


def _is_unknown(shown: Any) -> bool:
    return isinstance(shown, str) and shown.startswith("ERR unknown command")


def difference(mine: Contents, theirs: Contents, name: str) -> str:
    """The first view in which a primary and a replica, which is a server of this name, differ, with
    what each shows; empty if there is none."""
    if name != COUNTS_ALIKE:
        mine, theirs = _without(mine, _COUNTED), _without(theirs, _COUNTED)
    for view in [*mine, *theirs]:
        if mine.get(view) != theirs.get(view) and not _is_unknown(theirs.get(view)):
            return f"{name}: {view}\n  primary: {mine.get(view)!r}\n  replica: {theirs.get(view)!r}"
    return ""
