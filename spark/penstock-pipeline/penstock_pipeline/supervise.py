"""Runs a pipeline: starts Spark and the queries, monitors them, restarts failed ones, stops them.

Spark is started without what Java and its workers print.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any, Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock_pipeline import java
from penstock_pipeline.errors import InvalidFile, PipelineError, Problem, failure_of, reason
from penstock_pipeline.java import Launch
from penstock_pipeline.model import Pipeline
from penstock_pipeline.queries import queries, query_names
from penstock_pipeline.report import Reporter, now_text
from penstock_pipeline.runs import Ended, Run, Stopping, follow
from penstock_pipeline.servers import has_few, preflight
from penstock_pipeline.terminal import shown

SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Partitions and the order of rows depend on these: a repeated batch needs the same.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    # Spark's default is nanoseconds, in which pandas and Arrow read 9999 as 1816.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.streaming.metricsEnabled": "false",
    # A kill while the first batch is noted leaves a file there, which would end every later run.
    "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
    "spark.sql.shuffle.partitions": "8",
    # Over TCP every task waits 40 ms for a delayed acknowledgement between Java and Python.
    "spark.python.unix.domain.socket.enabled": "true",
}
"""Settings that replace Spark's defaults unless the file sets them."""


LOGGERS: Final = ("SQLQueryContextLogger", "py4j")
"""Loggers that repeat, with tracebacks, errors that the pipeline reports in one line."""

LAST_WORDS_S: Final = 1.0
ENDING: Final = ("-XX:+ExitOnOutOfMemoryError", "-XX:+DisplayVMOutputToStderr")
"""Without memory a thread of Java dies alone, and who waits for it waits for ever. What Java says
as it ends does not belong to standard output."""

LOGGING: Final = Path(__file__).with_name("log4j2.properties")


def start(
    pipeline: Pipeline, master: str | None = None, ui: bool = False, launch: Launch | None = None
) -> SparkSession:
    """A session on ``master``, or on the file's, or on what ``spark-submit`` says, or local.

    ``ui`` turns Spark's own page on, as ``spark.ui.enabled`` of the file does; ``launch`` says how
    Java is started. Raises PipelineError if the session cannot be started.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(pipeline.name)
    address = master or pipeline.master
    if address is None and "PYSPARK_GATEWAY_PORT" not in os.environ:
        address = "local[*]"
    if address is not None:
        builder = builder.master(address)
    settings = {"spark.log.level": pipeline.log_level, **SETTINGS, **pipeline.spark}
    if ui:
        settings["spark.ui.enabled"] = "true"
    quiet = f"-Dlog4j2.configurationFile={LOGGING.as_uri()}"
    more = launch.options(settings) if launch else ()
    # What the user gives comes last, and wins.
    settings[java.OPTIONS] = " ".join([quiet, *ENDING, *more, settings.get(java.OPTIONS, "")])
    for name, value in settings.items():
        builder = builder.config(name, value)
    stderr_filter = StderrFilter()
    is_quiet = pipeline.log_level == "OFF"
    if is_quiet:
        for name in LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        logging.getLogger().addFilter(_is_not_of_py4j)
    try:
        with stderr_filter.on() if is_quiet else nullcontext(), deaf_children():
            spark = builder.getOrCreate()
    except (PySparkException, Py4JError) as error:
        stderr_filter.wait(LAST_WORDS_S)
        why = stderr_filter.first[0] if stderr_filter.first else reason(error)
        raise PipelineError(f"Spark does not start, for which it needs Java: {why}") from None
    spark.sparkContext.setLogLevel(pipeline.log_level)
    if is_quiet:
        # It prints a traceback when Java is gone, which the run says in a sentence.
        server: Any = spark.sparkContext._accumulatorServer
        server.handle_error = lambda request, address: None
    return spark


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    """Whether a record is none of py4j, which logs some of its errors as nobody's."""
    return Path(record.pathname).parent.name != "py4j"


# --- Signals -------------------------------------------------------------------------------------


_deaf = 0
_is_registered = False


@contextmanager
def deaf_children() -> Iterator[None]:
    """Children that are started meanwhile ignore SIGTERM."""
    global _deaf, _is_registered
    if not _is_registered:
        # It can't be taken back, so it asks whether it is wanted. A Popen with a `preexec_fn`, as
        # PySpark's is, calls it between fork and exec.
        os.register_at_fork(after_in_child=_ignore)
        _is_registered = True
    _deaf += 1
    try:
        yield
    finally:
        _deaf -= 1


def _ignore() -> None:
    if _deaf:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


# --- Standard error ------------------------------------------------------------------------------


WARNINGS: Final = "stream '"
"""How the warnings of the data source begin."""

KEPT: Final = 20
STANDARD_ERROR: Final = 2


