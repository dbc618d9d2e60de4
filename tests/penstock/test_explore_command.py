"""``penstock explore``: what it prints of a worker, and its exit status."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock import explore_command
from penstock.explore_command import main
from penstock.testing import RemoteServer, exploring
from tests.penstock.explore.processes import CLIENT, MENDED, ONCE, WAITING
from tests.support.ports import free_port
from tests.support.process import ROOT
from tests.support.servers import PenstockThread

COUNTED_ONCE = """
total = ask("GET", "total")
sys.exit(f"total {total}, should be 5" if total != "5" else 0)
"""

NOT_NEGATIVE = """
stock = ask("GET", "stock")
sys.exit(f"stock {stock}" if int(stock) < 0 else 0)
"""

LOOK_THEN_TAKE = """
if int(ask("GET", "stock")) > 0:
    ask("DECRBY", "stock", "1")
"""

FILL = """
ask("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
ask("XADD", "s", "*", "item", "tea")
"""

NODE = """
import net from "node:net";

const url = new URL(process.env.REDIS_URL);
const socket = net.connect(url.port, url.hostname);
const ask = (...words) => new Promise((resolve) => {
  socket.once("data", (data) => resolve(String(data)));
  const parts = words.map((word) => `$${word.length}\\r\\n${word}\\r\\n`);
  socket.write(`*${words.length}\\r\\n${parts.join("")}`);
});
"""

NODE_ONCE = """
if ((await ask("GET", "done")) === "$-1\\r\\n") {
  await ask("INCRBY", "total", "5");
  await ask("SET", "done", "1");
}
socket.end();
"""

NODE_MENDED = """
await ask("MSETNX", "total", "5", "done", "1");
socket.end();
"""

Programs = Callable[[str, str], list[str]]

Explore = Callable[..., tuple[int, str, str]]


@pytest.fixture
def program(tmp_path: Path) -> Programs:
    """Writes a program with a client of its own; returns the command that runs it."""

    def written(name: str, text: str) -> list[str]:
        path = tmp_path / f"{name}.py"
        path.write_text(CLIENT + text)
        return [sys.executable, "-I", "-S", str(path)]

    return written


@pytest.fixture
def check(program: Programs) -> str:
    return shlex.join(program("check", COUNTED_ONCE))


@pytest.fixture
def explore(
    check: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Explore:
    """Explores a worker; returns the exit status and what was printed."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setattr(exploring, "session", exploring.session)

    def explore(
        worker: list[str], *options: str, what: str = "crashes", check: str = check
    ) -> tuple[int, str, str]:
        status = main([what, "--check", check, *options, "--", *worker])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return explore


@pytest.fixture
def explore_orders(explore: Explore, program: Programs) -> Explore:
    """Explores the orders of workers who buy what is there once."""
    fill = shlex.join(program("stock", 'ask("SET", "stock", "1")'))
    check = shlex.join(program("not_negative", NOT_NEGATIVE))

    def explore_orders(workers: list[list[str]], *options: str) -> tuple[int, str, str]:
        words = [word for worker in workers for word in ("--", *worker)][1:]
        return explore(words, "--prepare", fill, *options, what="orders", check=check)

    return explore_orders


def test_a_worker_that_counts_twice_is_reported(explore: Explore, program: Programs) -> None:
    status, out, err = explore(program("worker", ONCE))
    assert (status, err) == (1, "")
    assert out.splitlines() == [
        "2 of 5 scenarios end wrong. The first: crash-after@1",
        "  total 10, should be 5",
        "  the first life of the worker:",
        "        0 GET done",
        "  >     1 INCRBY total 5      crash-after: executed, its reply lost",
        "  the last life:",
        "        0 GET done",
        "        1 INCRBY total 5",
        "        2 SET done 1",
        "  others: crash-before@2",
        "  this one alone: penstock ... --only crash-after@1",
    ]


def test_a_worker_that_is_right_needs_one_line(explore: Explore, program: Programs) -> None:
    assert explore(program("worker", MENDED)) == (0, "2 scenarios\n", "")


def test_one_scenario_runs_alone(explore: Explore, program: Programs) -> None:
    worker = program("worker", ONCE)
    status, out, _ = explore(worker, "--only", "crash-before@2")
    assert (status, out.splitlines()[0]) == (
        *(1, "1 of 1 scenario ends wrong. The first: crash-before@2"),
    )
    assert explore(worker, "--only", "crash-before@1") == (0, "1 scenario\n", "")


def test_kinds_and_a_bound_are_chosen(explore: Explore, program: Programs) -> None:
    options = ("--kinds", "stall,connection-before", "--most", "1")
    status, out, _ = explore(program("worker", MENDED), *options)
    assert (status, out) == (0, "1 of 2 scenarios, most=1\n")


def test_programs_read_a_line_of_json(explore: Explore, program: Programs) -> None:
    worker = program("worker", ONCE)
    status, out, _ = explore(worker, "--json", "--only", "crash-after@1")
    found = json.loads(out)
    assert (status, out.count("\n"), found["test"]) == (1, 1, " ".join(worker))
    assert [outcome["id"] for outcome in found["outcomes"]] == ["crash-after@1"]
    assert found["report"].startswith("1 of 1 scenario ends wrong.")


def test_a_worker_that_waits_is_at_rest_when_all_is_acknowledged(
    explore: Explore, program: Programs
) -> None:
    fill = shlex.join(program("fill", FILL))
    options = ("--prepare", fill, "--done-when-acknowledged", "s", "g")
    status, out, _ = explore(program("worker", WAITING), *options)
    assert (status, out.splitlines()[0]) == (
        *(1, "4 of 6 scenarios end wrong. The first: crash-after@0"),
    )
    assert "  after 6 lives it is not done, and never will be" in out.splitlines()


@pytest.mark.parametrize("mode", [0o755, 0o644])
def test_a_script_may_be_a_file(
    explore: Explore, program: Programs, tmp_path: Path, mode: int
) -> None:
    fill = tmp_path / "fill.sh"
    command = program("fill", 'ask("SET", "done", "1")')
    fill.write_text(f"#!/bin/sh\n{shlex.join(command)}\n")
    fill.chmod(mode)
    status, out, _ = explore(program("worker", ONCE), "--prepare", str(fill))
    assert (status, out.splitlines()[:2]) == (
        *(1, ["without any fault it ends wrong:", "  total None, should be 5"]),
    )


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--prepare", "echo no tea; exit 3"], "echo no tea; exit 3 has failed: no tea"),
        (["--prepare", "exit 3"], "exit 3 has failed: exit 3 ended with status 3"),
        (["--check", "/nowhere/check.sh"], "/nowhere/check.sh cannot be run: "),
        (["--kinds", "crash,fire"], "'fire' is no kind of fault; allowed: crash, "),
        (["--only", "crash@2"], "'crash@2' is no scenario; allowed: "),
        (["--most", "0"], "most is None, or a number above 0, and not 0"),
    ],
)
def test_what_cannot_be_explored_is_told(
    explore: Explore, program: Programs, options: list[str], told: str
) -> None:
    status, out, err = explore(program("worker", MENDED), *options)
    assert (status, out) == (2, "")
    assert err.startswith(f"penstock explore: {told}")


