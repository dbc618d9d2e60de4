"""What ``penstock --help`` prints: how the command is used, and a sentence for each setting.

The sentences are in settings.ini; docs/configuration.md says more.
"""

from __future__ import annotations

import shutil
import textwrap
from configparser import ConfigParser
from pathlib import Path
from typing import Final

from server.config.registry import Config

USAGE: Final = """\
Usage: penstock [FILE.conf] [--NAME VALUE ...] [-]     starts a server
       penstock TOOL ...                               (TOOL --help says more)

The server:
  penstock --port 7000                    (-p 7000)
  penstock /etc/penstock.conf --loglevel verbose
  echo 'port 7000' | penstock -           (the configuration from standard input)
  penstock -v | --version
  penstock -h | --help

A running Penstock, Redis or Valkey (--url, or the variable PENSTOCK_URL):
  penstock top [PATTERN]                  consumer groups, those in trouble first, live
  penstock groups [PATTERN]               the same once, as a table or as JSON
  penstock tail STREAM                    entries as they are added
  penstock dead list | show | redrive | delete ...     dead letters
  penstock doctor                         what is misconfigured, and how to fix it

Data:
  penstock check-aof [--fix [--yes]] FOLDER | MANIFEST | FILE
  penstock import URL [--to URL] ...      streams from another server, or from an RDB file
  penstock export URL [--from URL] ...    streams to another server
  penstock pipeline new | run | validate | status ...  streams into tables, with Spark

Tests and shells:
  penstock debug [--url URL] fault | clock | snapshot | trace | wait ...
  penstock explore crashes --check check.sh -- COMMAND ...   a worker, struck at each command
  penstock explore orders --check check.sh -- COMMAND ... -- COMMAND ...   workers in every order
  penstock completion bash | zsh | fish

Every setting of a configuration file is also an option; options override files. Other settings of
Redis 8.0 are accepted without effect, or refused with a message that says what to do instead.
"""


def sentences() -> dict[str, dict[str, str]]:
    """Return what each setting is for, by what it is about and its name."""
    # No value has a special meaning: a percent sign is one.
    found = ConfigParser(interpolation=None, delimiters=("=",))
    found.read(Path(__file__).with_name("settings.ini"), encoding="utf-8")
    return {title: dict(found[title]) for title in found.sections()}


def usage() -> str:
    """Return what ``--help`` prints."""
    config = Config()
    width = min(max(shutil.get_terminal_size().columns, 40), 100)
    lines = [USAGE]
    for title, about in sentences().items():
        lines.append(f"{title}:")
        for name, sentence in about.items():
            text = "." if name == "dir" else config.get_text(name)
            default = f" {text}" if text else ""
            lines.append(f"  --{name}{default}")
            lines.append(
                textwrap.fill(sentence, width, initial_indent=" " * 6, subsequent_indent=" " * 6)
            )
        lines.append("")
    return "\n".join(lines).rstrip()
