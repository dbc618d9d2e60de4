"""How Java is started: where its archive of classes is, who makes one, and what is left alone."""

from __future__ import annotations

import os
import shlex
import stat
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark import SparkContext

from penstock_pipeline import java
from penstock_pipeline.java import OPTIONS, QUICK, SWITCH, Launch, archive_path
from penstock_pipeline.servers import has_few
from pipeline_tests.commands import process, write
from pipeline_tests.plain.files import pipeline
from pipeline_tests.test_load import LEAST
from source_tests.backends import Backend

LIMIT_S = 180
QUIET = ["-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
MAKING = ["-XX:+RecordDynamicDumpInfo", *QUIET]


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache folder for the test alone, in a process that has started no Java."""
    for name in (SWITCH, "PYSPARK_GATEWAY_PORT", "JAVA_TOOL_OPTIONS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "the cache"))
    monkeypatch.setattr(SparkContext, "_gateway", None)
    return tmp_path / "the cache" / "penstock-pipeline"


@pytest.fixture
def dumped(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that Java was told to write its classes to; it does so at once."""
    files: list[Path] = []

    def dump(file: Path) -> None:
        files.append(file)
        file.write_bytes(b"classes")

    monkeypatch.setattr(java, "_dump", dump)
    return files


def path(**settings: str) -> Path:
    found = archive_path({name.replace("_", "."): value for name, value in settings.items()})
    assert found is not None
    return found


def test_the_first_brief_command_makes_an_archive_and_later_ones_use_it(
    cache: Path, dumped: list[Path]
) -> None:
    launch = Launch(brief=True)
    assert launch.options({}) == MAKING
    launch.keep()
    assert list(cache.iterdir()) == [path()]
    assert dumped != [path()]
    [option, *rest] = Launch().options({})
    assert (shlex.split(option), rest) == ([f"-XX:SharedArchiveFile={path()}"], QUIET)
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700


def test_a_command_that_uses_an_archive_makes_none(dumped: list[Path]) -> None:
    first, second = Launch(brief=True), Launch(brief=True)
    first.options({})
    first.keep()
    second.options({})
    second.keep()
    assert len(dumped) == 1


def test_a_service_makes_no_archive(cache: Path, dumped: list[Path]) -> None:
    launch = Launch()
    assert launch.options({}) == []
    launch.keep()
    assert not dumped
    assert not cache.exists()


def test_two_that_end_together_write_a_file_each_and_one_stays(
    cache: Path, dumped: list[Path]
) -> None:
    both = [Launch(brief=True), Launch(brief=True)]
    assert [launch.options({}) for launch in both] == [MAKING, MAKING]
    for launch in both:
        launch.keep()
    assert len(set(dumped)) == 2
    assert list(cache.iterdir()) == [path()]


@pytest.mark.parametrize("error", [Py4JError("no such command"), OSError("full"), EOFError("x")])
def test_a_dump_that_fails_leaves_nothing_half_done(
    cache: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def dump(file: Path) -> None:
        file.write_bytes(b"half")
        raise error

    monkeypatch.setattr(java, "_dump", dump)
    launch = Launch(brief=True)
    launch.options({})
    if isinstance(error, EOFError):
        with pytest.raises(EOFError):
            launch.keep()
    else:
        launch.keep()
    assert list(cache.iterdir()) == []


def test_a_cache_that_cannot_be_made_is_no_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    launch = Launch(brief=True)
    assert launch.options({}) == []
    launch.keep()


def test_a_machine_without_java_is_told_by_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert archive_path({}) is None


@pytest.mark.parametrize("word", ["off", "OFF", "0", "no"])
def test_the_variable_turns_it_off(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.setenv(SWITCH, word)
    assert Launch(brief=True).options({}) == []


def test_other_jars_and_another_path_of_classes_have_another_archive(tmp_path: Path) -> None:
    jar = tmp_path / "a.jar"
    jar.write_bytes(b"1")
    first = path(spark_jars=str(jar))
    os.utime(jar, (1, 1))
    touched = path(spark_jars=str(jar))
    jar.write_bytes(b"22")
    larger = path(spark_jars=str(jar))
    by_path = path(spark_driver_extraClassPath=str(jar))
    assert len({path(), first, touched, larger, by_path}) == 5
    assert path() == path()


def test_another_java_has_another_archive(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def install(name: str, version: str) -> Path:
        program = tmp_path / name / "bin" / "java"
        program.parent.mkdir(parents=True)
        program.touch(mode=0o755)
        os.utime(program, (1, 1))
        (tmp_path / name / "release").write_text(version)
        return program.parents[1]

    monkeypatch.setenv("JAVA_HOME", str(install("one", "17.0.1")))
    first = path()
    (tmp_path / "one" / "release").write_text("17.0.2")
    updated = path()
    monkeypatch.setenv("JAVA_HOME", str(install("two", "17.0.2")))
    assert len({first, updated, path()}) == 3


@pytest.mark.parametrize(
    "own", ["-Xshare:off", "-XX:SharedArchiveFile=/mine", "-javaagent:/a.jar", "-agentlib:jdwp"]
)
def test_what_the_user_says_about_archives_and_agents_stands(own: str) -> None:
    assert Launch(brief=True).options({OPTIONS: own}) == []


def test_options_of_the_environment_count_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xshare:off -XX:+UseZGC")
    assert Launch(brief=True, quick=True).options({}) == [QUICK[0]]


def test_a_second_collector_is_not_asked_for() -> None:
    found = Launch(quick=True).options({OPTIONS: "-Xss1m -XX:+UseParallelGC"})
    assert found == [QUICK[0]]
    assert Launch(quick=True).options({OPTIONS: "-Xss1m"}) == [*QUICK]


def test_a_java_that_runs_already_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, dumped: list[Path]
) -> None:
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace())
    launch = Launch(brief=True, quick=True)
    assert launch.options({}) == []
    launch.keep()
    assert not dumped


def test_archives_that_nobody_uses_go(cache: Path, dumped: list[Path]) -> None:
    cache.mkdir(parents=True)
    now = time.time()
    ages = {"old.jsa": 40, "used.jsa": 1, "dead.part": 1, "busy.part": 0}
    for name, days in ages.items():
        (cache / name).touch()
        os.utime(cache / name, (now - days * 86400,) * 2)
    launch = Launch(brief=True)
    launch.options({})
    launch.keep()
    assert {file.name for file in cache.iterdir()} == {path().name, "used.jsa", "busy.part"}


def _checked(file: Path) -> tuple[int | None, str, str]:
    running = process("validate", "--sql", file)
    out, err = running.communicate(timeout=LIMIT_S)
    return running.returncode, out, err


def test_java_makes_an_archive_uses_it_and_ignores_one_that_is_damaged(
    cache: Path, tmp_path: Path
) -> None:
    file = write(tmp_path, LEAST)
    good = (0, f"{file}: no problems\n", "")
    assert _checked(file) == good
    [archive] = cache.iterdir()
    made = archive.read_bytes()
    assert len(made) > 1 << 20
    assert _checked(file) == good
    assert archive.read_bytes() == made
    archive.unlink()
    archive.write_bytes(b"\0" * 5000)
    assert _checked(file) == good


# --- Few rows ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "more", "few"),
    [
        ("", "", True),
        ('subscribe_pattern = "ord*"', "", True),
        ("", '[[table]]\nname = "t"\npath = "t"\n', False),
    ],
    ids=["a stream", "a pattern", "a table"],
)
def test_a_source_has_few_rows_by_what_its_streams_hold(
    tmp_path: Path, backend: Backend, server: Any, source: str, more: str, few: bool
) -> None:
    server.xadd("orders", {"a": "1"})
    assert has_few(pipeline(tmp_path, backend.url, source, more)) is few


def test_a_long_stream_has_not_few_rows(
    tmp_path: Path, backend: Backend, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock_pipeline.servers.FEW", 2)
    for held in (1, 2, 3):
        server.xadd("orders", {"a": "1"})
        assert has_few(pipeline(tmp_path, backend.url)) is (held <= 2)