def test_a_worker_that_sends_nothing_is_not_right(explore: Explore) -> None:
    told = "penstock explore: true sends no command to strike: does it use REDIS_URL?\n"
    assert explore(["true"], "--check", "exit 0") == (2, "", told)


def test_a_worker_that_is_not_there_is_named(explore: Explore) -> None:
    told = "penstock explore: /nowhere cannot be started: No such file or directory\n"
    assert explore(["/nowhere"]) == (2, "", told)


def test_a_script_that_does_not_end_is_given_up(
    explore: Explore, program: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explore_command, "SCRIPT_S", 0.1)
    status, _, err = explore(program("worker", MENDED), "--prepare", "sleep 600")
    assert (status, err) == (*(2, "penstock explore: sleep 600 has not ended within 0.1 s\n"),)


USAGES = {
    "crashes": "crashes [option ...] -- COMMAND ...",
    "orders": "orders [option ...] -- COMMAND ... -- COMMAND ...",
}


@pytest.mark.parametrize(
    ("args", "usage", "told"),
    [
        ("crashes --check true", USAGES["crashes"], "the command of the worker is missing: "),
        ("crashes -- true", USAGES["crashes"], "are required: --check"),
        ("orders --check true", USAGES["orders"], "orders are those of two workers or more: "),
        ("orders --check true -- a", USAGES["orders"], "orders are those of two workers or more: "),
        ("orders --check true -- a --", USAGES["orders"], "orders are those of two workers or "),
        ("orders --check true" + " -- a" * 9, USAGES["orders"], "at most 8 workers, and not 9"),
        ("orders --kinds crash -- a -- b", USAGES["orders"], "are required: --check"),
        (
            "orders --check true --preemptions 1.5",
            USAGES["orders"],
            "invalid number or none: '1.5'",
        ),
        ("", "[-h] crashes | orders ...", "are required: crashes | orders"),
    ],
)
def test_what_is_missing_or_too_much_is_told(
    args: str, usage: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(args.split())
    printed = capsys.readouterr().err
    assert ended.value.code == 2
    assert printed.splitlines()[0] == f"usage: penstock explore {usage}"
    assert told in printed


# --- orders -----------------------------------------------------------------------------------


def test_orders_of_two_workers_that_oversell_are_reported(
    explore_orders: Explore, program: Programs
) -> None:
    worker = program("worker", LOOK_THEN_TAKE)
    status, out, err = explore_orders([worker, worker])
    assert (status, err) == (1, "")
    assert out.splitlines() == [
        "2 of 4 orders with at most 1 preemption end wrong. The first: abba",
        "  stock -1",
        "    ann  GET stock",
        "    bob  GET stock",
        "    bob  DECRBY stock 1",
        "    ann  DECRBY stock 1",
        "  others: baab",
        "  this one alone: penstock ... --only abba",
        f"  ann: {shlex.join(worker)}",
        f"  bob: {shlex.join(worker)}",
    ]


def test_one_order_runs_alone_and_programs_read_it(
    explore_orders: Explore, program: Programs
) -> None:
    worker = program("worker", LOOK_THEN_TAKE)
    assert explore_orders([worker, worker], "--only", "aabb") == (0, "1 order\n", "")
    status, out, _ = explore_orders([worker, worker], "--only", "baab", "--json")
    found = json.loads(out)
    text = shlex.join(worker)
    assert (status, found["test"]) == (1, f"{text} -- {text}")
    assert [outcome["id"] for outcome in found["outcomes"]] == ["baab"]
    assert found["report"].startswith("1 of 1 order ends wrong. The first: baab")


@pytest.mark.parametrize(
    ("preemptions", "told"), [("0", "2 orders\n"), ("1", "4 orders\n"), ("none", "4 orders\n")]
)
def test_preemptions_are_bounded(
    explore_orders: Explore, program: Programs, preemptions: str, told: str
) -> None:
    worker = program("worker", 'ask("DECRBY", "stock", "0"); ask("GET", "other")')
    other = program("other", 'ask("INCR", "stock"); ask("SET", "other", "1")')
    options = ("--preemptions", preemptions)
    assert explore_orders([worker, other], *options) == (0, told, "")


def test_orders_have_a_bound(explore_orders: Explore, program: Programs) -> None:
    worker = program("worker", 'ask("INCR", "stock")')
    told = "1 order, most=1\n"
    assert explore_orders([worker, worker], "--most", "1") == (0, told, "")


def test_a_worker_that_is_a_file_may_be_a_script(
    explore_orders: Explore, program: Programs, tmp_path: Path
) -> None:
    script = tmp_path / "seller.sh"
    script.write_text(f"exec {shlex.join(program('worker', LOOK_THEN_TAKE))}\n")
    status, out, _ = explore_orders([[str(script)], [str(script)]])
    assert (status, out.splitlines()[0]) == (
        *(1, "2 of 4 orders with at most 1 preemption end wrong. The first: abba"),
    )


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--only", "abc"], "'abc' is no order of the workers ann, bob"),
        (["--only", "crash-after@2"], "'crash-after@2' is no order of the workers ann, bob"),
        (["--only", "aaab"], "step 2 is one of ann, but only bob can make one"),
        (["--preemptions", "-1"], "preemptions is None, or a number from 0 on, and not -1"),
        (["--prepare", "exit 3"], "exit 3 has failed: exit 3 ended with status 3"),
    ],
)
def test_orders_that_cannot_be_explored_are_told(
    explore_orders: Explore, program: Programs, options: list[str], told: str
) -> None:
    worker = program("worker", LOOK_THEN_TAKE)
    assert explore_orders([worker, worker], *options) == (2, "", f"penstock explore: {told}\n")


