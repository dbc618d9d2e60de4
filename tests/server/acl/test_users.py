"""Users: passwords, rules, and the lines in which they are shown."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable

import pytest

from protocol.errors import CommandError
from server.acl.rules import ABSENT, apply_all, changed, joined
from server.acl.selector import Selector
from server.acl.users import DEFAULT_USER, User, Users
from server.core.table import Command, find_by_name
from tests.support.direct import Direct


@pytest.fixture
def users() -> Users:
    return Direct().server.state.users


def made(users: Users, *rules: bytes) -> User:
    """A user with such rules."""
    return users.put(changed(users, b"u", rules))


def command(users: Users, name: bytes) -> Command:
    return users.table[name]


class TestPasswords:
    def test_only_their_hashes_are_kept(self, users: Users) -> None:
        user = made(users, b">one", b">two")
        assert list(user.passwords) == [hashlib.sha256(p).hexdigest() for p in (b"one", b"two")]
        assert b"one" not in user.line()

    def test_a_user_that_is_on_logs_in_with_each_of_them(self, users: Users) -> None:
        user = made(users, b"on", b">one", b">two")
        assert users.log_in(b"u", b"one") is users.log_in(b"u", b"two") is user
        assert users.log_in(b"u", b"three") is users.log_in(b"u", b"") is None

    def test_without_a_password_nobody_logs_in(self, users: Users) -> None:
        made(users, b"on")
        assert users.log_in(b"u", b"") is None
        assert users.log_in(b"nobody", b"") is None

    def test_a_user_that_is_off_does_not_log_in(self, users: Users) -> None:
        made(users, b">one")
        assert users.log_in(b"u", b"one") is None

    @pytest.mark.parametrize(
        ("rules", "name"),
        [
            ([b"on", b">pw"], b"u"),
            ([b"off", b">pw"], b"u"),
            ([b"on", b">other"], b"u"),
            ([b"on", b"nopass"], b"u"),
            ([b"on"], b"u"),
            ([], b"nobody"),
        ],
        ids=["right", "off", "wrong", "nopass", "none", "unknown user"],
    )
    def test_whoever_tries_the_password_is_hashed_and_compared_in_constant_time(
        self,
        users: Users,
        monkeypatch: pytest.MonkeyPatch,
        rules: list[bytes],
        name: bytes,
    ) -> None:
        made(users, *rules)
        done: list[str] = []
        monkeypatch.setattr(hashlib, "sha256", _noting(done, "hashed", hashlib.sha256))
        monkeypatch.setattr(hmac, "compare_digest", _noting(done, "compared", hmac.compare_digest))
        users.log_in(name, b"pw")
        assert sorted(done) == ["compared", "hashed"]


def _noting(done: list[str], what: str, function: Callable[..., object]) -> Callable[..., object]:
    def noted(*arguments: object) -> object:
        done.append(what)
        return function(*arguments)

    return noted


class TestDefaultUser:
    def test_it_may_do_everything_and_nothing_is_checked(self, users: Users) -> None:
        assert not users.default.limited
        assert users.default_is_open()

    @pytest.mark.parametrize("rule", [b"-get", b"resetkeys", b"resetchannels", b"-@slow"])
    def test_it_is_limited_once_it_lacks_something(self, users: Users, rule: bytes) -> None:
        users.put(changed(users, DEFAULT_USER, [rule]))
        assert users.default.limited
        users.put(changed(users, DEFAULT_USER, [b"+@all", b"~*", b"&*"]))
        assert not users.default.limited

    def test_another_user_may_do_everything_too(self, users: Users) -> None:
        assert not made(users, b"~*", b"&*", b"+@all").limited
        assert not made(users, b"reset", b"(~* &* +@all)").limited
        assert made(users, b"reset", b"(~* +@all)", b"(&* +@all)").limited

    def test_a_password_replaces_those_it_had(self, users: Users) -> None:
        users.put(changed(users, DEFAULT_USER, [b">one", b">two"]))
        users.set_default_password(b"three")
        assert users.log_in(DEFAULT_USER, b"one") is None
        assert users.log_in(DEFAULT_USER, b"three") is users.default
        users.set_default_password(b"")
        assert users.default_is_open()


class TestRules:
    def test_a_user_is_changed_as_a_whole_or_not_at_all(self, users: Users) -> None:
        before = made(users, b"on", b"~a", b"+get", b"(+set)").line()
        for wrong in (b"foo", b"+nocmd", b"(+get", b"%", b"<x", b"!x", b"(on)", b'(~"a)'):
            with pytest.raises(CommandError):
                changed(users, b"u", [b"off", b"~b", b"+set", b"clearselectors", wrong])
        user = users.get(b"u")
        assert user is not None
        assert user.line() == before

    def test_a_first_argument_with_a_blank_is_refused(self, users: Users) -> None:
        """Redis 8.0.6 takes it, and ends when the rules are shown."""
        with pytest.raises(CommandError, match="Syntax error"):
            changed(users, b"u", [b"+get|a b"])

    @pytest.mark.parametrize(
        ("rules", "shown"),
        [
            (b"+hset", b"-@all +hset"),
            (b"+HSET", b"-@all +hset"),
            (b"+@all -hset", b"+@all -hset"),
            (b"+@hash -hset +hget", b"-@all +@hash -hset +hget"),
            (b"+hset -hset", b"-@all -hset"),
            (b"+hset|x", b"-@all +hset|x"),
            (b"+hset|x +hset", b"-@all +hset"),
            (b"+module|load +module", b"-@all +module"),
            (b"+module -module|load", b"-@all +module -module|load"),
            (b"+VADD", b"-@all +vadd"),
        ],
    )
    def test_commands_of_redis_that_are_not_here_are_shown_and_allow_nothing(
        self, users: Users, rules: bytes, shown: bytes
    ) -> None:
        user = made(users, *rules.split())
        assert user.root.show_commands() == shown
        assert made(users, b"reset", *user.line().split()[2:]).line() == user.line()

    def test_who_may_do_all_that_is_here_is_not_limited_by_what_is_not(self, users: Users) -> None:
        assert made(users, b"+geoadd", b"+@geo", b"+geodist|x").root.allowed == set()
        users.remove(b"u")
        assert not made(users, b"~*", b"&*", b"+@all", b"-geoadd").limited
        assert made(users, b"~*", b"&*", b"+@all", b"-get", b"+geoadd").limited

    @pytest.mark.parametrize(
        ("rule", "reason"),
        [
            (b"+nosuch", "Unknown command or category name in ACL"),
            (b"-nosuch", "Unknown command or category name in ACL"),
            (b"+host:", "Unknown command or category name in ACL"),
            (b"-geoadd|x", "Unknown command or category name in ACL"),
            (b"+geoadd|x|y", "Unknown command or category name in ACL"),
            (b"+module|nosuch", "Unknown command or category name in ACL"),
            (b"+module|load|x", "Allowing first-arg of a subcommand is not supported"),
            (b"+geoadd|", "Syntax error"),
        ],
    )
    def test_other_names_are_refused(self, users: Users, rule: bytes, reason: str) -> None:
        with pytest.raises(CommandError, match=re.escape(reason)):
            made(users, rule)

    def test_what_is_listed_as_missing_is_missing(self, users: Users) -> None:
        assert [name for name in ABSENT if find_by_name(users.table, name) is not None] == []
        assert {name.partition(b"|")[0] for name in ABSENT if b"|" in name} <= set(users.table)

    def test_commands_that_are_not_here_are_in_no_category_and_cannot_be_tried(
        self, users: Users
    ) -> None:
        client = Direct().client()
        client.send("ACL", "SETUSER", "u", "+geoadd", "~*")
        assert client.ask("ACL", "CAT", "geo") == []
        assert str(client.ask("ACL", "DRYRUN", "u", "geoadd", "k", "1", "2", "m")) == (
            "ERR Command 'geoadd' not found"
        )

    def test_words_of_a_selector_are_one_rule(self) -> None:
        assert joined([b"a", b"(b", b"c", b"d)", b"(e)", b"f)"]) == [
            b"a",
            b"(b c d)",
            b"(e)",
            b"f)",
        ]

    @pytest.mark.parametrize(
        "rules",
        [
            [b"on", b">pw", b"~a", b"%R~b", b"%W~c", b"&d", b"+@read", b"-get", b"+select|0"],
            [b"nopass", b"skip-sanitize-payload", b"~*", b"&*", b"+@all", b"-xgroup|create"],
            [b"(~a +get)", b"()", b"(%R~b &c +@all)"],
            [b'(~"x\'y" +get)', b'(~"a)" ~"b\\"c" ~"d\\\\e" +get)', b"(~(a &b) +get)"],
            [b"~a)b", b'~"q', b"~\\", b"&'x"],
        ],
    )
    def test_what_is_shown_makes_the_same_user(self, users: Users, rules: list[bytes]) -> None:
        line = made(users, *rules).line()
        again = users.new_user(b"u")
        apply_all(users, again, joined(line.split(b" ")[2:]))
        assert again.line() == line
        for left, right in zip(again.selectors, users.every()[1].selectors, strict=True):
            assert left.patterns == right.patterns
            assert left.channels == right.channels


class TestSelector:
    def test_rights_to_keys_are_remembered_for_a_limited_number(self, users: Users) -> None:
        selector = made(users, b"+@all", b"%R~a*").root
        get = command(users, b"get")
        for number in range(5000):
            assert selector.permits(get, [b"get", b"a%d" % number])
            assert not selector.permits(get, [b"get", b"b%d" % number])
            assert len(selector._known) <= 1024
        assert selector.permits(get, [b"get", b"a" * 100_000])
        assert b"a" * 100_000 not in selector._known

    def test_what_is_remembered_ends_with_a_change(self, users: Users) -> None:
        user = made(users, b"+@all", b"~a")
        get = command(users, b"get")
        assert user.denial(get, [b"get", b"a"]) is None
        users.put(changed(users, b"u", [b"resetkeys", b"~b"]))
        assert user.denial(get, [b"get", b"a"]) is not None
        assert user.denial(get, [b"get", b"b"]) is None

    @pytest.mark.parametrize(
        ("rules", "request_", "permitted"),
        [
            ("+@all ~a ~b", "MGET a b", True),
            ("+@all ~a ~b", "MGET a c", False),
            ("+@all ~a", "MGET c a", False),
            ("+@all %R~a %W~b", "COPY a b", True),
            ("+@all %R~a %W~b", "COPY b a", False),
            ("+@all %W~a", "SET a v", False),  # It is asked what it does: allowed, but not at once.
            ("+@all ~a", "SET a v GET", True),
            ("+@all %R~a", "XREADGROUP GROUP g a STREAMS a >", True),
            ("+@all %R~a", "XREADGROUP GROUP a g STREAMS b >", False),
            ("+@all %R~a", "XREAD COUNT STREAMS STREAMS a 0", False),
            ("-@all (+get ~a) (+mget ~b)", "GET a", True),
            ("-@all (+get ~a) (+mget ~b)", "MGET b b", True),
            ("-@all (+get ~a) (+mget ~b)", "GET b", False),
            ("+@all ~a &c", "PUBLISH c x", False),  # Channels are looked at one by one.
        ],
    )
    def test_what_is_certainly_permitted_is_told_at_once(
        self, users: Users, rules: str, request_: str, permitted: bool
    ) -> None:
        user = made(users, *joined(rules.encode().split()))
        args = request_.encode().split()
        command = users.table[args[0].lower()]
        assert user.permits(command, args) is permitted
        if permitted:
            uses = command.key_uses(args)
            selectors = (user.root, *user.selectors)
            assert None in [each.denial(command, args, uses) for each in selectors]

    def test_a_copy_does_not_change_with_the_original(self, users: Users) -> None:
        first = made(users, b"+get", b"~a", b"&c", b"+select|0").root
        twin = first.copy()
        shown = twin.show()
        first.set_all_commands(True)
        first.set_all_keys(True)
        first.set_all_channels(True)
        assert twin.show() == shown
        assert not twin.permits(command(users, b"set"), [b"set", b"a", b"1"])

    def test_a_new_one_allows_nothing(self, users: Users) -> None:
        selector = Selector(users.table)
        assert selector.show() == b"resetchannels -@all"
        denial = selector.denial(command(users, b"get"), [b"get", b"a"], [])
        assert denial is not None
        assert (denial.kind, denial.subject) == ("command", b"get")

    @pytest.mark.parametrize("request_", ["EVAL x", "GET", "MSET", "XREAD", "BITFIELD", "SET"])
    def test_a_request_that_is_too_short_is_looked_at_without_harm(
        self, users: Users, request_: str
    ) -> None:
        user = made(users, b"+@all", b"~a")
        args = request_.encode().split()
        assert user.denial(users.table[args[0].lower()], args) is None
