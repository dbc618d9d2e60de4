"""The Spark session of a pipeline."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock.pipeline.errors import PipelineError, reason
from penstock.pipeline.model import Pipeline
from penstock.pipeline.run.signals import deaf_children
from penstock.pipeline.run.stderr_filter import StderrFilter

SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Partitions and the order of rows depend on these: a repeated batch needs the same.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.shuffle.partitions": "8",
    # Over TCP every task waits 40 ms for a delayed acknowledgement between Java and Python.
    "spark.python.unix.domain.socket.enabled": "true",
}
"""Settings that replace Spark's defaults unless the file sets them."""


LOGGERS: Final = ("SQLQueryContextLogger", "py4j")
"""Loggers that repeat, with tracebacks, errors that the pipeline reports in one line."""

LAST_WORDS_S: Final = 1.0
JAVA: Final = "spark.driver.extraJavaOptions"
LOGGING: Final = Path(__file__).with_name("log4j2.properties")


def start(pipeline: Pipeline, master: str | None = None, ui: bool = False) -> SparkSession:
    """A session on ``master``, or on the file's, or on what ``spark-submit`` says, or local.

    ``ui`` turns Spark's own page on, as ``spark.ui.enabled`` of the file does. Raises PipelineError
    if the session cannot be started.
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
    settings[JAVA] = " ".join(filter(None, (quiet, settings.get(JAVA))))
    for name, value in settings.items():
        builder = builder.config(name, value)
    stderr_filter = StderrFilter()
    is_quiet = pipeline.log_level == "OFF"
    for name in LOGGERS if is_quiet else ():
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        with stderr_filter.on() if is_quiet else nullcontext(), deaf_children():
            spark = builder.getOrCreate()
    except (PySparkException, Py4JError) as error:
        stderr_filter.wait(LAST_WORDS_S)
        why = stderr_filter.first[0] if stderr_filter.first else reason(error)
        raise PipelineError(f"Spark does not start, for which it needs Java: {why}") from None
    spark.sparkContext.setLogLevel(pipeline.log_level)
    return spark
