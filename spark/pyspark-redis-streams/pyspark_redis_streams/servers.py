"""Connections to the servers, raw replies, and readable errors.

redis-py handles topology, TLS, credentials and retries; its conversion of replies is turned off
for the commands below, because Arrow batches are built from the raw reply.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import redis
from redis import exceptions
from redis.backoff import ExponentialBackoff
from redis.cluster import ClusterNode
from redis.retry import Retry
from redis.sentinel import MasterNotFoundError, Sentinel

from pyspark_redis_streams.errors import OptionError, ServerError
from pyspark_redis_streams.options import Option, ServerSettings
from pyspark_redis_streams.values import BOOLEAN, Kind, ServerUrl

T = TypeVar("T")

RAW: Final = (
    *("XADD", "XRANGE", "XREVRANGE", "XREADGROUP", "XPENDING", "XAUTOCLAIM", "XACK", "XCFGSET"),
    *("XINFO STREAM", "XINFO GROUPS", "XINFO CONSUMERS", "COMMAND INFO"),
)
"""Commands whose replies come as hiredis has parsed them."""

_CODES: Final[dict[type[Exception], str]] = {
    exceptions.BusyLoadingError: "LOADING",
    exceptions.ClusterCrossSlotError: "CROSSSLOT",
    exceptions.ExecAbortError: "EXECABORT",
    exceptions.MasterDownError: "MASTERDOWN",
    exceptions.ClusterDownError: "CLUSTERDOWN",
    exceptions.MovedError: "MOVED",
    exceptions.AskError: "ASK",
    exceptions.NoPermissionError: "NOPERM",
    exceptions.NoScriptError: "NOSCRIPT",
    exceptions.OutOfMemoryError: "OOM",
    exceptions.ReadOnlyError: "READONLY",
    exceptions.TryAgainError: "TRYAGAIN",
}
"""The first word of the errors of each class; a class stands before its base."""

Client = Any
"""A client of redis-py, for a server or a cluster: its methods have no common type."""

Begin = Callable[[Any], None]
"""What is done with a connection of redis-py that has its socket, and has sent nothing yet."""

CLIENT_OPTIONS: Final = {
    name: kind
    for kind, names in (
        (Kind(float, "a number of seconds"), "socket_timeout socket_connect_timeout"),
        (Kind(int, "a number of seconds"), "health_check_interval"),
        (BOOLEAN, "ssl ssl_check_hostname socket_keepalive require_full_coverage"),
        (
            Kind(str, "a text"),
            "username password client_name ssl_keyfile ssl_certfile ssl_cert_reqs ssl_ca_certs "
            "ssl_ca_path ssl_ca_data ssl_password ssl_ciphers sentinel_username sentinel_password",
        ),
    )
    for name in names.split()
}
"""Arguments of redis-py's client that options or a URL may give."""


class _Hopeless(Exception):
    """Stands for an error, its cause, that no further attempt would change."""


class _Retry(Retry):
    """Tries again when a server can't be reached, but not when credentials or TLS do not fit.

    For redis-py both are kinds of lost connections.
    """

    def call_with_retry(self, do: Callable[[], T], *handlers: Any, **options: Any) -> T:
        def attempt() -> T:
            try:
                return do()
            except Exception as error:
                if isinstance(error, exceptions.AuthenticationError) or _is_tls(error):
                    raise _Hopeless from error
                raise

        try:
            return super().call_with_retry(attempt, *handlers, **options)
        except _Hopeless as hopeless:
            error = hopeless.__cause__
        assert error is not None
        raise error


def _raw(client: redis.Redis) -> redis.Redis:
    for command in RAW:
        client.response_callbacks.pop(command, None)
    return client


def _raw_cluster(cluster: redis.RedisCluster) -> redis.RedisCluster:
    """Has the clients of all nodes, also of those that are found later, leave replies alone."""
    for command in RAW:
        cluster.cluster_response_callbacks.pop(command, None)
    manager: Any = cluster.nodes_manager
    create = manager.create_redis_node
    manager.create_redis_node = lambda *args, **more: _raw(create(*args, **more))
    for node in cluster.get_nodes():
        if node.redis_connection is not None:
            _raw(node.redis_connection)
    return cluster


class _Cluster(redis.RedisCluster):
    """Does something with each connection before redis-py does, which would do it at the end."""

    def __init__(self, begin: Begin, **arguments: Any) -> None:
        self._begin = begin
        super().__init__(**arguments)

    def on_connect(self, connection: Any) -> None:
        """Begin with a connection that has its socket."""
        self._begin(connection)
        super().on_connect(connection)  # type: ignore[no-untyped-call]


