"""Puts a run under watch: its state, the status file, and HTTP if it is asked for."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from penstock.extras import extra_missing
from penstock.pipeline.errors import PipelineError
from penstock.pipeline.model import Pipeline
from penstock.pipeline.status import LetterCounts, RunState, default_path, kept_up


class Watch(NamedTuple):
    """What is asked for: where the status goes, and where HTTP is, if anywhere, and under which
    names beside addresses and names without a dot."""

    status_file: Path | None = None
    host: str = "127.0.0.1"
    port: int | None = None
    names: str = ""


@contextmanager
def watched(pipeline: Pipeline, queries: Sequence[str], watch: Watch) -> Iterator[RunState]:
    """The state of a run, which others see until the block ends; raises PipelineError.

    A status file that can't be written is only told, since the pipeline can do without.
    """
    with ExitStack() as stack:
        letters = stack.enter_context(closing(LetterCounts(pipeline)))
        state = RunState(pipeline.name, queries, letters.counts)
        if watch.port is not None:
            url = stack.enter_context(_serve(state, watch.host, watch.port, watch.names))
            print(f"metrics and page: {url}", file=sys.stderr)
        path = watch.status_file or default_path(pipeline)
        try:
            stack.enter_context(kept_up(path, state.snapshot, letters.poll))
        except PipelineError as error:
            print(f"warning: {error}", file=sys.stderr)
        try:
            yield state
        except BaseException as error:
            state.end(str(error) or type(error).__name__)
            raise
        state.end(None)


@contextmanager
def _serve(state: RunState, host: str, port: int, names: str) -> Iterator[str]:
    try:
        from penstock.pipeline.status_http import served
    except ModuleNotFoundError as error:
        raise PipelineError(extra_missing("--metrics-port", error.name, "web")) from None
    with served(state.snapshot, host, port, names) as url:
        yield url
