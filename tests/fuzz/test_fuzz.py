"""A fixed number of random inputs for each target of the fuzzer, and its corpus again.

``python -m fuzz TARGET --seconds 3600`` goes on where this ends.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from fuzz import runner
from fuzz.__main__ import main
from fuzz.disks import TEARS, torn
from fuzz.mutate import mutated
from fuzz.requests import Requests, commands
from fuzz.sequences import CLIENTS, Step, read, write
from fuzz.targets.base import Broken
from fuzz.targets.disk import LosingDisk
from fuzz.targets.parser import Parser
from tests.support.examples import scaled

RUNS = {
    "parser": 450,
    "dispatcher": 180,
    "disk": 120,
    "loader": 180,
    "lua": 300,
    "payload": 60,
    "rdb": 180,
}
"""How many inputs each target gets where hypothesis tries all of its examples."""

INPUTS = [path for target in sorted(RUNS) for path in sorted((runner.CORPUS / target).glob("*"))]


@pytest.mark.parametrize("target", sorted(RUNS))
def test_every_invariant_holds_for_random_inputs(target: str) -> None:
    campaign = runner.Campaign(target, seed=1)
    failure = campaign.run(runs := scaled(RUNS[target]))
    assert failure is None, f"seed {campaign.seed}: {failure}"
    assert campaign.runs == runs


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_every_invariant_holds_for_the_corpus(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = path.parent.name
    assert runner.replay(target, path) == 0, capsys.readouterr().err


class Hasty(LosingDisk):
    """A server that answers before what was written is safe."""

    policy = "everysec"


def test_a_server_that_does_not_wait_for_the_disk_is_found_out() -> None:
    target = Hasty()
    with pytest.raises(Broken, match="something is lost that was acknowledged"):
        target.run(b"#cut=9999 lie=-1 tear=nothing flips=0 1\n0 SET k v\n0 SET k w\n")
    LosingDisk().run(b"#cut=9999 lie=-1 tear=nothing flips=0 1\n0 SET k v\n0 SET k w\n")


def test_a_file_is_torn_at_sectors() -> None:
    data = b"x" * 2000
    for tear in TEARS:
        for seed in range(20):
            left = torn(Random(seed), tear, 100, data)
            assert left in (b"", data) or tear not in ("nothing", "all")
            if tear == "holes":
                assert len(left) == len(data)
                ends = [412, 924, 1436, 1948]
                parts = [left[a:b] for a, b in zip([0, *ends], [*ends, 2000], strict=True)]
                assert all(set(part) in ({0}, {ord("x")}) for part in parts)
            elif tear == "prefix":
                assert data.startswith(left)
            elif tear == "zeros":
                assert len(left) == len(data)
                assert data.startswith(left.rstrip(b"\0"))


def test_the_same_seed_makes_the_same_inputs() -> None:
    one, other = (
        [runner.TARGETS["dispatcher"]().make(Random(seed)) for seed in range(5)] for _ in range(2)
    )
    assert one == other
    assert len(set(one)) == 5


def test_a_sequence_is_read_as_it_was_written() -> None:
    random = Random(7)
    requests = Requests(random, commands())
    steps: list[Step] = [(random.randrange(CLIENTS), requests.one()) for _ in range(300)]
    steps.insert(5, (500, []))
    assert read(write(steps)) == steps


def test_any_text_is_a_sequence() -> None:
    random = Random(8)
    text = write([(1, [b"SET", b"k", b"v"]), (20, [])])
    for _ in range(300):
        for number, words in read(mutated(random, text, [text])):
            assert number < CLIENTS or not words


class Fragile(Parser):
    """A target that breaks at the third input."""

    count = 0

    def run(self, data: bytes) -> None:
        self.count += 1
        if self.count == 3:
            raise Broken("it broke")


def test_an_input_that_breaks_an_invariant_is_kept_and_can_be_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "CORPUS", tmp_path)
    monkeypatch.setitem(runner.TARGETS, "parser", Fragile)
    assert main(["parser", "--seed", "1", "--runs", "10"]) == 1
    (kept,) = (tmp_path / "parser").iterdir()
    printed = capsys.readouterr()
    assert printed.out == "parser: 3 inputs in 0 s, seed 1\n"
    assert printed.err == f"{kept}: it broke\n"
    assert main(["parser", "--replay", str(kept)]) == 0
    assert capsys.readouterr().out == f"{kept}: every invariant holds\n"
    monkeypatch.setattr(Fragile, "count", 2)
    assert main(["parser", "--replay", str(kept)]) == 1
    assert capsys.readouterr().err == f"{kept}: it broke\n"


def test_an_exception_is_told_with_where_it_came_from() -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        Random(1).choice([1]) / 0
    assert "test_fuzz.py" in runner.told(raised.value)