class Servers:
    """The servers of a query, connected when they are first needed.

    It is made where it is used, on the driver or in a task, and never pickled. Each connection is
    given to ``begin``.
    """

    def __init__(self, settings: ServerSettings, begin: Begin = lambda _: None) -> None:
        self.settings = settings
        self._begin = begin
        self._clients: dict[int, Client] = {}

    def __len__(self) -> int:
        return len(self.settings.urls)

    def name(self, server: int) -> str:
        """Return the address of a server, for messages."""
        return self.settings.urls[server].label

    def call(self, server: int, *command: Any) -> Any:
        """The raw reply to a command; raises ServerError, and ResponseError for what else fails."""
        with self.translated(server):
            return self.client(server).execute_command(*command)

    def call_all(self, server: int, commands: Sequence[Sequence[Any]]) -> list[Any]:
        """The raw replies to commands sent at once; a ResponseError stands for itself in the list.

        Raises ServerError if the server can't be reached or asks for other credentials.
        """
        if not commands:
            return []
        with self.translated(server):
            pipeline = self.client(server).pipeline(transaction=False)
            for command in commands:
                pipeline.execute_command(*command)
            replies: list[Any] = pipeline.execute(raise_on_error=False)
            for reply in replies:
                if isinstance(reply, Exception) and not _expected(reply):
                    raise reply
        return replies

    def knows(self, server: int, command: str) -> bool:
        """Whether the server, or a node of the cluster, has a command of that name."""
        client = self.client(server)
        with self.translated(server):
            if self.settings.urls[server].cluster:
                client = client.get_redis_connection(client.get_random_node())
            reply = client.execute_command("COMMAND INFO", command)
        return reply[0] is not None

    def scan(self, server: int, pattern: str) -> Iterator[bytes]:
        """Yield the keys of the streams that match a glob pattern, some of them maybe twice."""
        with self.translated(server):
            yield from self.client(server).scan_iter(match=pattern, count=1000, _type="stream")

    def client(self, server: int) -> Client:
        """Return the client of redis-py for a server, kept."""
        if server not in self._clients:
            with self.translated(server):
                url = self.settings.urls[server]
                self._clients[server] = connect(self.settings, url, self._begin)
        return self._clients[server]

    def close(self) -> None:
        """Closes every connection."""
        while self._clients:
            self._clients.popitem()[1].close()

    def __enter__(self) -> Servers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def translated(self, server: int) -> Iterator[None]:
        """Turns what redis-py raises about reaching a server into a ServerError."""
        try:
            yield
        except (
            exceptions.ConnectionError,
            exceptions.TimeoutError,
            exceptions.RedisClusterException,
            exceptions.ResponseError,
        ) as error:
            if _expected(error):
                raise
            text = describe(self.name(server), error, self.settings.retries + 1)
            raise ServerError(text + _advice(error)) from None


def _expected(error: Exception) -> bool:
    """Whether an error is about streams and groups, which callers know how to answer."""
    return isinstance(error, exceptions.ResponseError) and str(error).startswith(
        (
            *("NOGROUP", "BUSYGROUP", "WRONGTYPE", "no such key"),
            *("The ID specified in XADD", "The XGROUP subcommand requires"),
        )
    )


def describe(name: str, error: Exception, tries: int = 1) -> str:
    """Return what went wrong with the server of that name, after so many tries."""
    if isinstance(error, (exceptions.AuthenticationError, exceptions.ResponseError)):
        return f"{name} refuses: {_reply_text(error)}"
    if tries == 1 or _is_tls(error):
        return f"{name} can't be reached: {_reason(error)}"
    return f"{name} can't be reached after {tries} tries: {_reason(error)}"


def error_code(error: Exception) -> str | None:
    """Return the first word of the server's error if redis-py has taken it off.

    Before redis-py 8 the class of the error alone tells of it.
    """
    if code := getattr(error, "status_code", None):
        return str(code)
    if isinstance(error, exceptions.AuthenticationError):
        return "NOAUTH" if "Authentication required" in str(error) else "WRONGPASS"
    return next((code for kind, code in _CODES.items() if isinstance(error, kind)), None)


def _reply_text(error: Exception) -> str:
    code = error_code(error)
    return f"{code} {error}" if code and code != "ERR" else str(error)


