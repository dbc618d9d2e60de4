"""Every setting of the server, with its default and bounds, and the values that they have."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from server.config.types import (
    INT64_MAX,
    BadSetting,
    Choice,
    Directory,
    Filename,
    Fixed,
    Integer,
    KeyspaceEvents,
    Memory,
    Octal,
    OutputLimits,
    Percentiles,
    SavePoints,
    Setting,
    Switch,
    Words,
)

__all__ = ["SETTINGS", "BadSetting", "Config"]

INT_MAX: Final = 2**31 - 1
MEGABYTE: Final = 1024**2

EVICTION_POLICIES: Final = (
    "volatile-lru",
    "volatile-lfu",
    "volatile-random",
    "volatile-ttl",
    "allkeys-lru",
    "allkeys-lfu",
    "allkeys-random",
    "noeviction",
)
"""What may be evicted where memory is limited; which here it is not."""

SETTINGS: Final[dict[str, Setting]] = {
    setting.name: setting
    for setting in (
        # Where clients connect.
        Words("bind", "127.0.0.1 -::1", mutable=False),
        Integer("port", 6379, 0, 65535, mutable=False),
        Setting("unixsocket", "", mutable=False),
        Octal("unixsocketperm", 0, mutable=False),
        Integer("tcp-backlog", 511, 0, INT_MAX, mutable=False),
        Integer("tcp-keepalive", 300, 0, INT_MAX),
        Integer("timeout", 0, 0, INT_MAX),
        Integer("maxclients", 10000, 1, 2**32 - 1),
        # The process.
        Directory("dir", ".", guarded=True),
        Setting("logfile", "", mutable=False),
        Choice("loglevel", "notice", ("debug", "verbose", "notice", "warning", "nothing")),
        Integer("hz", 10, 0, INT_MAX, clip=500),
        Choice("enable-debug-command", "no", ("no", "yes", "local"), mutable=False),
        # The data.
        Integer("databases", 16, 1, INT_MAX, mutable=False),
        Memory("stream-node-max-bytes", 4096),
        Integer("stream-node-max-entries", 100, 0, INT64_MAX),
        Integer("stream-idmp-duration", 100, 1, 86400),
        Integer("stream-idmp-maxsize", 100, 1, 10000),
        KeyspaceEvents("notify-keyspace-events", ""),
        # Scripts.
        Integer("busy-reply-threshold", 5000, 0, INT64_MAX),
        Integer("lua-time-limit", 5000, 0, INT64_MAX),
        Memory("script-memory-limit", 256 * MEGABYTE, 8 * MEGABYTE),
        # What outlives the process.
        Switch("appendonly", "no"),
        Choice("appendfsync", "everysec", ("everysec", "always", "no")),
        Filename("appendfilename", "appendonly.aof", mutable=False),
        Filename("appenddirname", "appendonlydir", mutable=False),
        Switch("no-appendfsync-on-rewrite", "no"),
        Integer("auto-aof-rewrite-percentage", 100, 0, INT_MAX),
        Memory("auto-aof-rewrite-min-size", 64 * MEGABYTE),
        Switch("aof-load-truncated", "yes"),
        Switch("aof-timestamp-enabled", "no"),
        Fixed(
            Switch("aof-use-rdb-preamble", "no"),
            "the base is written as commands, which Redis reads",
        ),
        # What a client may use up.
        Memory("proto-max-bulk-len", 512 * MEGABYTE, MEGABYTE),
        Memory("client-query-buffer-limit", 1024 * MEGABYTE, MEGABYTE),
        OutputLimits(
            "client-output-buffer-limit",
            {
                "normal": (0, 0, 0),
                "slave": (256 * MEGABYTE, 64 * MEGABYTE, 60),
                "pubsub": (32 * MEGABYTE, 8 * MEGABYTE, 60),
            },
        ),
        # What an operator sees.
        Integer("slowlog-log-slower-than", 10000, -1, INT64_MAX),
        Integer("slowlog-max-len", 128, 0, INT64_MAX),
        Integer("slowlog-entry-max-argc", 32, 2, INT64_MAX),
        Integer("slowlog-entry-max-string-len", 128, 1, INT64_MAX),
        Integer("latency-monitor-threshold", 0, 0, INT64_MAX),
        Switch("latency-tracking", "yes"),
        Percentiles("latency-tracking-info-percentiles", (50.0, 99.0, 99.9)),
        # What clients and start scripts of Redis ask for.
        Fixed(SavePoints("save", ""), "snapshots are taken by SAVE and BGSAVE only"),
        Fixed(Memory("maxmemory", 0), "memory is not limited"),
        Fixed(
            Choice("maxmemory-policy", "noeviction", EVICTION_POLICIES), "no key is ever evicted"
        ),
        Fixed(Switch("protected-mode", "no"), "who may connect is decided by bind alone"),
        Fixed(Switch("daemonize", "no", mutable=False), "the server stays in the foreground"),
    )
}

TWINS: Final = {
    "busy-reply-threshold": "lua-time-limit",
    "lua-time-limit": "busy-reply-threshold",
}
"""Two names of one setting, an older and a newer one: they always have the same value."""

Listener = Callable[[Any], None]


class Config:
    """The values of all settings; read as attributes (``config.tcp_backlog``).

    ``settings`` are texts or values, with ``_`` for ``-`` in their names. ``file`` is the path of
    the configuration file that the server was started with.
    """

    def __init__(self, **settings: Any) -> None:
        self.file: str | None = None
        self._listeners: dict[str, list[Listener]] = {}
        for name, setting in SETTINGS.items():
            self._store(name, setting.default)
        for name, value in settings.items():
            text = ("no", "yes")[value] if isinstance(value, bool) else str(value)
            self.set_text(name.replace("_", "-"), text)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"there is no setting {name.replace('_', '-')!r}")

    def _store(self, name: str, value: Any) -> None:
        setattr(self, name.replace("-", "_"), value)

    def get(self, name: str) -> Any:
        """The value of a setting."""
        return getattr(self, name.replace("-", "_"))

    def get_text(self, name: str) -> str:
        """The value of a setting as text."""
        return SETTINGS[name].show(self.get(name))

    def set_text(self, name: str, text: str) -> None:
        """Sets one setting; raises :class:`BadSetting`."""
        self.change([(name, text)])

    def change(self, texts: Iterable[tuple[str, str]]) -> None:
        """Sets several settings by name and tells those who listen.

        If one of them cannot be set, none is, and :class:`BadSetting` names it.
        """
        before = {}
        after = {}
        for name, text in texts:
            before[name] = self.get(name)
            after[name] = SETTINGS[name].merge(before[name], _parse(name, text))
        try:
            for name, value in after.items():
                self._apply(name, value)
        except BadSetting:
            for name, value in before.items():
                self._apply(name, value)
            raise

    def _apply(self, name: str, value: Any) -> None:
        if value == self.get(name):
            return
        self._store(name, value)
        if name in TWINS:
            self._store(TWINS[name], value)
        for listener in self._listeners.get(name, ()):
            try:
                listener(value)
            except BadSetting as error:
                error.name = name
                raise

    def listen(self, name: str, listener: Listener) -> None:
        """Calls ``listener`` with the value now and whenever it changes.

        It may refuse a value with :class:`BadSetting`; it is then called with the former one.
        """
        self._listeners.setdefault(name, []).append(listener)
        listener(self.get(name))


def _parse(name: str, text: str) -> Any:
    try:
        return SETTINGS[name].parse(text)
    except BadSetting as error:
        error.name = name
        raise
