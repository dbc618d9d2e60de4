"""``penstock import`` and ``penstock export``: options, messages and exit statuses."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Final, Literal

from penstock.client.errors import AddressError, ClientError
from penstock.client.urls import Address, parse
from penstock.migration import rdb_file
from penstock.migration.report import Depth
from penstock.migration.runner import AGAIN, MigrationOptions, run
from penstock.terminal import Parser, console

LOCAL: Final = "redis://127.0.0.1:6379/0"
"""The other server, unless it is given: a Penstock on this machine."""

_DATABASE_TWICE: Final = "a database may be named by --db or in a URL, not in both ways"

EQUAL: Final = 0
NOT_EQUAL: Final = 1
USAGE: Final = 2
INTERRUPTED: Final = 130

Direction = Literal["import", "export"]

_SUMMARIES: Final = {
    "import": "Copies streams from a Redis, Valkey, Penstock or cluster, or an RDB file, into a"
    " Penstock.",
    "export": "Copies streams from a Penstock into a Redis, Valkey, Penstock or cluster.",
}

_EPILOG: Final = """\
A URL is redis://[user:password@]host[:port][/database], rediss:// for TLS, or unix:///path?db=0;
redis+cluster://host:port,host:port names one or more nodes of a cluster.

Streams are copied with their consumer groups, pending entries, counters and expiry. It may be run
again at any time: it goes on where it was, and changes nothing that is as it should be. A stream of
the target that is no part of the source's is left alone, unless --replace is given.

Exit status: 0 all streams are equal on both servers, 1 some are not or could not be copied,
2 the command line is wrong.
"""


def main(args: Sequence[str], direction: Direction) -> int:
    """Runs the command with the arguments behind its name; returns the exit status."""
    try:
        options = parse_arguments(args, direction)
    except SystemExit as end:
        return int(end.code or 0)
    try:
        copy = rdb_file.run if isinstance(options.source, str) else run
        return EQUAL if copy(options, console()) else NOT_EQUAL
    except ClientError as error:
        return _give_up(f"{error}", NOT_EQUAL, direction)
    except KeyboardInterrupt:
        return _give_up(f"interrupted; {AGAIN}", INTERRUPTED, direction)


def _give_up(text: str, status: int, direction: Direction) -> int:
    print(f"penstock {direction}: {text}", file=sys.stderr)
    return status


# --- arguments -------------------------------------------------------------------------------


def parse_arguments(args: Sequence[str], direction: Direction) -> MigrationOptions:
    """The options that the arguments ask for; ends with SystemExit after help or a wrong use."""
    parser = _parser(direction)
    given = parser.parse_args(args)
    try:
        if direction == "import" and _is_file(given.url):
            near = parse(given.other or LOCAL)
            if given.db and near.db is not None and given.other:
                parser.error(_DATABASE_TWICE)
            if near.cluster:
                parser.error("an RDB file can be copied to one server, not to a cluster")
            return _options(given, given.url, near)
        near, far = parse(given.other or LOCAL), parse(given.url)
    except AddressError as error:
        parser.refuse(str(error))
    if given.db and (far.db is not None or (given.other and near.db is not None)):
        parser.error(_DATABASE_TWICE)
    if given.db and (far.cluster or near.cluster):
        parser.error("--db does not go with a cluster, whose keys are all in database 0")
    source, target = (far, near) if direction == "import" else (near, far)
    return _options(given, source, target)


def _options(given: argparse.Namespace, source: Address | str, target: Address) -> MigrationOptions:
    globs = tuple(glob.encode("utf-8", "surrogateescape") for glob in given.match or ["*"])
    what = (globs, _databases(given.db), given.replace, given.strings, given.values)
    return MigrationOptions(source, target, *what, Depth(given.verify), given.dry_run)


def _is_file(text: str) -> bool:
    """Whether a source is an RDB file, and no URL."""
    return "://" not in text and (text.endswith(".rdb") or os.path.isfile(text))


def _parser(direction: Direction) -> Parser:
    """The options; import and export have the same ones, with the roles exchanged."""
    other, preposition = ("target", "--to") if direction == "import" else ("source", "--from")
    parser = Parser(
        prog=f"penstock {direction}",
        description=_SUMMARIES[direction],
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    if direction == "import":
        add("url", metavar="URL|FILE", help="the source: a server, or an RDB file")
    else:
        add("url", metavar="URL", help="the target")
    add(preposition, dest="other", metavar="URL", help=f"the {other} (default: {LOCAL})")
    add("--match", action="append", metavar="GLOB", help="only such keys; may be repeated")
    add(
        "--db",
        action="append",
        type=_database,
        metavar="N|all",
        help="copy this database into the one of the same number; may be repeated",
    )
    add("--replace", action="store_true", help="replace what the target has under these names")
    add("--strings", action="store_true", help="copy plain strings as well")
    add("--values", action="store_true", help="copy all values: strings, hashes, lists, sets")
    add(
        "--verify",
        choices=[depth.value for depth in Depth],
        default=Depth.FULL.value,
        help="compare every entry at the end, or counters and boundaries (default: full)",
    )
    add("--dry-run", action="store_true", help="say what would be copied, and change nothing")
    return parser


_ALL: Final = -1


def _database(text: str) -> int:
    """A number, or :data:`_ALL`."""
    if text == "all":
        return _ALL
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"'{text}' is neither a number nor 'all'")
    return int(text)


def _databases(given: list[int] | None) -> tuple[int, ...] | None:
    if not given:
        return None
    return () if _ALL in given else tuple(dict.fromkeys(given))