def _advice(error: Exception) -> str:
    text = str(error)
    if "NOAUTH" in text or "Authentication required" in text:
        return "; give credentials in 'url' or in 'redis.username' and 'redis.password'"
    if isinstance(error, exceptions.AuthenticationError):
        return "; check the credentials in 'url' or in 'redis.username' and 'redis.password'"
    if isinstance(error, exceptions.NoPermissionError):
        return "; the docs list the commands that each mode needs"
    return ""


def _is_tls(error: BaseException | None) -> bool:
    """Whether a handshake of TLS has failed: OpenSSL's errors name their place in its binding."""
    if error is None:
        return False
    return "_ssl.c" in str(error) or _is_tls(error.__cause__ or error.__context__)


_SILENT_SENTINELS: Final = (
    "; not every sentinel has answered: check their addresses, and 'redis.sentinel_password'"
)


def _reason(error: Exception) -> str:
    """Why a connection failed, without the address, which is told before."""
    if isinstance(error, MasterNotFoundError):
        # What follows is what redis-py knows of each client, which may be more than is to be told.
        found, _, more = str(error).partition(" : ")
        return found + (_SILENT_SENTINELS if more else "")
    cause = error.__cause__ or error.__context__
    if _is_tls(error):
        why = re.sub(r"\s*\(?_ssl\.c:\d+\)?:?\s*", "", str(cause or error)).strip(". ")
        return f"TLS fails: {why}; does the server speak TLS on this port, with such a certificate?"
    if isinstance(cause, OSError) and str(cause):
        return cause.strerror or str(cause)
    return str(error).rstrip(".") or (str(cause) if cause else type(error).__name__)


def connect(settings: ServerSettings, url: ServerUrl, begin: Begin) -> Client:
    """Return a client of redis-py for one URL. A cluster is asked for its nodes at once."""
    arguments: dict[str, Any] = {
        **url_arguments(url),
        **({"username": url.username} if url.username else {}),
        **({"password": url.password} if url.password else {}),
        **_arguments(settings.client, "redis."),
        "retry": _Retry(ExponentialBackoff(cap=2, base=0.1), settings.retries),
        "protocol": 2,
        **_driver_info(),
    }
    if url.tls:
        arguments["ssl"] = True
    login = {
        name: arguments.pop(f"sentinel_{name}")
        for name in ("username", "password")
        if f"sentinel_{name}" in arguments
    }
    if url.cluster:
        nodes = [ClusterNode(host, port) for host, port in url.nodes]
        return _raw_cluster(_Cluster(begin, startup_nodes=nodes, **arguments))

    def on_connect(connection: Any) -> None:
        begin(connection)
        connection.on_connect()

    if url.service is None:
        return _raw(_single(url, {**arguments, "redis_connect_func": on_connect}))
    alike = {name: arguments[name] for name in arguments if name.startswith(("socket_", "ssl"))}
    sentinels = Sentinel(url.nodes, sentinel_kwargs={**alike, **login}, **arguments)
    # Asked anew for each connection, so also after a failover.
    return _raw(sentinels.master_for(url.service, db=url.database, redis_connect_func=on_connect))


def _driver_info() -> dict[str, Any]:
    """The version of redis-py, which every client of a newer one looks up in the files of the
    installation unless it is told."""
    try:
        from redis.driver_info import DriverInfo
    except ModuleNotFoundError:
        return {}
    return {"driver_info": DriverInfo(lib_version=redis.__version__)}


def _single(url: ServerUrl, arguments: dict[str, Any]) -> Client:
    if url.path is not None:
        return redis.Redis(unix_socket_path=url.path, db=url.database, **arguments)
    host, port = url.nodes[0]
    return redis.Redis(host=host, port=port, db=url.database, **arguments)


def check_client(settings: ServerSettings) -> None:
    """Raises OptionError for a value that no client can be made with, without connecting."""
    _arguments(settings.client, "redis.")
    for url in settings.urls:
        url_arguments(url)


def url_arguments(url: ServerUrl) -> dict[str, Any]:
    """Return the arguments of redis-py's client in a URL; raises OptionError."""
    return _arguments(dict(url.settings), "url?")


def _arguments(given: Mapping[str, str], origin: str) -> dict[str, Any]:
    return {name: _argument(name, value, origin) for name, value in given.items()}


def _argument(name: str, value: str, origin: str) -> Any:
    kind = CLIENT_OPTIONS.get(name)
    if kind is None:
        raise OptionError(origin + name, "not an option", ", ".join(sorted(CLIENT_OPTIONS)))
    return Option(origin + name, kind).parsed(value)
