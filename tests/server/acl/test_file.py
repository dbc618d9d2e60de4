"""The file of users: what may be in it, what is wrong with it, and how it is replaced."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from server.config.file import ConfigError, read_text
from server.config.registry import Config
from tests.support.direct import Direct, DirectClient

DEFAULT = "user default on nopass sanitize-payload ~* &* +@all"
UNCHANGED = (
    "WARNING: ACL errors detected, no change to the previously active ACL rules was performed"
)
UNKNOWN = "Unknown command or category name in ACL"


class Setup:
    """A server with a file of users that is empty, and a client."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "users.acl"
        self.path.write_text("")
        self.direct = Direct(aclfile=str(self.path))
        self.client = self.direct.client()

    def load(self, text: str | bytes) -> str:
        """What ACL LOAD says to such a file, whose path it calls FILE."""
        self.path.write_bytes(text if isinstance(text, bytes) else text.encode())
        reply = self.client.send("ACL", "LOAD")
        assert reply is not None
        return reply.decode().replace(str(self.path), "FILE").rstrip("\r\n")

    def lines(self) -> list[str]:
        return [line.decode() for line in self.direct.server.state.users.lines()]


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    return Setup(tmp_path)


def log_in(client: DirectClient, name: str) -> DirectClient:
    assert client.send("AUTH", name, "x") == b"+OK\r\n"
    return client


class TestLoad:
    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ("user b on  nopass\n", "user b on nopass sanitize-payload resetchannels -@all"),
            ("\tuser b on\r\n\n  \n", "user b on sanitize-payload resetchannels -@all"),
            ('user "q" on', 'user "q" on sanitize-payload resetchannels -@all'),
            (
                "user b (+get ~a) (+set)",
                "user b off sanitize-payload resetchannels -@all"
                " (~a resetchannels -@all +get) (resetchannels -@all +set)",
            ),
            (
                "user b +hset|a (-@all +blpop -module|load)",
                "user b off sanitize-payload resetchannels -@all +hset|a"
                " (resetchannels -@all +blpop -module|load)",
            ),
            (
                "# a comment\n  # another one\nuser b on\n#user c on\n",
                "user b on sanitize-payload resetchannels -@all",
            ),
        ],
    )
    def test_users_are_read(self, setup: Setup, text: str, line: str) -> None:
        assert setup.load(text) == "+OK"
        assert setup.lines() == sorted([line, DEFAULT])

    @pytest.mark.parametrize(
        ("text", "reply"),
        [
            ("foo b on\n", "FILE:1 should start with user keyword followed by the username. "),
            ("user\n", "FILE:1 should start with user keyword followed by the username. "),
            ("USER b\n", "FILE:1 should start with user keyword followed by the username. "),
            ("user  b on\n", "FILE:1: Syntax error. "),
            ("user b +get|\n", "FILE:1: Syntax error. "),
            ("user b ~a\tb\n", "FILE:1: Syntax error. "),
            ("user b (on)\n", "FILE:1: Syntax error. "),
            ("user b (+get\n", "FILE:1: Syntax error. "),
            ("user b (+get +set\nuser c foo", "FILE:1: Syntax error. FILE:2: Syntax error. "),
            ("user b +nocmd\n", f"FILE:1: Error in applying operation '+nocmd': {UNKNOWN}. "),
            (
                "user b (+nocmd)\n",
                f"FILE:1: Error in applying operation '(+nocmd)': {UNKNOWN}. ",
            ),
            (
                "user b +xgroup|create|x\n",
                "FILE:1: Allowing first-arg of a subcommand is not supported. ",
            ),
            (
                "user b <x\n",
                "FILE:1: The password you are trying to remove from the user does not exist. ",
            ),
            ("user b on\nuser b off\n", "WARNING: Duplicate user 'b' found on line 2. "),
            ("user a\tb on\n", "'FILE:1: username 'a\tb' contains invalid characters. "),
            (
                "user b +nocmd\n\nuser c foo +get\nuser b on\n",
                f"FILE:1: Error in applying operation '+nocmd': {UNKNOWN}. FILE:3: Syntax error."
                " WARNING: Duplicate user 'b' found on line 4. ",
            ),
        ],
    )
    def test_errors_are_named_and_change_nothing(self, setup: Setup, text: str, reply: str) -> None:
        setup.client.send("ACL", "SETUSER", "kept", "on")
        before = setup.lines()
        assert setup.load(text) == f"-ERR {reply}{UNCHANGED}"
        assert setup.lines() == before

    def test_a_missing_file_is_named(self, setup: Setup) -> None:
        setup.path.unlink()
        assert setup.client.send("ACL", "LOAD") == (
            b"-ERR Error loading ACLs, opening file '%b': No such file or directory\r\n"
            % bytes(setup.path)
        )

    def test_the_default_user_is_as_at_first_unless_it_is_in_the_file(self, setup: Setup) -> None:
        assert setup.load("user default on >pw +@all ~a") == "+OK"
        assert not setup.direct.server.state.users.default_is_open()
        assert setup.client.send("GET", "b") == b"-NOPERM No permissions to access a key\r\n"
        assert setup.load("") == "+OK"
        assert setup.lines() == [DEFAULT]

    def test_users_that_stay_keep_their_connections_with_the_new_rules(self, setup: Setup) -> None:
        setup.load("user a on nopass +@all ~*\nuser b on nopass +@all ~*")
        first = log_in(setup.direct.client(), "a")
        second = log_in(setup.direct.client(), "b")
        assert setup.load("user b on >changed -@all +ping") == "+OK"
        assert first.closed
        assert second.send("PING") == b"+PONG\r\n"
        assert second.send("GET", "k") == (
            b"-NOPERM User b has no permissions to run the 'get' command\r\n"
        )


