"""The command ``status``, and the options of ``run`` that put it under watch."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.pipeline.cli_base import FAILED, OK, command
from penstock.terminal import console

if TYPE_CHECKING:
    from penstock.pipeline.cli_base import Commands


def add_watching(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``run`` for those who watch."""
    add = parser.add_argument
    add(
        "--metrics-port",
        metavar="PORT",
        type=_port,
        help="serve series for Prometheus (/metrics) and a page there; 0 takes a free port",
    )
    add(
        "--metrics-bind",
        metavar="HOST",
        default="127.0.0.1",
        help="the address for that (default: 127.0.0.1, which others can't reach)",
    )
    add(
        "--metrics-hosts",
        metavar="NAMES",
        default="",
        help="names with a dot under which that is asked for, with blanks between; * for any",
    )
    add("--status-file", metavar="FILE", type=Path, help="where the status goes")
    add("--spark-ui", action="store_true", help="turn on Spark's own page, and say where it is")


def add_status(commands: Commands) -> None:
    """Adds the command ``status``."""
    text = "Shows how a run is doing: rate, lag, ages, the last error; also when it is dead."
    parser = command(commands, "status", _status, text)
    parser.add_argument("file", metavar="FILE.toml", type=Path)
    parser.add_argument("--status-file", metavar="FILE", type=Path, help="where the run puts it")
    parser.add_argument("--json", action="store_true", help="print an object of JSON")


def _status(given: argparse.Namespace) -> int:
    from penstock.pipeline.config.load import load
    from penstock.pipeline.watch.status_file import default_path, read_status
    from penstock.pipeline.watch.status_text import GOOD, show_status, state_of

    path = given.status_file or default_path(load(given.file))
    status = read_status(path)
    now = time.time()
    if given.json:
        state = state_of(status, now)
        print(json.dumps({**status, "state": state}))
        return OK if state in GOOD else FAILED
    return OK if show_status(console(), status, now) else FAILED


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"'{text}' is no port")
    return int(text)