def test_a_worker_that_sends_nothing_has_no_orders(
    explore_orders: Explore, program: Programs
) -> None:
    told = "penstock explore: bob, true, sends no command: does it use REDIS_URL?\n"
    worker = program("worker", LOOK_THEN_TAKE)
    assert explore_orders([worker, ["true"]]) == (2, "", told)


# --- a server of one's own ----------------------------------------------------------------------


@pytest.fixture
def own() -> Iterator[RemoteServer]:
    """A server without DEBUG."""
    with PenstockThread() as server, RemoteServer(server.url) as own:
        yield own


def test_a_server_of_ones_own_is_explored_and_empty_afterwards(
    explore: Explore, explore_orders: Explore, program: Programs, own: RemoteServer
) -> None:
    options = ("--server", own.url)
    worker, buyer = program("worker", ONCE), program("buyer", LOOK_THEN_TAKE)
    status, out, err = explore(worker, *options)
    told = "2 of 5 scenarios end wrong. The first: crash-after@1"
    assert (status, out.splitlines()[0], err) == (1, told, "")
    assert explore(program("mended", MENDED), *options) == (0, "2 scenarios\n", "")
    status, out, err = explore_orders([buyer, buyer], *options)
    told = "2 of 4 orders with at most 1 preemption end wrong. The first: abba"
    assert (status, out.splitlines()[0], err) == (1, told, "")
    assert own.ask("DBSIZE") == 0


