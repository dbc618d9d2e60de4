"""How Spark's Java is started: with its classes from an archive, and quickly where rows are few.

Java reads and checks some 15,000 classes out of Spark's jars whenever it starts. The first short
command that ends well keeps them in an archive below the user's cache folder, from which later
ones map them. docs/decisions/0052-archived-classes.md says why it is done so.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.find_spark_home import _find_spark_home

OPTIONS: Final = "spark.driver.extraJavaOptions"
"""Spark's setting with the options of the driver's Java."""

QUICK: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""For a minute of work: compile soon instead of well, and collect garbage with one thread."""

SWITCH: Final = "PENSTOCK_CLASS_ARCHIVE"
"""The variable that is ``off`` where no archive is wanted."""

_OTHERS: Final = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
"""Variables that give Java options as well."""

_CLASS_PATH: Final = (
    *("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath"),
    *("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_DIST_CLASSPATH"),
)
"""Settings and variables that Java's path of classes depends on."""

_COLLECTOR: Final = re.compile(r"-XX:\+Use\w+GC\b")
_OWN_ARCHIVE: Final = re.compile(r"-Xshare|-agent|-javaagent|Archive|DynamicDump")

UNUSED_S: Final = 30 * 86400.0
"""How long an archive is kept that nobody uses."""

HALF_DONE_S: Final = 3600.0
"""How long after its beginning an archive is still being written, at most."""


class Launch:
    """A start of Java for one command.

    Only a ``brief`` command makes an archive: it takes Java some seconds, which a service has not
    when it stops. A ``quick`` one has few rows.
    """

    def __init__(self, brief: bool = False, quick: bool = False) -> None:
        self._brief = brief
        self._quick = quick
        self._target: Path | None = None

    def options(self, settings: Mapping[str, str]) -> list[str]:
        """Return the options for Java, beside those that the user gives in Spark's settings."""
        if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
            # Java runs already.
            return []
        given = " ".join([settings.get(OPTIONS, ""), *(os.environ.get(n, "") for n in _OTHERS)])
        quick = QUICK[: 1 if _COLLECTOR.search(given) else 2] if self._quick else ()
        return [*quick, *([] if _OWN_ARCHIVE.search(given) else self._of_archive(settings))]

    def _of_archive(self, settings: Mapping[str, str]) -> Iterator[str]:
        path = archive_path(settings)
        if path is None:
            return
        if path.is_file():
            with suppress(OSError):
                os.utime(path)
            yield f"-XX:SharedArchiveFile={_quoted(str(path))}"
        elif self._brief and _is_writable(path.parent):
            self._target = path
            yield "-XX:+RecordDynamicDumpInfo"
        else:
            return
        yield "-Xlog:cds=off"
        yield "-Xlog:cds+dynamic=off"

    def keep(self) -> None:
        """Has Java write the archive if there is none. Whatever fails leaves things as they were.

        It is complete when it gets its name, so commands that end together do not disturb each
        other, and the last one wins.
        """
        path = self._target
        if path is None:
            return
        if sys.stderr.isatty():
            print("keeping Java's classes, so that it starts faster from now on", file=sys.stderr)
        made = path.with_suffix(f".{secrets.token_hex(4)}.part")
        try:
            _tidy(path.parent)
            _dump(made)
            os.replace(made, path)
        except (OSError, Py4JError):
            pass
        finally:
            made.unlink(missing_ok=True)


def archive_path(settings: Mapping[str, str]) -> Path | None:
    """Return where the archive of this Java and these jars is; None if there is to be none."""
    if os.environ.get(SWITCH, "").lower() in ("off", "0", "false", "no"):
        return None
    try:
        given = Path(os.environ.get("XDG_CACHE_HOME", ""))
        cache = given if given.is_absolute() else Path.home() / ".cache"
        known = "\n".join(map(repr, (*_java(), *_classes(settings))))
    except (OSError, RuntimeError):
        return None
    name = f"classes-{sha256(known.encode(errors='surrogateescape')).hexdigest()[:24]}.jsa"
    path = cache / "penstock-pipeline" / name
    # Java takes what is behind a colon for a second archive.
    return None if os.pathsep in str(path) else path


def _java() -> Iterator[object]:
    """Yield what tells one Java from another; raises OSError if none is found."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=f"{home}/bin" if home else None)
    if found is None:
        raise FileNotFoundError("java")
    program = Path(found).resolve()
    yield _identity(program)
    release = program.parents[1] / "release"
    yield release.read_bytes() if release.is_file() else b""


def _classes(settings: Mapping[str, str]) -> Iterator[object]:
    """Yield what tells one path of classes from another; raises OSError."""
    yield from (settings.get(name, os.environ.get(name)) for name in _CLASS_PATH)
    yield from map(_identity, sorted(Path(_find_spark_home(), "jars").iterdir()))
    extra = settings.get("spark.jars", "").split(",")
    extra += settings.get("spark.driver.extraClassPath", "").split(os.pathsep)
    yield from (_identity(Path(jar)) for jar in extra if jar and Path(jar).is_file())


def _identity(file: Path) -> tuple[str, int, int]:
    found = file.stat()
    return str(file), found.st_size, found.st_mtime_ns


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def _quoted(text: str) -> str:
    """A word of Spark's settings for Java, which are split as a shell does it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _tidy(folder: Path) -> None:
    """Removes archives that nobody uses any more, and what was left half done; raises OSError."""
    now = time.time()
    for file in folder.iterdir():
        limit = UNUSED_S if file.suffix == ".jsa" else HALF_DONE_S
        if file.stat().st_mtime < now - limit:
            file.unlink(missing_ok=True)


def _dump(file: Path) -> None:
    """Has Java write the classes that it has loaded to a file, as ``jcmd PID VM.cds`` does.

    Raises Py4JError and OSError.
    """
    gateway: Any = SparkContext._gateway
    lang = gateway.jvm.java.lang
    # It says on standard output what it does.
    lang.System.setOut(lang.System.err)
    beans = lang.management.ManagementFactory.getPlatformMBeanServer()
    name = gateway.jvm.javax.management.ObjectName("com.sun.management:type=DiagnosticCommand")

    def array(kind: Any, *members: Any) -> Any:
        made = gateway.new_array(kind, len(members))
        for index, member in enumerate(members):
            made[index] = member
        return made

    words = array(lang.Object, array(lang.String, "dynamic_dump", f'"{file}"'))
    types = ["javax.management.ObjectName", "java.lang.String"]
    types += ["[Ljava.lang.Object;", "[Ljava.lang.String;"]
    # The class of the bean is none that others may call, so its interface is.
    server = lang.Class.forName("javax.management.MBeanServer")
    invoke = server.getMethod("invoke", array(lang.Class, *map(lang.Class.forName, types)))
    signature = array(lang.String, "[Ljava.lang.String;")
    invoke.invoke(beans, array(lang.Object, name, "vmCds", words, signature))
