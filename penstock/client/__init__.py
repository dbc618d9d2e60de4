"""Connections to servers, for migration and the tools of pipelines: URLs, commands and errors.

:class:`~penstock.client.connection.Connection` is one connection that never sends a command twice;
:class:`~penstock.client.connection.Nodes` are those to a server or to each primary of a cluster.
:class:`~penstock.client.retrying.RetryingClient` sends commands again while a server or a cluster
is away. Both raise the same errors. URLs, TLS, credentials and the texts of errors are those of
:mod:`pyspark_redis_streams`; only modules that work without PySpark are used of it.

The pytest plugin (:mod:`penstock.testing`), which has to do without a client library, opens
connections of its own.
"""
