"""Faults that a test asks the server for."""

from __future__ import annotations

from typing import Any

from penstock.testing.control import Ask, as_dict


class Fault:
    """A fault that was added; as a context manager it is cleared at the end of the block."""

    def __init__(self, ask: Ask, number: int, times: int | None) -> None:
        self._ask = ask
        self._struck_at_end = times
        self.number = number
        """The number under which DEBUG FAULT LIST shows it."""

    @property
    def struck(self) -> int:
        """How many commands it has struck; after :meth:`clear`, until then."""
        counts = [fault["struck"] for fault in _listed(self._ask) if fault["id"] == self.number]
        return int(counts[0] if counts else self._struck_at_end or 0)

    def clear(self) -> None:
        """Ends it, if it has not struck as often as it was to."""
        self._struck_at_end = self.struck
        self._ask("DEBUG", "FAULT", "CLEAR", self.number)

    def __enter__(self) -> Fault:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()


class Faults:
    """Lets things go wrong on the server, for the clients of a test. All ends before each test."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def add(
        self,
        command: str,
        action: str,
        *values: str | int,
        key: str | None = None,
        client: str | None = None,
        after: int | None = None,
        times: int | None = None,
        probability: float | None = None,
        seed: int | None = None,
    ) -> Fault:
        """Lets commands of this name fail, ``*`` for all of them.

        ``action`` and its ``values`` are what DEBUG FAULT ADD takes: ``"ERROR", "ERR no"``,
        ``"DELAY", 500``, ``"CLOSE"``, ``"RESET"``, ``"CUT", 3``, ``"DROP"``, ``"NOREPLY"`` or the
        name of an error such as ``"LOADING"``. It strikes commands one of whose keys fits ``key``,
        of connections whose name fits ``client``, not the first ``after`` of them, then so many
        ``times``, and with this ``probability``, which is the same each time for the same ``seed``.

        Raises :class:`PenstockError` if the server refuses that.
        """
        options = {
            "KEY": key,
            "CLIENT": client,
            "AFTER": after,
            "TIMES": times,
            "PROBABILITY": probability,
            "SEED": seed,
        }
        words = [word for pair in options.items() if pair[1] is not None for word in pair]
        number = self._ask("DEBUG", "FAULT", "ADD", command, *words, action, *values)
        return Fault(self._ask, number, times)

    def list(self) -> list[dict[str, Any]]:
        """The faults that are not over, as DEBUG FAULT LIST describes them."""
        return _listed(self._ask)

    def clear(self) -> None:
        """Ends all faults, those of the disk and of a failover too."""
        self._ask("DEBUG", "FAULT", "CLEAR")

    def failover(self, ms: int) -> None:
        """Shows clients what they see when another server takes over: readers that wait get
        UNBLOCKED, for so many milliseconds writes get READONLY, then all connections are closed."""
        self._ask("DEBUG", "FAULT", "FAILOVER", ms)

    def freeze(self, ms: int) -> None:
        """Answers nobody for so many milliseconds; connections stay open."""
        self._ask("DEBUG", "FAULT", "FREEZE", ms)

    def disk(self, state: str, ms: int | None = None) -> None:
        """Sets how the disk of the append-only file is: ``"full"``, ``"slow"`` (each sync takes
        ``ms`` longer), each sync is an ``"error"``, or it is ``"ok"`` again."""
        self._ask("DEBUG", "FAULT", "DISK", state, *(() if ms is None else (ms,)))


def _listed(ask: Ask) -> list[dict[str, Any]]:
    return [as_dict(fault) for fault in ask("DEBUG", "FAULT", "LIST")]
