"""Each benchmark runs, with next to nothing to do, and reports; figures are never judged."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

if sys.platform != "linux":  # pragma: no cover
    pytest.skip("the harness reads the accounting of Linux", allow_module_level=True)

from benchmarks import __main__, instructions, policies, startup
from benchmarks.driver import Client
from benchmarks.servers import Kind, Running, ServerError, find_kinds
from benchmarks.workloads import WORKLOADS
from server.config.policies import ALL

NAMES = [
    *("varied-p8", "varied-p8-commands", "xadd", "xadd-p16", "xadd-100x100"),
    *("xadd-100x100-plainly", "policies", "wake-up", "xadd-always", "load"),
]


@pytest.mark.slow
def test_everything_that_is_asked_for_is_measured_once_and_told(tmp_path: Path) -> None:
    options = ["--short", "--share-cores", "--servers", "penstock,uvloop"]
    folders = ["--output", str(tmp_path), "--images", str(tmp_path)]
    names = [*NAMES, "curve-groups", "pause-del", "pause-rewrite"]
    assert __main__.main([*options, *folders, *names]) == 0
    found = json.loads((tmp_path / "latest.json").read_text())
    assert [one["name"] for one in found["measurements"]] == NAMES
    for one in found["measurements"]:
        [values] = one["values"]["penstock"]
        assert all(value > 0 for value in values.values())
    floor = {one["name"] for one in found["measurements"] if "uvloop" in one["values"]}
    assert floor == {"xadd", "wake-up"}
    assert [target["met"] for target in found["targets"]] == [None] * len(found["targets"])
    assert [one["workload"] for one in found["fast_way"]] == ["xadd-100x100"]
    assert [len(load["costs"]["penstock"]) for load in found["curves"][0]["loads"]] == [3] * 3
    assert [pause["name"] for pause in found["pauses"]] == ["pause-del", "pause-rewrite"]
    page = (tmp_path / "commands.md").read_text()
    assert "| XADD, 50 clients, pipeline 16 | <= 0.85 | - | - | - |" in page


@pytest.mark.slow
@pytest.mark.skipif(None in instructions.PROGRAMS, reason="valgrind is not there")
def test_the_dearest_functions_of_a_workload_are_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert instructions.main(["ping", "--server", "uvloop", "--scale", "0.01", "--top", "3"]) == 0
    total, *functions = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"[0-9,]{4,} instructions by command, 100 of them", total)
    costs = [int(line.split()[0].replace(",", "")) for line in functions]
    assert len(costs) == 3
    assert costs == sorted(costs, reverse=True)


def test_a_start_is_measured_and_a_server_that_is_not_there_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "startup.md"
    options = ["--rounds", "1", "--servers", "penstock,nobody", "--output", str(page)]
    assert startup.main(options) == 0
    printed, told = capsys.readouterr()
    assert told == "nobody is left out: it was not found\n"
    titles = [line.split("|")[1].strip() for line in printed.splitlines()[2:]]
    assert titles == ["Penstock", startup.FIXTURE, startup.ASYNCIO]
    assert page.read_text().endswith(printed)


def test_every_policy_is_measured() -> None:
    names = {word for words in policies.POLICIES.values() for word in words[::2]}
    assert names == {name.decode() for name in ALL}


def test_each_policy_lets_a_hundred_entries_through_at_a_time() -> None:
    [kind], _ = find_kinds(["penstock"])
    with Running(kind) as server:
        for words in policies.POLICIES.values():
            assert policies.cost(server, words, 2 * policies.COUNT) > 0
            with Client(server.address) as client:
                client.call("FLUSHALL")


def test_a_server_that_does_not_start_says_why() -> None:
    kind = Kind("penstock", "Penstock", lambda _: [sys.executable, "-c", "1 / 0"], "")
    failure = "Penstock did not start: ZeroDivisionError: division by zero"
    with pytest.raises(ServerError, match=failure), Running(kind):
        pytest.fail("it cannot have started")  # pragma: no cover


def test_workloads_can_be_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["--list"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed[: len(WORKLOADS)] == [workload.name for workload in WORKLOADS]


def test_a_name_that_no_workload_has_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["no-such-workload"]) == 2
    assert "no workload has such a name" in capsys.readouterr().err
