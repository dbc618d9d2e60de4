"""Rules: the words of ACL SETUSER, of ``user`` lines and of the file of users.

They are applied from left to right. A rule that is none raises :class:`RuleError`; what came before
it has been applied then, so rules are tried on a copy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from protocol.errors import CommandError
from protocol.inline import split_words
from server.acl import errors
from server.acl.selector import READ_WRITE, Selector
from server.acl.users import User, Users, hashed
from server.core.table import CATEGORIES, READ, WRITE, find_by_name

_BLANKS: Final = re.compile(rb"[\s\0]")
_HASH: Final = re.compile(rb"[0-9a-f]{64}")
_CATEGORY_NAMES: Final = frozenset(category.encode() for category in CATEGORIES)
_RIGHTS: Final = {ord("R"): READ, ord("r"): READ, ord("W"): WRITE, ord("w"): WRITE}

ABSENT: Final = frozenset(
    b"""
    geoadd geodist geohash geopos georadius georadius_ro georadiusbymember georadiusbymember_ro
    geosearch geosearchstore latency|doctor latency|graph lolwut migrate module|load
    module|loadex module|unload pfdebug pfselftest vadd vcard vdim vemb vgetattr vinfo vismember
    vlinks vrandmember vrem vsetattr vsim
    """.split()
)
"""Commands of Redis 8.0 that are not here. Rules may name them, so that those which were made for
Redis hold here as they are; nothing follows from it."""


class RuleError(Exception):
    """A rule cannot be applied: ``rule`` as it was given, ``reason`` says why."""

    def __init__(self, rule: bytes, reason: str) -> None:
        super().__init__(reason)
        self.rule = rule
        self.reason = reason


class OpenSelector(Exception):
    """A selector begins and does not end; ``text`` is the word that it begins with."""

    def __init__(self, text: bytes) -> None:
        super().__init__(text)
        self.text = text


def is_name(name: bytes) -> bool:
    """Whether a user can have this name."""
    return _BLANKS.search(name) is None


def joined(words: Iterable[bytes]) -> list[bytes]:
    """The rules among words of which some belong to one selector, from ``(`` to what ends in
    ``)``; raises :class:`OpenSelector`."""
    rules: list[bytes] = []
    begun: list[bytes] = []
    for word in words:
        begun.append(word)
        if begun[0].startswith(b"(") and not word.endswith(b")"):
            continue
        rules.append(b" ".join(begun))
        begun.clear()
    if begun:
        raise OpenSelector(begun[0])
    return rules


def apply_all(users: Users, user: User, rules: Iterable[bytes]) -> None:
    """Applies rules to a user; raises :class:`RuleError`."""
    for rule in rules:
        reason = _apply(users, user, rule)
        if reason is not None:
            raise RuleError(rule, reason)
    user.settle()


def changed(users: Users, name: bytes, words: Iterable[bytes]) -> User:
    """Return what a user would be after ACL SETUSER; raises :class:`CommandError`."""
    if not is_name(name):
        raise CommandError(errors.BAD_NAME)
    present = users.get(name)
    user = users.new_user(name) if present is None else present.copy()
    try:
        apply_all(users, user, joined(words))
    except OpenSelector as error:
        raise CommandError(errors.open_selector(error.text)) from None
    except RuleError as error:
        raise CommandError(errors.bad_rule(error.rule, error.reason)) from None
    return user


# --- rules about a user ----------------------------------------------------------------------


def _apply(users: Users, user: User, rule: bytes) -> str | None:
    """Applies one rule; returns what is wrong with it, if something is."""
    if not rule or _take_word(users, user, rule.lower()):
        return None
    mark = rule[:1]
    if mark == b">":
        _add_password(user, hashed(rule[1:]))
    elif mark == b"<":
        return _remove_password(user, hashed(rule[1:]))
    elif mark in (b"#", b"!"):
        return _change_hash(user, mark, rule[1:])
    elif mark == b"(":
        return _add_selector(users, user, rule)
    else:
        return apply_to_selector(user.root, rule)
    return None


_FLAGS: Final = {
    b"on": ("is_on", True),
    b"off": ("is_on", False),
    b"sanitize-payload": ("sanitizes", True),
    b"skip-sanitize-payload": ("sanitizes", False),
}
"""Words that set an attribute of the user."""


def _take_word(users: Users, user: User, word: bytes) -> bool:
    """Applies a rule that is a word of its own; false if it is none."""
    if word in _FLAGS:
        setattr(user, *_FLAGS[word])
    elif word in (b"nopass", b"resetpass"):
        user.nopass = word == b"nopass"
        user.passwords.clear()
    elif word == b"clearselectors":
        user.selectors.clear()
    elif word == b"reset":
        user.take(users.new_user(user.name))
    else:
        return False
    return True


def _add_password(user: User, password: str) -> None:
    user.passwords.setdefault(password, None)
    user.nopass = False


def _remove_password(user: User, password: str) -> str | None:
    if password not in user.passwords:
        return errors.NO_SUCH_PASSWORD
    del user.passwords[password]
    return None


def _change_hash(user: User, mark: bytes, text: bytes) -> str | None:
    if _HASH.fullmatch(text) is None:
        return errors.BAD_HASH
    if mark == b"!":
        return _remove_password(user, text.decode())
    _add_password(user, text.decode())
    return None


def _add_selector(users: Users, user: User, rule: bytes) -> str | None:
    words = split_words(rule[1:-1]) if rule.endswith(b")") else None
    if words is None:
        return errors.SYNTAX
    selector = users.new_selector()
    for word in words:
        reason = apply_to_selector(selector, word)
        if reason is not None:
            return reason
    user.selectors.append(selector)
    return None


# --- rules about commands, keys and channels -------------------------------------------------


def apply_to_selector(selector: Selector, rule: bytes) -> str | None:
    """Applies a rule that a selector can have; returns what is wrong with it, if something is."""
    word = _SELECTOR_WORDS.get(rule.lower())
    if word is not None:
        word(selector)
        return None
    mark = rule[:1]
    if mark == b"~":
        return _add_pattern(selector, rule[1:], READ_WRITE)
    if mark == b"%":
        return _add_rights(selector, rule[1:])
    if mark == b"&":
        return _add_channel(selector, rule[1:])
    if mark in (b"+", b"-"):
        return _change_command(selector, rule[1:], mark == b"+")
    return errors.SYNTAX


_SELECTOR_WORDS: Final[dict[bytes, Callable[[Selector], None]]] = {
    b"~*": lambda selector: selector.set_all_keys(True),
    b"allkeys": lambda selector: selector.set_all_keys(True),
    b"resetkeys": lambda selector: selector.set_all_keys(False),
    b"&*": lambda selector: selector.set_all_channels(True),
    b"allchannels": lambda selector: selector.set_all_channels(True),
    b"resetchannels": lambda selector: selector.set_all_channels(False),
    b"+@all": lambda selector: selector.set_all_commands(True),
    b"allcommands": lambda selector: selector.set_all_commands(True),
    b"-@all": lambda selector: selector.set_all_commands(False),
    b"nocommands": lambda selector: selector.set_all_commands(False),
}


def _add_rights(selector: Selector, text: bytes) -> str | None:
    """``%R~pattern``, ``%W~pattern``, ``%RW~pattern``; without ``~`` the pattern is empty."""
    if selector.all_keys:
        return errors.KEYS_COMPLETE
    letters, _, pattern = text.partition(b"~")
    rights = 0
    for letter in letters:
        right = _RIGHTS.get(letter, 0)
        if not right or rights & right:
            return errors.SYNTAX
        rights |= right
    return _add_pattern(selector, pattern, rights) if rights else errors.SYNTAX


def _add_pattern(selector: Selector, pattern: bytes, rights: int) -> str | None:
    if selector.all_keys:
        return errors.KEYS_COMPLETE
    if _BLANKS.search(pattern) is not None:
        return errors.SYNTAX
    selector.add_pattern(pattern, rights)
    return None


def _add_channel(selector: Selector, pattern: bytes) -> str | None:
    if selector.all_channels:
        return errors.CHANNELS_COMPLETE
    if _BLANKS.search(pattern) is not None:
        return errors.SYNTAX
    selector.channels.setdefault(pattern, None)
    return None


def _change_command(selector: Selector, text: bytes, allowed: bool) -> str | None:
    name = text.lower()
    if name.startswith(b"@"):
        if name[1:] not in _CATEGORY_NAMES:
            return errors.UNKNOWN_COMMAND
        selector.set_category(name[1:], allowed)
        return None
    command = find_by_name(selector.table, name)
    if command is not None:
        selector.set_command(command, allowed)
        return None
    if name in ABSENT:
        selector.note_command(name, allowed)
        return None
    return _allow_first_argument(selector, name) if allowed else errors.UNKNOWN_COMMAND


def _allow_first_argument(selector: Selector, name: bytes) -> str | None:
    """``+command|argument``. An argument with blanks could not be written into a file."""
    first, _, argument = name.rpartition(b"|")
    command = find_by_name(selector.table, first)
    if command is None and first not in ABSENT:
        return errors.UNKNOWN_COMMAND
    if b"|" in first:
        return errors.FIRST_ARGUMENT
    if not argument or _BLANKS.search(argument) is not None:
        return errors.SYNTAX
    if command is None:
        selector.note_command(name, True)
        return None
    if command.subcommands:
        return errors.UNKNOWN_COMMAND
    selector.add_first_argument(command, argument)
    return None
