"""A cluster of real servers on this machine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import redis

from tests.conformance.reference import RealServer
from tests.support.ports import free_port

SLOTS: Final = ((0, 5460), (5461, 10922), (10923, 16383))
"""The first and the last slot of each primary."""


@contextmanager
def real_cluster(program: str) -> Iterator[list[RealServer]]:
    """Three primaries that share the slots, each of them a process of the program."""
    nodes: list[RealServer] = []
    try:
        for _ in SLOTS:
            bus = ("--cluster-enabled", "yes", "--cluster-port", str(free_port()))
            nodes.append(RealServer(program, *bus))
        _join(nodes)
        yield nodes
    finally:
        for node in nodes:
            node.stop()


def _join(nodes: list[RealServer]) -> None:
    clients = [redis.Redis(port=node.port) for node in nodes]
    for epoch, (client, slots) in enumerate(zip(clients, SLOTS, strict=True), start=1):
        client.execute_command("CLUSTER", "ADDSLOTSRANGE", *slots)
        client.execute_command("CLUSTER", "SET-CONFIG-EPOCH", epoch)
    for node in nodes[1:]:
        clients[0].execute_command("CLUSTER", "MEET", "127.0.0.1", node.port, node.options[-1])
    for client in clients:
        while not _is_whole(client):
            time.sleep(0.01)
        client.close()


def _is_whole(client: redis.Redis) -> bool:
    """Whether a node knows of each slot where it is."""
    if b"cluster_state:ok" not in client.execute_command("CLUSTER", "INFO"):
        return False
    return len(client.execute_command("CLUSTER", "SLOTS")) == len(SLOTS)


def emptied(nodes: list[RealServer]) -> None:
    """Removes every key of the cluster."""
    for node in nodes:
        with redis.Redis(port=node.port) as client:
            client.flushall()
