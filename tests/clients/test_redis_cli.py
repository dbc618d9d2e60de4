"""redis-cli as a program of its own: one command at a time, fed by pipes, and at a terminal."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pexpect
import pytest

from tests.clients.observing import until
from tests.support.process import end
from tests.support.servers import PenstockThread

PROGRAM = shutil.which("redis-cli") or ""

TIMEOUT_S = 20
"""How long the program may take for anything before the test gives it up."""


def version() -> tuple[int, ...]:
    """That of the installed program, ``(0,)`` if there is none."""
    if not PROGRAM:
        return (0,)
    printed = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True)
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", printed.stdout)
    return tuple(map(int, found.groups())) if found else (0,)


# Version 7 brought --json, and asks the server for the documentation of its commands.
pytestmark = pytest.mark.skipif(version() < (7,), reason="redis-cli 7 or later is not installed")


class Cli:
    """Runs the program; what it is asked comes before its answer."""

    def __init__(self, penstock: PenstockThread) -> None:
        self.address = ["-h", penstock.host, "-p", str(penstock.port)]

    def run(self, *args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [PROGRAM, *self.address, *args],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )

    def __call__(self, *args: str, stdin: str = "") -> str:
        """What it prints."""
        return self.run(*args, stdin=stdin).stdout

    def asked(self, line: str) -> str:
        """What it prints for a command without blanks in its arguments, as at a terminal."""
        return self("--no-raw", *line.split())

    def start(self, *args: str) -> subprocess.Popen[str]:
        """A process that is not waited for."""
        return subprocess.Popen(
            [PROGRAM, *self.address, *args],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.fixture
def cli(penstock: PenstockThread) -> Cli:
    return Cli(penstock)


@pytest.mark.parametrize("option", ["--rdb", "--functions-rdb"])
def test_it_takes_a_snapshot_or_the_functions_of_one(cli: Cli, tmp_path: Path, option: str) -> None:
    code = "#!lua name=library\nredis.register_function('f', function() return 1 end)"
    assert cli("FUNCTION", "LOAD", code) == "library\n"
    assert cli("SET", "key", "value") == "OK\n"
    ended = cli.run(option, str(tmp_path / "taken.rdb"))
    assert ended.returncode == 0, ended.stderr
    taken = (tmp_path / "taken.rdb").read_bytes()
    assert code.encode() in taken
    assert (b"value" in taken) == (option == "--rdb")


def test_it_follows_as_a_replica_that_wants_no_keys(cli: Cli, penstock: PenstockThread) -> None:
    with cli.start("--replica") as follower:
        until(lambda: any(penstock.server.services.replication.following()))
        cli("SET", "key", "value")
        assert follower.stdout is not None
        said = iter(follower.stdout.readline, "")
        lines = [next(said)]
        while '"SET","key","value"' not in lines[-1]:
            lines.append(next(said))
        follower.kill()
        assert follower.stderr is not None
        assert "error" not in "".join(lines).lower() + follower.stderr.read().lower()


@pytest.fixture
def orders(cli: Cli) -> Cli:
    """A stream of two entries whose first one is pending."""
    lines = [
        "XADD orders 1-0 item pen",
        'XADD orders 2-0 item "two \\"pens\\"" note ""',
        "XGROUP CREATE orders packers 0",
        "XREADGROUP GROUP packers ann COUNT 1 STREAMS orders >",
    ]
    cli(stdin="\n".join(lines) + "\n")
    return cli


ENTRIES = """\
1) 1) "1-0"
   2) 1) "item"
      2) "pen"
2) 1) "2-0"
   2) 1) "item"
      2) "two \\"pens\\""
      3) "note"
      4) ""
