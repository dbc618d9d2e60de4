"""Every setting of the server, with its default and bounds, and the values that they have."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from server.config.policy_lines import StreamPolicies
from server.config.types import (
    INT64_MAX,
    BadSetting,
    Choice,
    Directory,
    Filename,
    FilenameOrNone,
    Integer,
    KeyspaceEvents,
    Lines,
    Memory,
    Octal,
    OutputLimitsSetting,
    Percentiles,
    PerUser,
    ReadFile,
    SavePoints,
    Setting,
    Share,
    Switch,
    Upstream,
    Words,
)

__all__ = ["SETTINGS", "BadSetting", "Config"]

INT_MIN: Final = -(2**31)
INT_MAX: Final = 2**31 - 1
MEGABYTE: Final = 1024**2

NO_EVICTION: Final = "noeviction"

SUPERVISORS: Final = ("no", "systemd", "auto")

SIGNALS: Final = ("default", "save", "nosave", "now", "force")
"""How a server may end by a signal."""

EFFECTIVE: Final[tuple[Setting, ...]] = (
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
    Switch("tls-prefer-server-ciphers", "no"),
    ReadFile("tls-dh-params-file"),
    Switch("tls-session-caching", "yes"),
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
    Setting("pidfile", "", mutable=False),
    Choice("supervised", "no", SUPERVISORS, mutable=False),
    Switch("shutdown-on-stdin-eof", "no", mutable=False),
    Switch("ignore-unsupported", "no", mutable=False),
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
    Integer("hash-max-listpack-entries", 512, 0, INT64_MAX),
    Memory("hash-max-listpack-value", 64),
    Integer("list-max-listpack-size", -2, INT_MIN, INT_MAX),
    Integer("set-max-intset-entries", 512, 0, INT64_MAX),
    Integer("set-max-listpack-entries", 128, 0, INT64_MAX),
    Integer("set-max-listpack-value", 64, 0, INT64_MAX),
    Integer("zset-max-listpack-entries", 128, 0, INT64_MAX),
    Memory("zset-max-listpack-value", 64),
    Memory("hll-sparse-max-bytes", 3000),
    Integer("stream-idmp-duration", 100, 1, 86400),
    Integer("stream-idmp-maxsize", 100, 1, 10000),
    KeyspaceEvents("notify-keyspace-events", ""),
    StreamPolicies("stream-policy"),
    # Scripts.
    Integer("busy-reply-threshold", 5000, 0, INT64_MAX),
    Memory("script-memory-limit", 256 * MEGABYTE, 8 * MEGABYTE),
    # What outlives the process.
    Switch("appendonly", "no"),
    Choice("appendfsync", "everysec", ("everysec", "always", "no")),
    Filename("appendfilename", "appendonly.aof", mutable=False),
    Filename("appenddirname", "appendonlydir", mutable=False),
    FilenameOrNone("dbfilename", "", guarded=True),
    SavePoints("save"),
    Switch("stop-writes-on-bgsave-error", "yes"),
    Switch("no-appendfsync-on-rewrite", "no"),
    Integer("auto-aof-rewrite-percentage", 100, 0, INT_MAX),
    Memory("auto-aof-rewrite-min-size", 64 * MEGABYTE),
    Switch("aof-load-truncated", "yes"),
    Switch("aof-timestamp-enabled", "no"),
    # Replicas.
    Memory("repl-backlog-size", MEGABYTE, 1),
    Integer("repl-backlog-ttl", 3600, 0, INT64_MAX),
    Integer("repl-timeout", 60, 1, INT_MAX),
    Integer("repl-ping-replica-period", 10, 1, INT_MAX),
    Integer("min-replicas-to-write", 0, 0, INT_MAX),
    Integer("min-replicas-max-lag", 10, 0, INT_MAX),
    Integer("shutdown-timeout", 10, 0, INT_MAX),
    # What data and clients may use up.
    Memory("maxmemory", 0),
    Share("maxmemory-clients", (0, 0)),
    Integer("tracking-table-max-keys", 1_000_000, 0, INT64_MAX),
    PerUser("user-max-connections"),
    PerUser("user-max-commands-per-second"),
    Memory("proto-max-bulk-len", 512 * MEGABYTE, MEGABYTE),
    Memory("client-query-buffer-limit", 1024 * MEGABYTE, MEGABYTE),
    OutputLimitsSetting(
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
)


def _unsupported(reason: str, setting: Setting) -> Setting:
    """A setting of which no value but the default is taken, for this reason."""
    setting.unsupported = reason
    return setting


def _unused() -> Iterator[Setting]:
    """Yield the settings of the table in the file beside this one, with their reasons."""
    reason = ""
    for line in Path(__file__).with_name("unused.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            reason = line.strip("[]")
        elif line and not line.startswith("#"):
            setting = _of_row(*re.split(" {2,}", line))
            setting.unused = reason
            yield setting


def _of_row(name: str, kind: str, default: str = "", more: str = "") -> Setting:
    """The setting in a row of that table."""
    mutable, kind = not kind.endswith("!"), kind.strip("!")
    if kind == "lines":
        return Lines(name)
    if kind == "memory":
        return Memory(name, int(default), *map(int, more.split()))
    if kind == "integer":
        low, high = map(int, more.split())
        return Integer(name, int(default), low, high, mutable=mutable)
    if kind == "choice":
        return Choice(name, default, tuple(more.split()), mutable=mutable)
    simple: type[Setting] = {"switch": Switch, "text": Setting, "words": Words}[kind]
    return simple(name, default.strip('"'), mutable=mutable)


UNUSED: Final = (*_unused(),)
"""Settings of Redis that change nothing here. Files and start scripts that have them are taken as
they are: CONFIG GET and CONFIG REWRITE give what was set."""

UNSUPPORTED: Final = (
    _unsupported(
        "there is no cluster: let clients connect to one server",
        Switch("cluster-enabled", "no", mutable=False),
    ),
    _unsupported(
        "the server follows no other: 'penstock import' copies what another one has,"
        " and Redis and Valkey can be replicas of this one",
        Upstream("replicaof", "", mutable=False),
    ),
    _unsupported("modules are libraries for Redis: take the line away", Lines("loadmodule")),
    _unsupported(
        "commands keep their names: deny them to users, as in 'user default ... -flushall'",
        Lines("rename-command"),
    ),
    _unsupported(
        "Python leaves them to OpenSSL: set Ciphersuites in the file that OPENSSL_CONF names",
        Setting("tls-ciphersuites", ""),
    ),
    _unsupported(
        "messages may name keys and users: protect the file they are written to",
        Switch("hide-user-data-from-log", "no"),
    ),
    *(
        _unsupported(
            "a signal ends the server like SHUTDOWN: send SHUTDOWN with these words instead",
            Choice(f"shutdown-on-{name}", "default", SIGNALS),
        )
        for name in ("sigint", "sigterm")
    ),
)
"""Settings of Redis that somebody would rely on, and that cannot be kept here."""

OLDER_NAMES: Final = {
    "busy-reply-threshold": "lua-time-limit",
    "repl-ping-replica-period": "repl-ping-slave-period",
    "min-replicas-to-write": "min-slaves-to-write",
    "min-replicas-max-lag": "min-slaves-max-lag",
    "replicaof": "slaveof",
    "replica-announce-ip": "slave-announce-ip",
    "replica-announce-port": "slave-announce-port",
    "replica-ignore-maxmemory": "slave-ignore-maxmemory",
    "replica-lazy-flush": "slave-lazy-flush",
    "replica-priority": "slave-priority",
    "replica-read-only": "slave-read-only",
    "replica-serve-stale-data": "slave-serve-stale-data",
    "cluster-replica-no-failover": "cluster-slave-no-failover",
    "cluster-replica-validity-factor": "cluster-slave-validity-factor",
    "hash-max-listpack-entries": "hash-max-ziplist-entries",
    "hash-max-listpack-value": "hash-max-ziplist-value",
    "list-max-listpack-size": "list-max-ziplist-size",
    "zset-max-listpack-entries": "zset-max-ziplist-entries",
    "zset-max-listpack-value": "zset-max-ziplist-value",
    "aof-rewrite-cpulist": "aof_rewrite_cpulist",
    "bgsave-cpulist": "bgsave_cpulist",
    "bio-cpulist": "bio_cpulist",
    "server-cpulist": "server_cpulist",
}
"""Settings that have another, older name as well."""

SETTINGS: Final[dict[str, Setting]] = {
    name: setting
    for setting in (*EFFECTIVE, *UNUSED, *UNSUPPORTED)
    for name in (setting.name, OLDER_NAMES.get(setting.name, setting.name))
}
"""All settings, by each of their names."""

Listener = Callable[[Any], None]


class Config:
    """The values of all settings; read as attributes (``config.tcp_backlog``).

    ``settings`` are texts or values, with ``_`` for ``-`` in their names. ``file`` is the path of
    the configuration file that the server was started with. ``user_lines`` are the users that are
    declared: by name, where that is and which rules it gives; ``given`` says where each setting
    is given that is.
    """

    def __init__(self, **settings: Any) -> None:
        self.file: str | None = None
        self.given: dict[str, str] = {}
        self.user_lines: dict[str, tuple[str, list[str]]] = {}
        self._listeners: dict[str, list[Listener]] = {}
        self._first: dict[str, Any] = {}
        for setting in dict.fromkeys(SETTINGS.values()):
            setattr(self, _attribute(setting.name), setting.default)
        for name, value in settings.items():
            text = ("no", "yes")[value] if isinstance(value, bool) else str(value)
            self.set_text(name.replace("_", "-"), text)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"there is no setting {name.replace('_', '-')!r}")

    @property
    def has_tcp(self) -> bool:
        """Whether there is a TCP port without TLS: ``port`` 0 is a free one, but where there is
        something else to listen on it is none, as on Redis."""
        return bool(self.port or not (self.tls_port or self.unixsocket))

    def get(self, name: str) -> Any:
        """The value of a setting."""
        return getattr(self, _attribute(name))

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
        self._replace(before, after)

    def remember(self) -> None:
        """Keeps the values as they are now, for :meth:`restore`."""
        self._first = {each.name: self.get(each.name) for each in SETTINGS.values()}

    def restore(self) -> None:
        """Sets what has changed since :meth:`remember` back; raises :class:`BadSetting`, and
        changes nothing then."""
        after = {name: value for name, value in self._first.items() if value != self.get(name)}
        self._replace({name: self.get(name) for name in after}, after)

    def _replace(self, before: dict[str, Any], after: dict[str, Any]) -> None:
        """Sets the values ``after``, or leaves those ``before`` where one cannot be had."""
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
            setattr(self, _attribute(name), values[name])
        called: list[Listener] = []
        for name in changed:
            for listener in self._listeners.get(SETTINGS[name].name, ()):
                if listener not in called:
                    called.append(listener)
                    self._tell(listener, name)

    def check(self) -> None:
        """Raises :class:`BadSetting` for a value that cannot be kept, unless that is ignored."""
        if not self.ignore_unsupported:
            for name, reason in self.unkept().items():
                raise BadSetting(reason, name)

    def unkept(self) -> dict[str, str]:
        """The settings whose values promise what is not so, and what each must be, and why."""
        found = {
            each.name: f"argument must be {each.show(each.default) or 'empty'}: {each.unsupported}"
            for each in UNSUPPORTED
            if self.get(each.name) != each.default
        }
        if self.maxmemory and self.maxmemory_policy != NO_EVICTION:
            found["maxmemory-policy"] = (
                f"argument must be {NO_EVICTION} where maxmemory is set: no key is ever evicted;"
                " trim streams with MAXLEN or a policy of retention, and let strings expire"
            )
        return found

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


def _attribute(name: str) -> str:
    """The attribute that has the value of a setting, by whichever of its names."""
    setting = SETTINGS.get(name)
    return (name if setting is None else setting.name).replace("-", "_")


def _parse(name: str, text: str) -> Any:
    try:
        return SETTINGS[name].parse(text)
    except BadSetting as error:
        error.name = name
        raise
