"""Reports parts of a pipeline file that conflict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase

from penstock.pipeline.config.table import Table
from penstock.pipeline.model import Pipeline


def check_modes(root: Table, pipeline: Pipeline) -> None:
    """Reports settings that conflict: state in mode group, and a source that reads its output."""
    if pipeline.mode == "group":
        _check_group(root, pipeline)
    _check_cycles(root, pipeline)
    _check_folders(root, pipeline)


def _check_group(root: Table, pipeline: Pipeline) -> None:
    """A repeated batch of a group may hold other rows, which would make state wrong."""
    advice = "mode 'group' keeps no state between batches; use mode 'offsets'"
    for number, transform in enumerate(pipeline.transforms):
        for key in ("watermark", "deduplicate"):
            if getattr(transform, key) is not None:
                root.findings.add(("transform", number, key), advice)
    for number, sink in enumerate(pipeline.sinks):
        if sink.output_mode != "append":
            root.findings.add(("sink", number, "output_mode"), advice)


def _check_cycles(root: Table, pipeline: Pipeline) -> None:
    for number, sink in enumerate(pipeline.sinks):
        if sink.stream is not None and _reads(pipeline, sink.stream, sink.options):
            root.findings.add(("sink", number, "stream"), _cycle(sink.stream))
    dead = pipeline.dead_letters
    if dead is not None and _reads(pipeline, dead.place, dead.options):
        root.findings.add(("dead_letters", "stream"), _cycle(dead.place))


def _cycle(stream: str) -> str:
    return f"is '{stream}', which the source reads: the pipeline would read what it writes"


def _reads(pipeline: Pipeline, stream: str, options: Mapping[str, str]) -> bool:
    from penstock.pipeline.config.same_server import share_server
    from pyspark_redis_streams.values import names

    if not share_server(options, pipeline.source):
        return False
    given = [pipeline.source.get(name) for name in ("subscribe", "subscribePattern")]
    named, patterns = (() if text is None else _try(names, text) for text in given)
    # The server's patterns, except for [^...].
    return stream in named or any(fnmatchcase(stream, p.replace("[^", "[!")) for p in patterns)


def _try(parse: Callable[[str], tuple[str, ...]], text: str) -> tuple[str, ...]:
    try:
        return parse(text)
    except ValueError:
        # It has been reported already.
        return ()


def _check_folders(root: Table, pipeline: Pipeline) -> None:
    taken: dict[str, str] = {pipeline.checkpoint: "the checkpoint"} if pipeline.checkpoint else {}
    for number, sink in enumerate(pipeline.sinks):
        if sink.folder is None:
            continue
        for folder, whose in taken.items():
            if _within(sink.folder, folder) or _within(folder, sink.folder):
                root.findings.add(("sink", number, "path"), f"shares a folder with {whose}")
        taken[sink.folder] = f"sink '{sink.name}'"


def _within(inner: str, outer: str) -> bool:
    return f"{inner.rstrip('/')}/".startswith(f"{outer.rstrip('/')}/")
