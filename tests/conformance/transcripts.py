"""Transcripts: what a server answered, kept as text beside the scripts."""

from __future__ import annotations

from pathlib import Path

from .player import CLOSED, Observation
from .resp import escape, unescape

TRANSCRIPTS = Path(__file__).parent / "transcripts" / "redis-8.0.6"
Transcript = dict[str, list[tuple[str, bytes]]]


def path_of(folder: Path, topic: str, protocol: int) -> Path:
    """The file that holds a topic's replies in one protocol."""
    return folder / f"{topic}.resp{protocol}"


def write(path: Path, cases: list[tuple[str, list[Observation]]]) -> None:
    """Write the observations of a topic's cases."""
    lines: list[str] = []
    for name, observations in cases:
        lines.append(f"## {name}")
        for observation in observations:
            lines += [f"> {observation.step.line}", _text(observation.reply)]
        lines.append("")
    path.write_text("\n".join(lines), "utf-8")


def _text(reply: bytes) -> str:
    """A reply as one line."""
    return CLOSED.decode("ascii") if reply == CLOSED else escape(reply)


def read(path: Path) -> Transcript:
    """The steps and replies of each case, by the case's name."""
    transcript: Transcript = {}
    steps: list[tuple[str, bytes]] = []
    lines = iter(path.read_text("utf-8").splitlines())
    for line in lines:
        if line.startswith("## "):
            steps = transcript[line[3:]] = []
        elif line.startswith("> "):
            steps.append((line[2:], unescape(next(lines))))
    return transcript