class TestSave:
    def test_the_file_is_what_there_is(self, setup: Setup) -> None:
        setup.load("# comment\nuser b on >pw ~a")
        setup.client.send("ACL", "SETUSER", "a", "off", "(+get ~x)")
        assert setup.client.send("ACL", "SAVE") == b"+OK\r\n"
        assert setup.path.read_text().splitlines() == setup.lines()
        assert setup.path.stat().st_mode & 0o777 == 0o600
        assert os.listdir(setup.path.parent) == ["users.acl"]
        before = setup.lines()
        assert setup.client.send("ACL", "LOAD") == b"+OK\r\n"
        assert setup.lines() == before

    def test_a_file_that_cannot_be_written_stays(self, setup: Setup) -> None:
        setup.path.unlink()
        setup.path.mkdir()
        assert setup.client.send("ACL", "SAVE") == (
            b"-ERR There was an error trying to save the ACLs. Please check the server logs for"
            b" more information\r\n"
        )
        assert os.listdir(setup.path.parent) == ["users.acl"]


class TestConfiguration:
    @staticmethod
    def lines(text: str) -> list[str]:
        """The users of a server with such a configuration."""
        config = Config()
        read_text(config, text.encode(), "a.conf")
        direct = Direct()
        direct.server.state.config.user_lines = config.user_lines
        direct.server.services.access.configure()
        return [line.decode() for line in direct.server.state.users.lines()]

    def test_user_lines_make_users(self) -> None:
        assert self.lines('user b on "(+get" "~a)" >x\nuser a\nUSER default on nopass ~*') == [
            "user a off sanitize-payload resetchannels -@all",
            "user b on sanitize-payload"
            " #2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
            " resetchannels -@all (~a resetchannels -@all +get)",
            "user default on nopass sanitize-payload ~* resetchannels -@all",
        ]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("user", "a.conf, line 1: user: wrong number of arguments"),
            (
                "user a on\nuser a off",
                "a.conf, line 2: Error in user declaration 'a': Duplicate user found."
                " A user can only be defined once in config files",
            ),
            ("user a foo", "a.conf, line 1: Error in user declaration 'a': Syntax error"),
            ("user a (on", "a.conf, line 1: Error in user declaration 'a': Wrong format"),
            (
                "\nuser a +nocmd",
                "a.conf, line 2: Error loading ACL rule '+nocmd' for the user named 'a':"
                f" {UNKNOWN}",
            ),
            ('user "a b" on', "a.conf, line 1: Spaces not allowed in ACL usernames"),
        ],
    )
    def test_a_line_that_is_wrong_is_named(self, text: str, message: str) -> None:
        with pytest.raises(ConfigError) as raised:
            self.lines(text)
        assert str(raised.value) == message

    def test_users_come_from_one_place(self, setup: Setup) -> None:
        setup.direct.server.state.config.user_lines = {"a": ("here", ["on"])}
        with pytest.raises(ConfigError, match="define either an ACL file or declare users"):
            setup.direct.server.services.access.configure()

    def test_a_file_that_cannot_be_used_prevents_the_start(self, tmp_path: Path) -> None:
        path = tmp_path / "users.acl"
        path.write_text("user b foo")
        with pytest.raises(ConfigError) as raised:
            Direct(aclfile=str(path))
        assert str(raised.value) == (
            f"Aborting startup because of ACL errors: {path}:1: Syntax error. {UNCHANGED}"
        )

    def test_a_file_of_users_counts_more_than_the_required_password(self, tmp_path: Path) -> None:
        path = tmp_path / "users.acl"
        path.write_text("")
        direct = Direct(aclfile=str(path), requirepass="sesame")
        assert direct.server.state.users.default_is_open()
        assert direct.client().send("CONFIG", "GET", "requirepass") == (
            b"*2\r\n$11\r\nrequirepass\r\n$6\r\nsesame\r\n"
        )

    def test_rewriting_replaces_lines_of_users_in_their_places(self, tmp_path: Path) -> None:
        path = tmp_path / "a.conf"
        path.write_text("user z on\n# users\nuser y on\ntimeout 0\n")
        client = Direct().client()
        client.server.state.config.file = str(path)
        client.send("ACL", "SETUSER", "a", "on", '(~"x)" +get)')
        client.send("ACL", "SETUSER", "b", "on", ">x")
        assert client.send("CONFIG", "REWRITE") == b"+OK\r\n"
        text = path.read_text()
        lines = text.splitlines()
        assert lines[0] == (
            r'user a on sanitize-payload resetchannels -@all "(\"~x)\"" resetchannels -@all +get)'
        )
        assert lines[1] == "# users"
        assert lines[2].startswith("user b on sanitize-payload #2d711642b726b04401627ca9fbac32f5")
        assert lines[3:6] == ["timeout 0", "", "# Generated by CONFIG REWRITE"]
        assert lines[-1] == DEFAULT
        users = [line.decode() for line in client.server.state.users.lines()]
        assert self.lines("".join(f"{line}\n" for line in lines if line[:4] == "user")) == users

    def test_rewriting_leaves_users_out_where_there_is_a_file_of_them(self, setup: Setup) -> None:
        path = setup.path.parent / "a.conf"
        path.write_text(f"aclfile {setup.path}\n")
        setup.direct.server.state.config.file = str(path)
        setup.client.send("ACL", "SETUSER", "a", "on")
        assert setup.client.send("CONFIG", "REWRITE") == b"+OK\r\n"
        assert "user" not in path.read_text().replace(str(setup.path), "")