def test_keys_are_kept_unless_they_may_go(
    explore: Explore, program: Programs, own: RemoteServer
) -> None:
    own.ask("SET", "precious", "1")
    worker = program("worker", MENDED)
    status, out, err = explore(worker, "--server", own.url)
    assert (status, out) == (2, "")
    assert "has 1 key, which would be deleted: name an empty database, or allow" in err
    assert own.ask("GET", "precious") == "1"
    assert explore(worker, "--server", own.url, "--flush") == (0, "2 scenarios\n", "")
    assert own.ask("DBSIZE") == 0


def test_done_is_asked_of_the_same_server(
    explore: Explore, program: Programs, own: RemoteServer
) -> None:
    fill = shlex.join(program("fill", FILL))
    options = ("--prepare", fill, "--done-when-acknowledged", "s", "g", "--only", "crash-after@0")
    worker = program("worker", WAITING)
    status, out, err = explore(worker, *options)
    place = own.url.removeprefix("redis://")
    told = f"  on database 0 of {place}, whose clock shows the real time\n"
    assert explore(worker, "--server", own.url, *options) == (status, out + told, err)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("--kinds failover", "failover undoes writes, which no other server than Penstock can do"),
        ("--kinds crash,power-cut", "power-cut undoes writes, which no other server than "),
        ("--only power-cut@1", "power-cut undoes writes, which no other server than "),
        ("--server rediss://u:secret@localhost", "workers are explored on one server without TLS"),
        ("--server redis://u:secret@h:x", "the URL is one with a bad port, database or host; "),
        ("--server  --flush", "--flush is about the database that --server names"),
    ],
)
def test_what_a_server_of_ones_own_cannot_do_is_told(
    explore: Explore, program: Programs, own: RemoteServer, options: str, told: str
) -> None:
    words = ("--server", own.url, *options.split(" "))
    status, out, err = explore(program("worker", MENDED), *words)
    assert (status, out) == (2, "")
    assert err.startswith(f"penstock explore: {told}")
    assert "secret" not in err


def test_a_server_that_is_not_there_is_told(explore: Explore, program: Programs) -> None:
    place = f"127.0.0.1:{free_port()}"
    told = f"penstock explore: database 0 of {place} can't be reached: Connection refused\n"
    assert explore(program("worker", MENDED), "--server", f"redis://{place}") == (2, "", told)


def test_no_password_is_shown_of_what_is_no_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["crashes", "--check", "true", "--sever", "redis://u:secret@h", "--", "true"])
    assert "secret" not in capsys.readouterr().err


# --- another language -------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "told"),
    [
        (NODE_ONCE, "2 of 5 scenarios end wrong. The first: crash-after@1"),
        (NODE_MENDED, "2 scenarios"),
    ],
    ids=["wrong", "mended"],
)
def test_a_worker_in_node_is_explored(
    explore: Explore, tmp_path: Path, text: str, told: str
) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs Node")
    worker = tmp_path / "worker.mjs"
    worker.write_text(NODE + text)
    status, out, _ = explore([node, str(worker)])
    assert (status, out.splitlines()[0]) == (int("wrong" in told), told)
