"""Transcripts: what a server answered, kept as text beside the scripts.

A topic's file has the steps of each case with their replies, as one line where RESP2 and RESP3 have
the same, else as two, each with the name of its protocol in front.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from .player import CLOSED, Observation
from .resp import escape, unescape

TRANSCRIPTS = Path(__file__).parent / "transcripts" / "redis-8.0.6"
PROTOCOLS = (2, 3)
MARKS = ("RESP2 ", "RESP3 ")
Transcript = dict[str, list[tuple[str, bytes]]]


def path_of(folder: Path, topic: str) -> Path:
    """The file that holds a topic's replies."""
    return folder / f"{topic}.txt"


def write(path: Path, cases: Iterable[tuple[str, Sequence[Sequence[Observation]]]]) -> None:
    """Write the observations of a topic's cases, each of one in each of the protocols."""
    lines: list[str] = []
    for name, observations in cases:
        lines.append(f"## {name}")
        for each in zip(*observations, strict=True):
            lines.append(f"> {each[0].step.line}")
            replies = [_text(one.reply) for one in each]
            alike = len(set(replies)) == 1
            lines += replies[:1] if alike else map(str.__add__, MARKS, replies)
        lines.append("")
    path.write_text("\n".join(lines), "utf-8")


def _text(reply: bytes) -> str:
    """A reply as one line."""
    return CLOSED.decode("ascii") if reply == CLOSED else escape(reply)


def read(path: Path) -> dict[int, Transcript]:
    """The steps and replies of each case, by the case's name, by the protocol."""
    found: dict[int, Transcript] = {protocol: {} for protocol in PROTOCOLS}
    name = ""
    lines = iter(path.read_text("utf-8").splitlines())
    for line in lines:
        if line.startswith("## "):
            name = line[3:]
            for transcript in found.values():
                transcript[name] = []
        elif line.startswith("> "):
            reply = next(lines)
            replies = [reply] * len(PROTOCOLS)
            if reply.startswith(MARKS[0]):
                replies = [reply, next(lines)]
                replies = list(map(str.removeprefix, replies, MARKS))
            for transcript, each in zip(found.values(), replies, strict=True):
                transcript[name].append((line[2:], unescape(each)))
    return found
