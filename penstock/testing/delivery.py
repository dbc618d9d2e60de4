"""Retries, dead letters and retention of a server: its policies, and what it counts of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from penstock.testing.control import Ask, as_dict

_SWITCHES: Final = ("auto_group", "delete", "paused", "reasons")
"""The policies that ``no`` turns off, which ``False`` is for."""


class Policies:
    """Set the policies of consumer groups, and of streams where no group is given.

    Their names are those of the commands, with ``_`` for ``-``. The stream and the group must be
    there. What the server refuses changes nothing and raises :class:`PenstockError`, whose text
    says what is allowed.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def set(
        self, /, stream: str, group: str | None = None, *, db: int = 0, **policies: str | int
    ) -> None:
        """Set policies: ``policies.set("orders", "kitchen", ack_wait="30s", max_pending=10)``.

        ``True`` and ``False`` are ``yes`` and ``no``. Raises :class:`TypeError` for a value that is
        neither text nor an integer, and for ``True`` and ``False`` where ``no`` turns nothing off.
        """
        words = [word for pair in policies.items() for word in _words(*pair)]
        self._policy("SET", stream, group, words, db)

    def get(self, stream: str, group: str | None = None, *, db: int = 0) -> dict[str, str]:
        """Return the policies in force, wherever they come from, with times in milliseconds."""
        found = as_dict(self._policy("GET", stream, group, (), db))
        return {name.replace("-", "_"): value for name, value in found.items()}

    def remove(self, stream: str, group: str | None, *names: str, db: int = 0) -> int:
        """Remove what was set for the group, or for the stream where that is ``None``; return how
        many of these policies it had."""
        removed: int = self._policy("DEL", stream, group, map(_dashed, names), db)
        return removed

    def _policy(
        self, action: str, stream: str, group: str | None, words: Iterable[str | int], db: int
    ) -> Any:
        of_group = () if group is None else ("GROUP", group)
        return self._ask("PENSTOCK", "POLICY", action, stream, *of_group, *words, db=db)


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def _words(name: str, value: str | int) -> tuple[str, str | int]:
    if not isinstance(value, str | int):
        raise TypeError(
            f"{name}: {value!r} is no value; allowed: text such as '30s', an integer, True or False"
        )
    if isinstance(value, bool):
        if name not in _SWITCHES:
            raise TypeError(f"{name} is no switch; {value} is for {', '.join(_SWITCHES)}")
        value = "yes" if value else "no"
    return _dashed(name), value


# --- counts -----------------------------------------------------------------------------------


def stats(ask: Ask, stream: str | None, group: str | None) -> dict[str, Any]:
    """Return what PENSTOCK STATS tells, as dictionaries."""
    if stream is None:
        if group is not None:
            raise TypeError("a group is one of a stream: stats(stream, group)")
        counts = as_dict(ask("PENSTOCK", "STATS"))
        return counts | {"lately": [as_dict(happening) for happening in counts["lately"]]}
    return _nested(ask("PENSTOCK", "STATS", stream, *(() if group is None else (group,))))


def _nested(pairs: list[Any]) -> dict[str, Any]:
    found = as_dict(pairs)
    return {name: _nested(it) if isinstance(it, list) else it for name, it in found.items()}
