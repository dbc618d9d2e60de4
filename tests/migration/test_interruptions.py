"""A copy that was cut off at any point is completed by the next run."""

from __future__ import annotations

import contextlib
import subprocess
import sys

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.migration.cutting import CuttingProxy
from tests.migration.running import copy
from tests.migration.streams import COMMANDS, RICH, Client, everything, inside
from tests.property.stream_commands import Words
from tests.support.examples import scaled
from tests.support.process import ROOT

RANDOM = settings(
    max_examples=scaled(15),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def cut_copy(source: Client, target: Client, limit: int | None, cut_source: bool = False) -> int:
    """Copies with so many bytes to one of the servers; returns how many have gone there."""
    with CuttingProxy(source.port if cut_source else target.port, limit) as proxy:
        if cut_source:
            ended = copy(proxy.port, target.port)
        else:
            ended = copy(source.port, proxy.port)
    if ended.status:
        assert "can't be reached: " in ended.err
    return proxy.passed


@RANDOM
@given(part=st.floats(0, 1), cut_source=st.booleans())
def test_wherever_the_connection_is_cut_the_next_run_completes_the_copy(
    source: Client, target: Client, part: float, cut_source: bool
) -> None:
    source.send("FLUSHALL")
    source.script(RICH)
    target.send("FLUSHALL")
    whole = cut_copy(source, target, None, cut_source)
    target.send("FLUSHALL")
    assert cut_copy(source, target, int(whole * part), cut_source) <= whole
    assert copy(source.port, target.port).status == 0
    assert everything(target) == everything(source)


@RANDOM
@given(commands=COMMANDS, limits=st.lists(st.integers(500, 5000), min_size=1, max_size=6))
def test_any_stream_survives_any_number_of_cuts(
    source: Client, target: Client, commands: list[Words], limits: list[int]
) -> None:
    source.send("FLUSHALL")
    target.send("FLUSHALL")
    source.attempt(commands)
    for limit in limits:
        cut_copy(source, target, limit)
    assert copy(source.port, target.port).status == 0
    assert everything(target) == everything(source)


@settings(RANDOM, max_examples=scaled(8))
@given(commands=COMMANDS, limits=st.lists(st.integers(500, 5000), min_size=1, max_size=6))
def test_cuts_on_the_way_to_a_real_server_do_no_harm(
    source: Client, real: Client, commands: list[Words], limits: list[int]
) -> None:
    source.send("FLUSHALL")
    real.send("FLUSHALL")
    source.attempt(commands)
    for limit in limits:
        cut_copy(source, real, limit)
    assert copy(source.port, real.port).status == 0
    assert everything(real) == everything(source)


def killed_at(source: Client, target: Client, length: int) -> None:
    """Starts the command as a process, and kills it when the target has so many entries."""
    lines = ("import sys", "from penstock.migration.cli import main")
    program = "\n".join((*lines, "sys.exit(main(sys.argv[1:], 'import'))"))
    urls = (f"redis://127.0.0.1:{source.port}", "--to", f"redis://127.0.0.1:{target.port}")
    command = [sys.executable, "-c", program, *urls]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as process:
        while target.send("XLEN k") < length:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=0.002)
                break
        process.kill()


def test_a_process_that_is_killed_again_and_again_gets_there(
    source: Client, target: Client
) -> None:
    for start in range(1, 8_001, 1000):
        source.call_all([("XADD", "k", f"1-{start + n}", "n", n) for n in range(1000)])
    source.send("XGROUP CREATE k g 0")
    source.send("XREADGROUP GROUP g ann COUNT 2000 STREAMS k >")
    source.send("XTRIM k MAXLEN 7000")
    for length in (1, 4000):
        killed_at(source, target, length)
    assert copy(source.port, target.port).status == 0
    assert inside(target, "k") == inside(source, "k")