class StderrFilter:
    """Captures the standard error of the processes that are started while :meth:`on` lasts."""

    def __init__(self) -> None:
        self.first: list[str] = []
        """The first lines that were captured."""
        self._done = threading.Event()

    @contextmanager
    def on(self) -> Iterator[None]:
        """Filters processes that are started meanwhile, and their children, until they end."""
        reading, writing = os.pipe()
        saved = os.dup(STANDARD_ERROR)
        threading.Thread(target=self._read, args=(reading,), daemon=True).start()
        os.dup2(writing, STANDARD_ERROR)
        os.close(writing)
        try:
            yield
        finally:
            os.dup2(saved, STANDARD_ERROR)
            os.close(saved)

    def wait(self, seconds: float) -> None:
        """Waits until all filtered processes have ended, or until the timeout."""
        self._done.wait(seconds)

    def _read(self, descriptor: int) -> None:
        with open(descriptor, encoding="utf-8", errors="backslashreplace") as lines:
            for line in lines:
                if len(self.first) < KEPT:
                    self.first.append(line.rstrip("\n"))
                if line.startswith(WARNINGS):
                    print(shown(line.rstrip("\n")), file=sys.stderr, flush=True)
        self._done.set()


# --- Queries -------------------------------------------------------------------------------------


JAVA_IS_GONE: Final = (
    "Spark's Java process has ended, as when it is killed; "
    "start the pipeline again, it goes on from its checkpoint"
)
OUT_OF_MEMORY: Final = (
    "Spark's Java process has run out of memory ({memory}): raise 'spark.driver.memory' in "
    "[spark.conf], so that the batch fits, and set max_bytes_per_trigger in [source] to keep later "
    "ones smaller; start the pipeline again, it goes on from its checkpoint"
)
OUT_OF_MEMORY_STATUS: Final = 3
"""The exit status of Java with the first of :data:`ENDING`."""

LAST_BREATH_S: Final = 5.0


def run(
    pipeline: Pipeline,
    make_reporter: Callable[[Sequence[str]], Reporter],
    once: bool,
    master: str | None,
    ui: bool = False,
) -> None:
    """Runs a pipeline until it is done (``once``) or a signal comes; raises PipelineError.

    The servers are asked first: what is wrong there is found without waiting for Spark. ``ui``
    turns Spark's own page on.
    """
    launch = Launch()
    stopping = Stopping()
    stopping.install()
    with make_reporter(query_names(pipeline)) as reporter:
        try:
            for output in pipeline.outputs:
                output.require()
            for warning in preflight(pipeline):
                reporter.warn(warning)
            if once:
                launch = Launch(brief=True, quick=has_few(pipeline))
            if not stopping.asked:
                _run_queries(pipeline, reporter, stopping, once, launch, master, ui)
        except Ended:
            raise
        except PipelineError as error:
            reporter.fail(failure_of(now_text(), None, error, 1, 0, 0))
            raise
    reporter.summary()
    if not stopping.asked:
        launch.keep()


def _run_queries(
    pipeline: Pipeline,
    reporter: Reporter,
    stopping: Stopping,
    once: bool,
    launch: Launch,
    master: str | None,
    ui: bool,
) -> None:
    spark = start(pipeline, master, ui, launch)
    # Spark installs a handler for SIGINT, which is replaced here.
    stopping.install()
    if ui and spark.sparkContext.uiWebUrl:
        reporter.say(f"Spark's page: {spark.sparkContext.uiWebUrl}")
    with ExitStack() as stack:
        stack.callback(_quietly, spark.stop)
        runs: list[Run] = []
        try:
            for query in queries(spark, pipeline):
                runs.append(Run(query, pipeline.retry, once, reporter))
                stack.callback(_quietly, runs[-1].stop)
            follow(runs, stopping)
        except Py4JJavaError:
            raise
        except (Py4JError, ConnectionError):
            # Without an answer py4j raises one or the other of its errors.
            raise PipelineError(_why_java_is_gone(spark, pipeline)) from None


def _why_java_is_gone(spark: SparkSession, pipeline: Pipeline) -> str:
    gateway: Any = spark.sparkContext._gateway
    # spark-submit has started this process, and not the other way round.
    process = getattr(gateway, "proc", None)
    try:
        status = None if process is None else process.wait(LAST_BREATH_S)
    except TimeoutExpired:
        status = None
    if status != OUT_OF_MEMORY_STATUS:
        return JAVA_IS_GONE
    memory = pipeline.spark.get("spark.driver.memory", "1g, Spark's default")
    return OUT_OF_MEMORY.format(memory=memory)


def _quietly(stop: Callable[[], object]) -> None:
    """Calls what ends something of Java's, which may have ended already."""
    with suppress(Py4JError, ConnectionError):
        stop()


def check_sql(pipeline: Pipeline) -> None:
    """Has Spark analyse every query; raises InvalidFile with the line of what it refuses."""
    launch = Launch(brief=True, quick=True)
    spark = start(replace(pipeline, spark={}), "local[1]", launch=launch)
    try:
        queries(spark, pipeline)
    except PipelineError as error:
        raise InvalidFile(str(pipeline.file), [_problem(pipeline, str(error))]) from None
    finally:
        spark.stop()
    launch.keep()


def _problem(pipeline: Pipeline, text: str) -> Problem:
    for number, transform in enumerate(pipeline.transforms):
        if text.startswith(f"transform '{transform.name}'"):
            return Problem(transform.sql_line, f"transform[{number + 1}]", text)
    return Problem(0, "", text)
