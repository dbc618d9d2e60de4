"""Clients of Node, in programs that tell the story in both protocols."""

from __future__ import annotations

from typing import Final

import pytest

from tests.clients.programs import (
    NODE_FOLDER,
    Program,
    fail_to_create_twice,
    node,
    replace_a_killed_consumer,
)
from tests.clients.story import Observer
from tests.support.servers import PenstockThread

pytestmark = pytest.mark.slow

PACKAGES: Final = {
    "ioredis": "ioredis",
    "node-redis": "redis",
    "valkey-glide": "@valkey/valkey-glide",
}
"""Each program and the package that it uses."""


@pytest.fixture(params=PACKAGES)
def program(request: pytest.FixtureRequest, penstock: PenstockThread, protocol: int) -> Program:
    path = str(NODE_FOLDER / f"{request.param}.mjs")
    return Program(node(PACKAGES[request.param]), path, str(penstock.port), str(protocol))


def test_a_killed_consumer_is_replaced(program: Program, observer: Observer) -> None:
    replace_a_killed_consumer(program, observer)


def test_an_error_of_the_server_ends_the_program(program: Program) -> None:
    fail_to_create_twice(program)
