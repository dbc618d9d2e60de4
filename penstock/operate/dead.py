"""``penstock dead``: dead letters, listed, shown, sent back and deleted.

A dead letter begins with fields that say where it comes from (docs/delivery.md). Penstock sends one
back by PENSTOCK REDRIVE; another server does by XADD and XDEL in one MULTI, so that a letter is
never in both places, nor in none.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any, Final

from rich.table import Table
from rich.text import Text

from penstock.client.connection import ServerConnection
from penstock.client.errors import CommandRefused
from penstock.operate.common import (
    DEAD_STREAM,
    add_url,
    as_json,
    connected,
    is_penstock,
    paired,
    run,
    streams,
)
from penstock.terminal import Parser, console, plural, shown

ABOUT: Final = "Dead letters: entries that could not be processed, why, and how to send them back."

OWN: Final = b"dead-letter-"
"""What the names of the fields begin with that make an entry a dead letter."""

SHOWN: Final = 100
"""How many letters a list has unless it is told otherwise."""

_PORTION: Final = 1000

Letter = tuple[bytes, list[bytes]]


def is_letter(fields: Sequence[bytes]) -> bool:
    """Whether an entry is a dead letter."""
    return bool(fields) and fields[0] == DEAD_STREAM


def facts(fields: Sequence[bytes]) -> dict[str, bytes]:
    """Return what a letter says of itself by short names: where it was, for whom, and why."""
    own = paired(fields)
    return {
        name.removeprefix(OWN).decode("ascii", "replace"): value
        for name, value in own
        if name.startswith(OWN)
    }


def payload(fields: Sequence[bytes]) -> list[bytes]:
    """The fields and values that the entry had before it became a letter."""
    pairs = paired(fields)
    while pairs and pairs[0][0].startswith(OWN):
        del pairs[0]
    return [word for pair in pairs for word in pair]


def letters(server: ServerConnection, stream: bytes) -> Iterator[Letter]:
    """Yields the dead letters of a stream, the oldest first."""
    start: bytes = b"-"
    while portion := server.call("XRANGE", stream, start, "+", "COUNT", _PORTION):
        for entry_id, fields in portion:
            if is_letter(fields):
                yield entry_id, fields
        start = b"(" + portion[-1][0]


def streams_with_letters(server: ServerConnection) -> list[tuple[bytes, int]]:
    """The streams whose last entry is a dead letter, and how long they are."""
    found = []
    for key in streams(server):
        newest = server.call("XREVRANGE", key, "+", "-", "COUNT", 1)
        if newest and is_letter(newest[0][1]):
            found.append((key, server.call("XLEN", key)))
    return found


# --- what is done -----------------------------------------------------------------------------


def chosen(server: ServerConnection, options: argparse.Namespace) -> list[Letter]:
    """The letters that the arguments name: by ID, or by reason and group, up to a number.

    Raises :class:`CommandRefused` if one of the IDs is no letter."""
    stream = options.stream.encode()
    if options.ids:
        return [_letter(server, stream, entry_id) for entry_id in options.ids]
    found = []
    for letter in letters(server, stream):
        told = facts(letter[1])
        if all(
            not wanted or told.get(name) == wanted.encode()
            for name, wanted in (("reason", options.reason), ("group", options.group))
        ):
            found.append(letter)
            if len(found) == options.count:
                break
    return found


def _letter(server: ServerConnection, stream: bytes, entry_id: str) -> Letter:
    there = server.call("XRANGE", stream, entry_id, entry_id)
    if not there or not is_letter(there[0][1]):
        raise CommandRefused(f"{shown(stream)} has no dead letter {entry_id}")
    return there[0][0], there[0][1]


def redrive(server: ServerConnection, stream: bytes, wanted: Sequence[Letter]) -> tuple[int, str]:
    """Sends letters back; returns how many were, and by which commands."""
    if is_penstock(server):
        done = 0
        for at in range(0, len(wanted), _PORTION):
            ids = [entry_id for entry_id, _ in wanted[at : at + _PORTION]]
            done += server.call("PENSTOCK", "REDRIVE", stream, *ids)
        return done, "PENSTOCK REDRIVE"
    done = sum(_send_back(server, stream, entry_id) for entry_id, _ in wanted)
    return done, "XADD and XDEL in one MULTI each: every group of the stream gets them"


def _send_back(server: ServerConnection, stream: bytes, entry_id: bytes) -> bool:
    """Whether a letter was still there, and is back in its stream. Somebody else may be at the same
    letter, so the stream is watched."""
    while True:
        server.call("WATCH", stream)
        there = server.call("XRANGE", stream, entry_id, entry_id)
        if not there:
            server.call("UNWATCH")
            return False
        fields = there[0][1]
        home = facts(fields)["stream"]
        if server.transact([("XADD", home, "*", *payload(fields)), ("XDEL", stream, entry_id)]):
            return True


def delete(server: ServerConnection, stream: bytes, wanted: Sequence[Letter]) -> int:
    """Deletes letters; returns how many were there."""
    ids = [entry_id for entry_id, _ in wanted]
    portions = [ids[at : at + _PORTION] for at in range(0, len(ids), _PORTION)]
    return sum([server.call("XDEL", stream, *portion) for portion in portions])


# --- the tool ---------------------------------------------------------------------------------


def main(args: Sequence[str]) -> int:
    """Runs the tool with the arguments behind its name; returns the exit status."""
    options = _parse(args)
    acts = {"list": _list, "show": _show, "redrive": _redrive, "delete": _delete}
    return run("dead", lambda: _with(options, acts[options.act]))


def _parse(args: Sequence[str]) -> argparse.Namespace:
    known = Parser(prog="penstock dead", description=ABOUT)
    acts = known.add_subparsers(dest="act", required=True, metavar="list | show | redrive | delete")
    listing = acts.add_parser("list", help="streams with dead letters, or the letters of a stream")
    listing.add_argument("stream", nargs="?", default="")
    _choice(listing, SHOWN)
    add_url(listing)
    listing.set_defaults(ids=[])
    showing = acts.add_parser("show", help="one letter in full")
    showing.add_argument("stream")
    add_url(showing)
    showing.add_argument("ids", nargs=1, metavar="ID")
    showing.add_argument("--json", action="store_true", help="a line of JSON")
    showing.set_defaults(reason="", group="", count=0)
    for name, text_of in (("redrive", "send letters back"), ("delete", "delete letters")):
        act = acts.add_parser(name, help=f"{text_of}, by ID or with --all")
        act.add_argument("stream")
        act.add_argument("ids", nargs="*", metavar="ID")
        act.add_argument(
            "--all", action="store_true", help="all letters, or those of --reason and --group"
        )
        _choice(act, 0)
        add_url(act)
    found = known.parse_args(args)
    if found.act in ("redrive", "delete") and bool(found.ids) == found.all:
        known.error("give the IDs of letters, or --all, with --reason and --group to select some")
    return found


def _choice(known: argparse.ArgumentParser, count: int) -> None:
    known.add_argument("--reason", default="", help="only letters with this reason")
    known.add_argument("--group", default="", help="only letters of this group")
    known.add_argument(
        "--count",
        type=int,
        default=count,
        metavar="N",
        help=f"the first N letters, 0 for all ({count})",
    )


def _with(options: argparse.Namespace, act: Any) -> int:
    with connected(options.url) as server:
        found: int = act(server, options)
        return found


def _list(server: ServerConnection, options: argparse.Namespace) -> int:
    return _list_letters(server, options) if options.stream else _list_streams(server)


def _list_streams(server: ServerConnection) -> int:
    found = streams_with_letters(server)
    screen = console()
    if not found:
        screen.print("There are no dead letters.")
        return 0
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("stream")
    table.add_column("letters", justify="right")
    for key, length in found:
        table.add_row(Text(shown(key)), f"{length:,}")
    screen.print(table)
    return 0


def _list_letters(server: ServerConnection, options: argparse.Namespace) -> int:
    wanted = chosen(server, options)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("id", no_wrap=True)
    for name in ("stream", "group", "consumer"):
        table.add_column(name, overflow="fold")
    table.add_column("tries", justify="right")
    table.add_column("reason", overflow="fold")
    for entry_id, fields in wanted:
        told = facts(fields)
        cells = [
            shown(told.get(name, b"")) for name in ("stream", "group", "consumer", "deliveries")
        ]
        why = ": ".join(shown(told[name]) for name in ("reason", "error") if told.get(name))
        table.add_row(shown(entry_id), *map(Text, (*cells, why)))
    screen = console()
    screen.print(table if wanted else "There are no such dead letters.")
    return 0


def _show(server: ServerConnection, options: argparse.Namespace) -> int:
    [(entry_id, fields)] = chosen(server, options)
    if options.json:
        print(as_json(entry_id, fields))
        return 0
    screen = console()
    screen.print(Text(shown(entry_id), style="bold"))
    for name, value in paired(fields):
        style = "dim" if name.startswith(OWN) else ""
        screen.print(Text(f"{shown(name)}: {shown(value)}", style=style))
    return 0


def _redrive(server: ServerConnection, options: argparse.Namespace) -> int:
    wanted = chosen(server, options)
    done, how = redrive(server, options.stream.encode(), wanted) if wanted else (0, "")
    print(f"{plural(done, 'letter')} sent back{how and f' by {how}'}")
    return 0 if done == len(wanted) else 1


def _delete(server: ServerConnection, options: argparse.Namespace) -> int:
    done = delete(server, options.stream.encode(), chosen(server, options))
    print(f"{plural(done, 'letter')} deleted by XDEL")
    return 0
