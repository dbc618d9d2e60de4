"""``penstock check-aof``: checks whether a server would load an append-only file.

Exit status 0 means that a server would load the file as it is, 1 that it would not, or would cut
off its end first, and 2 that the arguments are wrong.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from storage.aof.check import Findings, Replayer, check_file, check_folder, cut
from storage.aof.disk import Disk
from storage.aof.folder import Folder, FolderError
from storage.aof.reader import Damaged, Tail

USAGE: Final = """\
Usage: penstock check-aof [--fix [--yes]] FOLDER | MANIFEST | FILE

Loads an append-only file as a server would, and reports what a server would not load.
Nothing is changed without --fix.

       --fix   cuts off what was being written when the server ended, after asking
       --yes   does not ask
"""

_PART: Final = re.compile(r"(.+)\.[0-9]+\.(base|incr)\.(?:aof|rdb)")
"""The names of base files and increments."""

NewReplay = Callable[[], Replayer]


_ALONE: Final = (
    "The increment is whole. Whether its commands can be applied is not known without the files"
    " before it: check the folder."
)


class _UsageError(Exception):
    """The arguments are wrong; the text says which."""


class _CheckOptions(NamedTuple):
    path: str
    fix: bool
    yes: bool


class _Target(NamedTuple):
    """The target: a folder with a manifest, or one file, which may be in such a folder."""

    folder: Folder | None
    file: str = ""

    @property
    def continues(self) -> bool:
        """Whether it is one file whose commands follow those of others."""
        part = _PART.fullmatch(os.path.basename(self.file))
        return part is not None and part[2] == "incr"

    def check(self, new_replay: NewReplay | None) -> list[Findings]:
        """Reads it; raises :class:`FolderError` and :class:`OSError`."""
        replay = None if new_replay is None or self.continues else new_replay()
        if self.folder is not None:
            self.folder.load()
            if not self.file:
                return check_folder(self.folder, replay)
        return [check_file(self.file, Disk(), torn=self._may_be_torn(), replay=replay)]

    def _may_be_torn(self) -> bool:
        """Whether it is the file that was written to last, or one that no manifest names."""
        if self.folder is None:
            return True
        name = os.path.basename(self.file)
        named = any(file.name == name for file in self.folder.manifest.files)
        return not named or name == os.path.basename(self.folder.growing())


def main(args: Sequence[str], new_replay: NewReplay | None = None) -> int:
    """Runs the command with the arguments behind its name; returns its exit status.

    ``new_replay`` makes what applies the commands. Without it, only the form of the files and their
    checksums are checked.
    """
    if args and args[0] in ("-h", "--help"):
        print(USAGE, end="")
        return 0
    try:
        options = _parse(args)
    except _UsageError as error:
        print(_printable(f"penstock check-aof: {error}\n\n{USAGE}"), end="", file=sys.stderr)
        return 2
    try:
        return _run(_find(options.path), options, new_replay)
    except (FolderError, Damaged) as error:
        return _fail(str(error))
    except OSError as error:
        return _fail(f"{error.filename or options.path}: {error.strerror}")
    except KeyboardInterrupt:
        return _fail("interrupted; nothing has been changed")


def _fail(text: str) -> int:
    print(_printable(f"penstock check-aof: {text}"), file=sys.stderr)
    return 1


def _say(text: str) -> None:
    print(_printable(text))


def _printable(text: str) -> str:
    """The text with escapes for bytes of file names that are not UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


# --- what is asked for -----------------------------------------------------------------------


def _parse(args: Sequence[str]) -> _CheckOptions:
    flags = [arg for arg in args if arg.startswith("-")]
    paths = [arg for arg in args if not arg.startswith("-")]
    for flag in flags:
        if flag not in ("--fix", "--yes"):
            raise _UsageError(f"{flag}: unknown option")
    if "--yes" in flags and "--fix" not in flags:
        raise _UsageError("--yes makes sense with --fix only")
    if len(paths) != 1:
        raise _UsageError(f"expected one folder, manifest or file, not {len(paths)}")
    return _CheckOptions(paths[0], "--fix" in flags, "--yes" in flags)


