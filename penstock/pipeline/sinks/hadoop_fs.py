"""Moves and removes folders on whatever file system Spark writes to."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from penstock.pipeline.errors import PipelineError


class Folders:
    """The file system below one folder, ``root``."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        jvm: Any = spark._jvm
        self._make = jvm.org.apache.hadoop.fs.Path
        self._root = root.rstrip("/")
        configuration = spark._jsc.hadoopConfiguration()
        self._system = self._make(self._root).getFileSystem(configuration)

    def path(self, *parts: str) -> str:
        """The path of a file or folder below the root."""
        return "/".join((self._root, *parts))

    def remove(self, *parts: str) -> None:
        """Removes a file or folder, if it exists."""
        self._system.delete(self._make(self.path(*parts)), True)

    def replace(self, target: str, *source: str) -> None:
        """Replaces a folder by another; raises PipelineError on failure."""
        self.remove(target)
        if not self._system.rename(self._make(self.path(*source)), self._make(self.path(target))):
            raise PipelineError(f"can't rename {self.path(*source)} to {self.path(target)}")
