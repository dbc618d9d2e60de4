"""``penstock explore``: what it prints of a worker, and its exit status."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock import explore_command
from penstock.explore_command import main
from penstock.testing import exploring
from tests.penstock.explore.processes import CLIENT, MENDED, ONCE, WAITING
from tests.support.process import ROOT

COUNTED_ONCE = """
total = ask("GET", "total")
sys.exit(f"total {total}, should be 5" if total != "5" else 0)
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

    def explore(worker: list[str], *options: str) -> tuple[int, str, str]:
        status = main(["crashes", "--check", check, *options, "--", *worker])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return explore


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


@pytest.mark.parametrize("args", [["crashes", "--check", "true"], ["crashes", "--", "true"], []])
def test_what_is_missing_is_told(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(args)
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("usage: penstock explore crashes [option ...] --")


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