def _find(path: str) -> _Target:
    """Return what to check at a path; raises :class:`FolderError` and :class:`OSError`."""
    if os.path.isdir(path):
        return _Target(Folder(path, _filename_in(path)))
    os.stat(path)
    parent, name = os.path.split(path)
    if name.endswith(".manifest"):
        return _Target(Folder(parent or ".", name.removesuffix(".manifest")))
    part = _PART.fullmatch(name)
    folder = Folder(parent or ".", part[1]) if part else None
    if folder is not None and not os.path.exists(folder.path_of(folder.manifest_name)):
        folder = None
    return _Target(folder, path)


def _filename_in(path: str) -> str:
    """The common prefix of the files of a folder, from its manifest."""
    names = sorted(name for name in os.listdir(path) if name.endswith(".manifest"))
    names = [name for name in names if not name.startswith("temp-")]
    if len(names) != 1:
        found = ", ".join(names) or "none"
        raise FolderError(f"the folder '{path}' has to hold one manifest, not: {found}")
    return names[0].removesuffix(".manifest")


# --- checking --------------------------------------------------------------------------------


def _run(target: _Target, options: _CheckOptions, new_replay: NewReplay | None) -> int:
    with _held(target.folder, options.fix):
        findings = target.check(new_replay)
        for found in findings:
            _say(_described(found))
        _print_notes(target, options.fix)
        if all(found.whole for found in findings):
            _say(_ALONE if target.continues else "The append-only file is whole.")
            return 0
        torn = [(found.path, found.tail) for found in findings if found.tail is not None]
        if findings[-1].refused:
            _say("A server would not load the append-only file, and --fix can't change that.")
            return 1
        if findings[-1].damage or not torn:
            _say("The append-only file is damaged. --fix can't repair that: restore a copy.")
            return 1
        return _offer_cut(*torn[0], options)


@contextlib.contextmanager
def _held(folder: Folder | None, fix: bool) -> Iterator[None]:
    """Locks the folder against servers while it may be changed; raises :class:`FolderInUse`."""
    if folder is None or not fix:
        yield
        return
    folder.acquire()
    try:
        yield
    finally:
        folder.release()


def _described(found: Findings) -> str:
    text = f"{found.path}: {_count(found.size, 'byte')}, {_count(found.commands, 'command')}"
    if found.damage:
        what = "refused" if found.refused else "damaged"
        return f"{text}, then {what} at offset {found.offset}: {found.damage}"
    text += _described_uncovered(found)
    if found.tail is None:
        return f"{text}, whole"
    zeros = f", {found.tail.zeros} of them zero" if found.tail.zeros else ""
    size = _count(found.tail.size, "byte")
    return f"{text}, then {size}{zeros} from offset {found.tail.offset} on: {found.tail.reason}"


def _described_uncovered(found: Findings) -> str:
    """Return how much has no checksum: everything, the end, or nothing."""
    end = found.size if found.tail is None else found.tail.offset
    if not found.uncovered:
        return ""
    if found.uncovered == end:
        return ", no checksum"
    return f", no checksum from offset {end - found.uncovered} on"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _print_notes(target: _Target, fix: bool) -> None:
    folder = target.folder
    if folder is None:
        return
    if not target.file:
        for name in folder.strays():
            _say(f"{folder.path_of(name)}: not in the manifest")
    user = "" if fix else folder.user()
    if user:
        _say(f"The folder is in use by {user}: the last file may be growing.")


# --- repairing -------------------------------------------------------------------------------


def _offer_cut(path: str, tail: Tail, options: _CheckOptions) -> int:
    lost = _count(tail.size, "byte")
    if not options.fix:
        _say(f"The end of the append-only file is torn: --fix cuts off {lost}.")
        return 1
    _say(f"The end of the append-only file is torn: {lost} of '{path}' will be cut off.")
    if not options.yes and not _agreed():
        _say("Nothing has been changed.")
        return 1
    cut(path, tail, Disk())
    _say(f"Cut off; '{path}' has {_count(tail.offset, 'byte')} now.")
    return 0


def _agreed() -> bool:
    """Asks at the terminal; false without one."""
    if not sys.stdin.isatty():
        _say("There is no terminal to ask on: --yes agrees.")
        return False
    try:
        return input("Continue? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        print()
        return False
