"""The commands of a worker, as a report shows them and as two runs of it are compared."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from penstock.testing.trace import OWN_ACCOUNT

UNCOUNTED: Final = OWN_ACCOUNT | {"INFO", "PING", "READONLY"}
"""Commands that client libraries send by themselves, more or less often; no fault strikes them."""

WITHOUT_EFFECT: Final = frozenset({"DISCARD", "MULTI", "UNWATCH", "WATCH"})
"""Commands that change nothing but what the server knows of their connection."""

LONGEST_WORD: Final = 60
"""How many characters of a word are shown."""

LONGEST_COMMAND: Final = 150
"""How many characters of a command are shown."""

_TIMEOUT_AT: Final = {
    **dict.fromkeys(("BLMPOP", "BZMPOP"), 1),
    **dict.fromkeys(("BLMOVE", "BLPOP", "BRPOP", "BRPOPLPUSH", "BZPOPMAX", "BZPOPMIN"), -1),
}
"""The commands that always wait, and where their timeout stands."""

_VARYING: Final = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?"
    r"|\d{10,}-\d+"
    r"|[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}"
    r"|[0-9a-fA-F]{16,}"
    r"|\d{9,}(?:\.\d+)?"
)
"""What differs from run to run: IDs of entries, UUIDs, digests and tokens, times."""


@dataclass(frozen=True)
class Call:
    """A command that a worker has sent."""

    words: tuple[str, ...]
    reads: bool = False
    """Whether it changes nothing on the server."""
    queued: bool = False
    """Whether it was queued in a transaction, which EXEC runs."""

    @property
    def name(self) -> str:
        """Return the first word in capital letters."""
        return self.words[0].upper()

    @property
    def writes(self) -> bool:
        """Whether it may have changed data when it was answered."""
        return not self.reads and not self.queued

    def __str__(self) -> str:
        return _cut(" ".join(_cut(word, LONGEST_WORD) for word in self.words), LONGEST_COMMAND)

    @property
    def shape(self) -> str:
        """Return the command without what differs from run to run."""
        return _VARYING.sub("?", " ".join(self.words))


def _cut(text: str, length: int) -> str:
    text = text.replace("\r", "\\r").replace("\n", "\\n")
    return text if len(text) <= length else text[: length - 3] + "..."


def waits(words: Sequence[str]) -> bool:
    """Whether a command may wait for what others do."""
    return timeout_at(words) is not None


def timeout_at(words: Sequence[str]) -> int | None:
    """Return where the timeout stands of a command that may wait; ``None`` for another one."""
    name, place = words[0].upper(), 1
    if name not in ("XREAD", "XREADGROUP"):
        at = _TIMEOUT_AT.get(name)
        return None if at is None else at % len(words)
    while place < len(words) and (word := words[place].upper()) != "STREAMS":
        if word == "BLOCK":
            return place + 1
        place += 3 if word == "GROUP" else 1
    return None


@dataclass(frozen=True)
class Divergence:
    """The first command that was another one than in the first run."""

    k: int
    was: str
    """The command of the first run; empty if it had ended."""
    became: str
    """The command that came instead; empty if there was none."""

    def __str__(self) -> str:
        return f"command {self.k} was {self.was or 'not there'}, now {self.became or 'none'}"


def first_difference(
    first: Sequence[Call], now: Sequence[Call], until: int | None = None
) -> Divergence | None:
    """Return where a run differs from the first one, of which the commands before ``until`` are
    compared, or all of both."""
    length = max(len(first), len(now)) if until is None else min(until, len(first))
    for k in range(length):
        was, became = (calls[k] if k < len(calls) else None for calls in (first, now))
        if (was and was.shape) != (became and became.shape):
            return Divergence(k, str(was or ""), str(became or ""))
    return None
