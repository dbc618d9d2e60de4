"""A server, or the primaries of a cluster, with a connection to each."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from typing import Final

from redis.crc import key_slot

from penstock.client.connection import Reply, ServerConnection, readable
from penstock.client.errors import ServerFailed
from penstock.client.urls import Address, Place
from penstock.terminal import shown

SLOTS: Final = 16384
"""How many slots the primaries of a cluster share."""

_UNKNOWN: Final = (None, b"", b"?")
"""What stands for the address of a node that does not know it, or may not tell its name."""


class Nodes:
    """A server, or every primary of a cluster, with a connection to each.

    ``role`` is ``source`` or ``target``; texts name the server so. A cluster is asked once who has
    which slots. Redirections are not followed: a node that has given a slot away refuses its keys,
    which raises :class:`ServerFailed` as everything does that concerns more than one key.
    """

    def __init__(self, role: str, address: Address, db: int) -> None:
        self._role, self._address = role, address
        self._open = ExitStack()
        self.name = f"{role} {shown(address.place)}" + ("" if address.cluster else f"/{db}")
        try:
            self._by_slot = self._connect_all() if address.cluster else None
            self.all = (
                [self._open.enter_context(ServerConnection(role, address, db))]
                if self._by_slot is None
                else list(dict.fromkeys(self._by_slot))
            )
        except ServerFailed:
            self.close()
            raise

    def close(self) -> None:
        """Disconnects."""
        self._open.close()

    def __enter__(self) -> Nodes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def of(self, key: bytes) -> ServerConnection:
        """Return the connection to the server that has the key, or would have it."""
        return self.all[0] if self._by_slot is None else self._by_slot[key_slot(key)]

    def require_settled(self) -> None:
        """Raises :class:`ServerFailed` if slots have moved since the cluster was asked, or are
        about to: a key may then have been on no node that was looked at."""
        if self._by_slot is None:
            return
        now = self._ask_slots(self.all[0], _place_of(self.all[0].address))
        moved = [_place_of(node.address) for node in self._by_slot] != now
        if moved or any(_has_open_slots(node) for node in self.all):
            raise ServerFailed(f"the {self.name} is moving slots: run it again when that is done")

    # --- a cluster ---------------------------------------------------------------------------

    def _connect_all(self) -> list[ServerConnection]:
        """For each slot a connection to its primary."""
        seed, place = self._reach_any()
        with readable(seed):
            owners = self._ask_slots(seed, place)
        nodes = {owner: self._connect(owner) for owner in dict.fromkeys(owners)}
        return [nodes[owner] for owner in owners]

    def _reach_any(self) -> tuple[ServerConnection, Place]:
        """The first node of the URL that answers."""
        failure: ServerFailed | None = None
        for place in self._address.nodes:
            try:
                return self._connect(place), place
            except ServerFailed as error:
                failure = failure or error
        assert failure is not None
        raise failure

    def _connect(self, place: Place) -> ServerConnection:
        node = replace(self._address, nodes=(place,), cluster=False, db=None)
        return self._open.enter_context(ServerConnection(self._role, node, 0))

    def _ask_slots(self, seed: ServerConnection, place: Place) -> list[Place]:
        """The address of the primary of each slot, as a node knows them."""
        owners: list[Place | None] = [None] * SLOTS
        for first, last, primary, *_ in seed.call("CLUSTER", "SLOTS"):
            owners[first : last + 1] = [_address(primary, place)] * (last + 1 - first)
        served = [owner for owner in owners if owner is not None]
        if len(served) < SLOTS:
            lacking = SLOTS - len(served)
            raise ServerFailed(f"the {self.name} has no server for {lacking:,} of its slots")
        return served


def _address(node: list[Reply], asked: Place) -> Place:
    """Where a node is; one without an address that it could tell is where it was asked."""
    known = node[0] not in _UNKNOWN
    return (node[0].decode() if known else asked[0], node[1])


def _place_of(address: Address) -> Place:
    return address.nodes[0]


def _has_open_slots(node: ServerConnection) -> bool:
    """Whether keys of a slot are on their way from this node, or to it."""
    lines: Iterable[bytes] = node.call("CLUSTER", "NODES").splitlines()
    return any(b"myself" in line and b" [" in line for line in lines)