"""


PRINTED = {
    "PING": "PONG\n",
    "XADD orders 3-0 a b": '"3-0"\n',
    "XADD nothing NOMKSTREAM * a b": "(nil)\n",
    "XLEN orders": "(integer) 2\n",
    "XRANGE orders - +": ENTRIES,
    "XRANGE nothing - +": "(empty array)\n",
    "XRANGE orders - + COUNT 0": "(nil)\n",
    "XREAD STREAMS orders $": "(nil)\n",
    "XREAD BLOCK 1 STREAMS orders $": "(nil)\n",
    "XREAD COUNT 1 STREAMS orders 0": (
        '1) 1) "orders"\n   2) 1) 1) "1-0"\n         2) 1) "item"\n            2) "pen"\n'
    ),
    "XPENDING orders packers": (
        '1) (integer) 1\n2) "1-0"\n3) "1-0"\n4) 1) 1) "ann"\n      2) "1"\n'
    ),
    "XACK orders packers 1-0 2-0": "(integer) 1\n",
    "XINFO GROUPS orders": (
        '1)  1) "name"\n'
        '    2) "packers"\n'
        '    3) "consumers"\n'
        "    4) (integer) 1\n"
        '    5) "pending"\n'
        "    6) (integer) 1\n"
        '    7) "last-delivered-id"\n'
        '    8) "1-0"\n'
        '    9) "entries-read"\n'
        "   10) (integer) 1\n"
        '   11) "lag"\n'
        "   12) (integer) 1\n"
    ),
    "XADD orders 1-0": "(error) ERR wrong number of arguments for 'xadd' command\n",
    "XRANGE orders x +": "(error) ERR Invalid stream ID specified as stream command argument\n",
    "NOSUCH a b": "(error) ERR unknown command 'NOSUCH', with args beginning with: 'a' 'b' \n",
    "XGROUP NOSUCH": "(error) ERR unknown subcommand 'NOSUCH'. Try XGROUP HELP.\n",
    "TYPE orders": "stream\n",
    "CONFIG GET stream-node-max-entries": ('1) "stream-node-max-entries"\n2) "100"\n'),
}
"""What a command prints at a terminal, with the stream of :func:`orders`."""


class TestOneCommand:
    @pytest.mark.parametrize("line", PRINTED)
    def test_its_reply_is_printed(self, orders: Cli, line: str) -> None:
        assert orders.asked(line) == PRINTED[line]

    def test_maps_and_nulls_of_resp3_are_printed_as_such(self, orders: Cli) -> None:
        assert orders("-3", "--no-raw", "XREAD", "COUNT", "1", "STREAMS", "orders", "0") == (
            '1# "orders" => \n   1) 1) "1-0"\n      2) 1) "item"\n         2) "pen"\n'
        )
        assert orders("-3", "--no-raw", "XINFO", "CONSUMERS", "nothing", "x") == (
            "(error) ERR no such key\n"
        )
        assert orders("-3", "--no-raw", "XREAD", "STREAMS", "orders", "$") == "(nil)\n"
        assert orders("-3", "--no-raw", "XINFO", "GROUPS", "orders") == (
            '1) 1# "name" => "packers"\n   2# "consumers" => (integer) 1\n'
            '   3# "pending" => (integer) 1\n   4# "last-delivered-id" => "1-0"\n'
            '   5# "entries-read" => (integer) 1\n   6# "lag" => (integer) 1\n'
        )

    def test_a_deleted_pending_entry_is_nil(self, orders: Cli) -> None:
        orders("XDEL", "orders", "1-0")
        assert orders.asked("XREADGROUP GROUP packers ann STREAMS orders 0") == (
            '1) 1) "orders"\n   2) 1) 1) "1-0"\n         2) (nil)\n'
        )

    def test_raw_csv_and_json(self, orders: Cli) -> None:
        request = ["XRANGE", "orders", "-", "+"]
        assert orders("--raw", *request) == '1-0\nitem\npen\n2-0\nitem\ntwo "pens"\nnote\n\n'
        assert orders("--csv", *request) == (
            '"1-0","item","pen","2-0","item","two \\"pens\\"","note",""\n'
        )
        assert orders("--json", *request) == (
            '[["1-0",["item","pen"]],["2-0",["item","two \\"pens\\"","note",""]]]\n'
        )
        assert orders("--json", "XREAD", "COUNT", "1", "STREAMS", "orders", "0") == (
            '{"orders":[["1-0",["item","pen"]]]}\n'
        )
        assert orders("--json", "XREAD", "STREAMS", "orders", "$") == "null\n"

    def test_an_error_is_an_exit_status_when_it_is_asked_for(self, cli: Cli) -> None:
        ended = cli.run("-e", "XADD", "orders")
        assert ended.returncode == 1
        assert ended.stderr == "ERR wrong number of arguments for 'xadd' command\n"
        assert cli.run("-e", "PING").returncode == 0

    def test_databases_urls_and_repetition(self, cli: Cli, penstock: PenstockThread) -> None:
        assert cli("-n", "3", "XADD", "orders", "1-0", "a", "b") == "1-0\n"
        assert cli("-u", f"{penstock.url}/3", "XLEN", "orders") == "1\n"
        assert cli("-r", "3", "XLEN", "orders") == "0\n0\n0\n"
        assert cli.run("-n", "99", "PING").stderr == (
            "SELECT 99 failed: ERR DB index is out of range\n"
        )

    def test_a_password_that_nobody_asked_for_is_refused(self, cli: Cli) -> None:
        ended = cli.run("--no-auth-warning", "--user", "ann", "--pass", "secret", "PING")
        assert "WRONGPASS invalid username-password pair or user is disabled." in ended.stderr


class TestPipes:
    def test_commands_come_from_standard_input(self, cli: Cli) -> None:
        lines = ["XADD orders 1-0 a b", "", "XLEN orders", "MULTI", "XLEN orders", "EXEC", "FOO"]
        assert cli(stdin="\n".join(lines)) == (
            "1-0\n1\nOK\nQUEUED\n1\nERR unknown command 'FOO', with args beginning with: \n\n"
        )

    def test_the_last_argument_comes_from_standard_input(self, cli: Cli) -> None:
        assert cli("-x", "XADD", "orders", "1-0", "text", stdin="two\r\nlines") == "1-0\n"
        assert cli("--no-raw", "XRANGE", "orders", "-", "+") == (
            '1) 1) "1-0"\n   2) 1) "text"\n      2) "two\\r\\nlines"\n'
        )

    def test_a_mass_of_commands_is_sent_at_once(self, cli: Cli) -> None:
        command = "*5\r\n$4\r\nXADD\r\n$6\r\norders\r\n$1\r\n*\r\n$1\r\na\r\n$1\r\nb\r\n"
        ended = cli.run("--pipe", stdin=command * 20_000)
        assert ended.stdout == (
            "All data transferred. Waiting for the last reply...\n"
            "Last reply received from server.\n"
            "errors: 0, replies: 20000\n"
        )
        assert ended.returncode == 0
        assert cli("XLEN", "orders") == "20000\n"

    def test_failures_in_a_mass_are_counted(self, cli: Cli) -> None:
        ended = cli.run("--pipe", stdin="XADD orders * a 1\r\nXADD orders\r\nXLEN orders\r\n")
        assert ended.stdout.endswith("errors: 1, replies: 3\n")
        assert ended.stderr == "ERR wrong number of arguments for 'xadd' command\n"
        assert ended.returncode == 1


class TestModes:
    def test_keys_are_scanned(self, cli: Cli) -> None:
        cli(stdin="".join(f"XADD stream:{n} 1-0 a b\n" for n in range(25)) + "SET text 1\n")
        found = cli("--scan", "--pattern", "stream:1?").split()
        assert sorted(found) == [f"stream:{n}" for n in range(10, 20)]
        assert len(cli("--scan").split()) == 26

    def test_big_keys_are_found(self, orders: Cli) -> None:
        orders("SET", "text", "value")
        lines = orders("--bigkeys").splitlines()
        assert "Sampled 2 keys in the keyspace!" in lines
        assert "Total key length in bytes is 10 (avg len 5.00)" in lines
        assert "1 streams with 2 entries (50.00% of keys, avg size 2.00)" in lines
        assert "1 strings with 5 bytes (50.00% of keys, avg size 5.00)" in lines
        assert any(
            re.fullmatch(r"Biggest stream +found .*orders.* has 2 entries", line) for line in lines
        )

    def test_keys_that_take_much_memory_are_found(self, orders: Cli) -> None:
        found = re.search(r"Biggest stream +found .*orders.* has (\d+) bytes", orders("--memkeys"))
        assert found is not None
        assert found[1] == orders("MEMORY", "USAGE", "orders").strip()

    def test_latency_is_measured(self, cli: Cli) -> None:
        assert re.fullmatch(r"\d+ \d+ \d+\.\d\d \d+\n", cli("--latency", "-i", "0.1"))

    def test_statistics_are_shown_again_and_again(self, orders: Cli) -> None:
        orders("SET", "text", "value")
        shown = pexpect.spawn(
            PROGRAM, [*orders.address, "--stat", "-i", "0.01"], encoding="utf-8", timeout=TIMEOUT_S
        )
        shown.expect(r"keys +mem +clients +blocked +requests +connections *\r\n")
        line = r"2 +\d+\.\d+[KMG] +1 +0 +\d+ \(\+\d+\) +\d+ *\r\n"
        shown.expect(line)
        shown.expect(line)
        end(shown)

    def test_a_consumer_in_one_process_is_woken_by_another(self, cli: Cli) -> None:
        cli("XGROUP", "CREATE", "orders", "packers", "0", "MKSTREAM")
        request = "XREADGROUP GROUP packers ann BLOCK 0 STREAMS orders >"
        waiting = cli.start("--json", *request.split())
        until(lambda: "blocked_clients:1\n" in cli("INFO", "clients").replace("\r", ""))
        assert cli("XADD", "orders", "1-0", "item", "pen") == "1-0\n"
        printed, complaints = waiting.communicate(timeout=TIMEOUT_S)
        assert (printed, complaints) == ('{"orders":[["1-0",["item","pen"]]]}\n', "")

    def test_a_consumer_that_is_killed_while_it_waits_leaves_nothing_behind(self, cli: Cli) -> None:
        with cli.start("XREAD", "BLOCK", "0", "STREAMS", "orders", "$") as waiting:
            until(lambda: "blocked_clients:1\n" in cli("INFO", "clients").replace("\r", ""))
            waiting.kill()
        until(lambda: "blocked_clients:0\n" in cli("INFO", "clients").replace("\r", ""))


class Terminal:
    """The program as somebody sees it who types; without line editing unless ``term`` has it."""

    def __init__(self, cli: Cli, home: Path, term: str = "dumb", *args: str) -> None:
        self._prompt = f"{cli.address[1]}:{cli.address[3]}"
        self.child: Any = pexpect.spawn(
            PROGRAM,
            [*cli.address, *args],
            env={"HOME": str(home), "TERM": term, "PATH": os.environ["PATH"]},
            encoding="utf-8",
            echo=False,
            timeout=TIMEOUT_S,
            dimensions=(50, 200),
        )
        self.child.delaybeforesend = None
        self.prompt()

    def prompt(self) -> tuple[str, str]:
        """What is printed up to the next prompt, and what the prompt says besides the address."""
        self.child.expect(re.escape(self._prompt) + r"(\S*)> $")
        text: str = self.child.before
        return text.replace("\r", ""), self.child.match[1]

    def ask(self, line: str) -> tuple[str, str]:
        """The same, after a line has been typed."""
        self.child.sendline(line)
        return self.prompt()


@pytest.fixture
def terminal(cli: Cli, tmp_path: Path) -> Iterator[Terminal]:
    terminal = Terminal(cli, tmp_path)
    yield terminal
    end(terminal.child)


class TestAtATerminal:
    def test_replies_are_printed_and_the_prompt_comes_back(self, terminal: Terminal) -> None:
        assert terminal.ask("PING") == ("PONG\n", "")
        assert terminal.ask('XADD orders 1-0 item "a pen"') == ('"1-0"\n', "")
        assert terminal.ask("XRANGE orders - +") == (
            '1) 1) "1-0"\n   2) 1) "item"\n      2) "a pen"\n',
            "",
        )
        assert terminal.ask("2 XLEN orders") == ("(integer) 1\n(integer) 1\n", "")

    def test_errors_are_printed(self, terminal: Terminal) -> None:
        assert terminal.ask("NOSUCH thing") == (
            "(error) ERR unknown command 'NOSUCH', with args beginning with: 'thing' \n",
            "",
        )
        assert terminal.ask("XADD orders") == (
            "(error) ERR wrong number of arguments for 'xadd' command\n",
            "",
        )

    def test_the_prompt_shows_the_database(self, terminal: Terminal) -> None:
        assert terminal.ask("SELECT 3") == ("OK\n", "[3]")
        assert terminal.ask("XLEN orders") == ("(integer) 0\n", "[3]")
        assert terminal.ask("SELECT 99") == ("(error) ERR DB index is out of range\n", "[3]")
        assert terminal.ask("SELECT 0") == ("OK\n", "")

    def test_the_prompt_shows_a_transaction(self, terminal: Terminal) -> None:
        assert terminal.ask("MULTI") == ("OK\n", "(TX)")
        assert terminal.ask("XADD orders 1-0 a b") == ("QUEUED\n", "(TX)")
        assert terminal.ask("XLEN orders") == ("QUEUED\n", "(TX)")
        assert terminal.ask("EXEC") == ('1) "1-0"\n2) (integer) 1\n', "")
        terminal.ask("MULTI")
        assert terminal.ask("DISCARD") == ("OK\n", "")

    def test_a_spoiled_transaction_is_thrown_away(self, terminal: Terminal) -> None:
        terminal.ask("MULTI")
        assert terminal.ask("NOSUCH") == (
            "(error) ERR unknown command 'NOSUCH', with args beginning with: \n",
            "(TX)",
        )
        assert terminal.ask("EXEC") == (
            "(error) EXECABORT Transaction discarded because of previous errors.\n",
            "",
        )

    def test_hello_switches_the_protocol_to_and_fro(self, terminal: Terminal) -> None:
        terminal.ask("XADD orders 1-0 a b")
        greeting, _ = terminal.ask("HELLO 3")
        assert re.sub(r"\(integer\) \d+", "N", greeting) == (
            '1# "server" => "redis"\n2# "version" => "8.10.0"\n3# "proto" => N\n4# "id" => N\n'
            '5# "mode" => "standalone"\n6# "role" => "master"\n7# "modules" => (empty array)\n'
        )
        entries = '1# "orders" => \n   1) 1) "1-0"\n      2) 1) "a"\n         2) "b"\n'
        assert terminal.ask("XREAD STREAMS orders 0") == (entries, "")
        terminal.ask("HELLO 2")
        assert terminal.ask("XREAD STREAMS orders 0")[0].startswith('1) 1) "orders"\n')

    def test_messages_are_read_until_control_c(self, terminal: Terminal, cli: Cli) -> None:
        terminal.child.sendline("SUBSCRIBE news")
        terminal.child.expect_exact('1) "subscribe"\r\n2) "news"\r\n3) (integer) 1\r\n')
        assert "Reading messages... (press Ctrl-C to quit" in self.seen(terminal)
        assert cli("PUBLISH", "news", "hello") == "1\n"
        terminal.child.expect_exact('1) "message"\r\n2) "news"\r\n3) "hello"\r\n')
        terminal.child.sendintr()
        terminal.prompt()
        assert terminal.ask("PING") == ("PONG\n", "")
        until(lambda: cli("PUBLISH", "news", "nobody") == "0\n")

    @staticmethod
    def seen(terminal: Terminal) -> str:
        """What was printed before the reply to SUBSCRIBE, or, by later versions, after it."""
        if "Reading" not in terminal.child.before:
            terminal.child.expect("Reading.*")
            return str(terminal.child.after)
        return str(terminal.child.before)

    def test_help_comes_from_the_server(self, terminal: Terminal, cli: Cli) -> None:
        # The escape sequences are colours.
        text = re.sub(r"\x1b\[\d+m", "", terminal.ask("HELP XGROUP DESTROY")[0])
        lines = [line.strip() for line in text.split("\n") if line]
        assert lines[0] == "XGROUP DESTROY key group"
        assert lines[1].startswith("summary: ")
        assert lines[2:] == ["since: 5.0.0", "group: stream"]
        assert "XNACK" in terminal.ask("HELP @stream")[0]
        statistics = re.search(
            r"cmdstat_command\|docs:calls=1,.*failed_calls=0", cli("INFO", "commandstats")
        )
        assert statistics is not None

    def test_hints_and_completion_know_the_commands(self, cli: Cli, tmp_path: Path) -> None:
        terminal = Terminal(cli, tmp_path, "xterm")
        terminal.child.send("XLEN ")
        terminal.child.expect_exact("XLEN \x1b[0;90;49mkey\x1b[0m")
        terminal.child.send("orders\r")
        terminal.child.expect_exact("(integer) 0\r\n")
        terminal.prompt()  # What is typed before it is thrown away.
        terminal.child.send("xgroup createc\t k g c\r")
        terminal.child.expect_exact("XGROUP CREATECONSUMER k g c")
        terminal.child.expect_exact("requires the key to exist")
        end(terminal.child)

    def test_quit_ends_the_program(self, terminal: Terminal) -> None:
        terminal.child.sendline("QUIT")
        terminal.child.expect(pexpect.EOF)
        terminal.child.close()
        assert terminal.child.exitstatus == 0

    def test_a_lost_connection_is_made_again(self, terminal: Terminal, cli: Cli) -> None:
        assert cli("CLIENT", "KILL", "TYPE", "normal") == "1\n"
        # The next command notices the loss, or is sent again at once: that is a matter of luck.
        terminal.child.sendline("XLEN orders")
        terminal.child.expect(r"(not connected|:\d+)> $")
        assert terminal.ask("XADD orders 1-0 a b") == ('"1-0"\n', "")
