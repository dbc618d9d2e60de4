"""Every setting of the server, with its default and bounds, and the values that they have."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from server.config.policies import StreamPolicies
from server.config.types import (
    INT64_MAX,
    BadSetting,
    Choice,
    Directory,
    Filename,
    FilenameOrNone,
    Fixed,
    Integer,
    KeyspaceEvents,
    Memory,
    Octal,
    OutputLimits,
    Percentiles,
    PerUser,
    ReadFile,
    SavePoints,
    Setting,
    Share,
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
        Switch("protected-mode", "yes"),
        Integer("tcp-backlog", 511, 0, INT_MAX, mutable=False),
        Integer("tcp-keepalive", 300, 0, INT_MAX),
        Integer("timeout", 0, 0, INT_MAX),
        Integer("maxclients", 10000, 1, 2**32 - 1),
        # TLS, which `port` does not speak.
        Integer("tls-port", 0, 0, 65535, mutable=False),
        ReadFile("tls-cert-file"),
        ReadFile("tls-key-file"),
        Setting("tls-key-file-pass", ""),
        ReadFile("tls-ca-cert-file"),
        ReadFile("tls-ca-cert-dir"),
        Choice("tls-auth-clients", "yes", ("no", "yes", "optional")),
        Choice("tls-auth-clients-user", "off", ("off", "CN")),
        Words("tls-protocols", ""),
        Setting("tls-ciphers", ""),
        Fixed(Setting("tls-ciphersuites", ""), "the ssl module of Python uses those of OpenSSL"),
        Switch("tls-prefer-server-ciphers", "no"),
        ReadFile("tls-dh-params-file"),
        Switch("tls-session-caching", "yes"),
        Fixed(Switch("tls-replication", "no"), "the server is no replica of another"),
        Fixed(Switch("tls-cluster", "no"), "there is no cluster"),
        # Who may connect.
        Setting("requirepass", ""),
        Setting("aclfile", "", mutable=False),
        Integer("acllog-max-len", 128, 0, INT64_MAX),
        Choice("acl-pubsub-default", "resetchannels", ("allchannels", "resetchannels")),
        # The process.
        Directory("dir", ".", guarded=True),
        Setting("logfile", "", mutable=False),
        Choice("loglevel", "notice", ("debug", "verbose", "notice", "warning", "nothing")),
        Integer("hz", 10, 0, INT_MAX, clip=500),
        Choice("enable-debug-command", "no", ("no", "yes", "local"), mutable=False),
        # What an operator sees.
        Integer("metrics-port", 0, 0, 65535, mutable=False),
        Words("metrics-bind", "127.0.0.1 -::1", mutable=False),
        Words("metrics-streams", "*"),
        Switch("metrics-consumers", "no"),
        Integer("metrics-max-series", 500_000, 0, INT_MAX),
        Switch("web-page", "yes"),
        Switch("web-actions", "no"),
        Words("web-hosts", ""),
        # The data.
        Integer("databases", 16, 1, INT_MAX, mutable=False),
        Memory("stream-node-max-bytes", 4096),
        Integer("stream-node-max-entries", 100, 0, INT64_MAX),
        Integer("stream-idmp-duration", 100, 1, 86400),
        Integer("stream-idmp-maxsize", 100, 1, 10000),
        KeyspaceEvents("notify-keyspace-events", ""),
        StreamPolicies("stream-policy"),
        # Scripts.
        Integer("busy-reply-threshold", 5000, 0, INT64_MAX),
        Integer("lua-time-limit", 5000, 0, INT64_MAX),
        Memory("script-memory-limit", 256 * MEGABYTE, 8 * MEGABYTE),
        # What outlives the process.
        Switch("appendonly", "no"),
        Choice("appendfsync", "everysec", ("everysec", "always", "no")),
        Filename("appendfilename", "appendonly.aof", mutable=False),
        Filename("appenddirname", "appendonlydir", mutable=False),
        FilenameOrNone("dbfilename", "", guarded=True),
        Switch("no-appendfsync-on-rewrite", "no"),
        Integer("auto-aof-rewrite-percentage", 100, 0, INT_MAX),
        Memory("auto-aof-rewrite-min-size", 64 * MEGABYTE),
        Switch("aof-load-truncated", "yes"),
        Switch("aof-timestamp-enabled", "no"),
        Fixed(
            Switch("aof-use-rdb-preamble", "no"),
            "the base is written as commands, which Redis reads",
        ),
        # Replicas.
        Memory("repl-backlog-size", MEGABYTE, 1),
        Integer("repl-backlog-ttl", 3600, 0, INT64_MAX),
        Integer("repl-timeout", 60, 1, INT_MAX),
        Integer("repl-ping-replica-period", 10, 1, INT_MAX),
        Integer("repl-ping-slave-period", 10, 1, INT_MAX),
        Integer("min-replicas-to-write", 0, 0, INT_MAX),
        Integer("min-slaves-to-write", 0, 0, INT_MAX),
        Integer("min-replicas-max-lag", 10, 0, INT_MAX),
        Integer("min-slaves-max-lag", 10, 0, INT_MAX),
        Integer("shutdown-timeout", 10, 0, INT_MAX),
        # What data and clients may use up.
        Memory("maxmemory", 0),
        Share("maxmemory-clients", (0, 0)),
        Integer("tracking-table-max-keys", 1_000_000, 0, INT64_MAX),
        PerUser("user-max-connections"),
        PerUser("user-max-commands-per-second"),
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
        Fixed(
            Choice("maxmemory-policy", "noeviction", EVICTION_POLICIES), "no key is ever evicted"
        ),
        Fixed(Switch("daemonize", "no", mutable=False), "the server stays in the foreground"),
    )
}

_PAIRS: Final = (
    ("busy-reply-threshold", "lua-time-limit"),
    ("repl-ping-replica-period", "repl-ping-slave-period"),
    ("min-replicas-to-write", "min-slaves-to-write"),
    ("min-replicas-max-lag", "min-slaves-max-lag"),
)

TWINS: Final = dict(_PAIRS) | {older: newer for newer, older in _PAIRS}
"""Two names of one setting, an older and a newer one: they always have the same value."""

Listener = Callable[[Any], None]


class Config:
    """The values of all settings; read as attributes (``config.tcp_backlog``).

    ``settings`` are texts or values, with ``_`` for ``-`` in their names. ``file`` is the path of
    the configuration file that the server was started with. ``user_lines`` are the users that are
    declared: by name, where that is and which rules it gives.
    """

    def __init__(self, **settings: Any) -> None:
        self.file: str | None = None
        self.user_lines: dict[str, tuple[str, list[str]]] = {}
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
            self._apply(after)
        except BadSetting:
            self._apply(before)
            raise

    def _apply(self, values: dict[str, Any]) -> None:
        """Stores values, then tells those who listen to one that is another now, or that names a
        file which is to be read again; a listener to several of them is called once."""
        changed = [
            name
            for name, value in values.items()
            if value != self.get(name) or SETTINGS[name].read_again
        ]
        for name in changed:
            self._store(name, values[name])
            if name in TWINS:
                self._store(TWINS[name], values[name])
        called: list[Listener] = []
        for name in changed:
            for known in (name, TWINS.get(name, name)):
                for listener in self._listeners.get(known, ()):
                    if listener not in called:
                        called.append(listener)
                        self._tell(listener, name)

    def _tell(self, listener: Listener, name: str) -> None:
        try:
            listener(self.get(name))
        except BadSetting as error:
            error.name = error.name or name
            raise

    def listen(self, name: str, listener: Listener) -> None:
        """Calls ``listener`` with the value now and whenever it changes.

        It may refuse a value with :class:`BadSetting`; it is then called with the former one.
        """
        self._listeners.setdefault(name, []).append(listener)
        listener(self.get(name))

    def listen_to_all(self, names: Iterable[str], listener: Callable[[], None]) -> None:
        """Calls ``listener`` when any of these settings changes, once for all that change at once.

        Unlike :meth:`listen` it is not called now. It may refuse the values, too.
        """

        def tell(value: Any) -> None:
            listener()

        for name in names:
            self._listeners.setdefault(name, []).append(tell)


def _parse(name: str, text: str) -> Any:
    try:
        return SETTINGS[name].parse(text)
    except BadSetting as error:
        error.name = name
        raise
