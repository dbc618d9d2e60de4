"""The status file of a run: written while it runs, and read when it may be dead."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from penstock.pipeline.errors import PipelineError
from penstock.pipeline.model import Pipeline

EVERY_S: Final = 2.0
"""How often the file is written, which is also the sign of life."""


def default_path(pipeline: Pipeline) -> Path:
    """Beside the checkpoints if these are on this machine, else beside the pipeline's file."""
    if "://" not in pipeline.checkpoint:
        return Path(pipeline.checkpoint.removeprefix("file:")) / "status.json"
    return pipeline.file.with_name(f".{pipeline.name}.status.json")


def write_status(path: Path, snapshot: dict[str, Any]) -> None:
    """Puts a new file into the place of the old one in one step; raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    new.write_text(json.dumps(snapshot), encoding="utf-8")
    new.replace(path)


def read_status(path: Path) -> dict[str, Any]:
    """What a run has written; raises PipelineError."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise PipelineError(
            f"there is no '{path}': the pipeline has not been run here, or its file says another "
            "checkpoint; --status-file names another place"
        ) from None
    except OSError as error:
        raise PipelineError(f"can't read '{path}': {error.strerror}") from None
    except ValueError:
        raise PipelineError(f"'{path}' is no status file") from None
    if not isinstance(found, dict) or found.get("v") != 1:
        raise PipelineError(f"'{path}' is no status file of this version")
    return found


@contextlib.contextmanager
def kept_up(
    path: Path, snapshot: Callable[[], dict[str, Any]], beat: Callable[[], object]
) -> Iterator[None]:
    """Writes the file now, every two seconds, and at the end; ``beat`` is called as often.

    Raises PipelineError if it can't be written at the start. Later on a full disk only makes it
    old: the pipeline is more important.
    """
    try:
        write_status(path, snapshot())
    except OSError as error:
        raise PipelineError(f"can't write the status to '{path}': {error.strerror}") from None
    over = threading.Event()

    def keep() -> None:
        beat()
        while not over.wait(EVERY_S):
            beat()
            with contextlib.suppress(OSError):
                write_status(path, snapshot())

    thread = threading.Thread(target=keep, name="status", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        beat()
        with contextlib.suppress(OSError):
            write_status(path, snapshot())
