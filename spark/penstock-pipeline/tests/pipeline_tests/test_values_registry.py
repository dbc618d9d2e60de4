"""Looking up schemas: what is asked, remembered, and what a registry that fails means."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from penstock_pipeline.decode.registry import RegistryClient, Schema
from penstock_pipeline.errors import Unavailable, Undecodable
from penstock_pipeline.model import Registry
from pipeline_tests.registry import TestRegistry, registry


@pytest.fixture
def server() -> Iterator[TestRegistry]:
    with registry() as running:
        yield running


def test_a_schema_is_asked_for_once_with_its_references(server: TestRegistry) -> None:
    def reference(name: str, subject: str) -> dict[str, object]:
        return {"name": name, "subject": subject, "version": 1}

    shared = reference("c", "s/c")
    server.subjects["s%2Fc", 1] = {"schema": "C"}
    server.subjects["b", 1] = {"schema": "B", "references": [shared]}
    server.schemas[7] = {
        "schema": "A",
        "schemaType": "PROTOBUF",
        "references": [reference("b", "b"), shared],
    }
    client = RegistryClient(Registry(server.url))
    for _ in range(2):
        assert client.schema(7) == Schema("PROTOBUF", "A", (("c", "C"), ("b", "B")))
    assert [path for path, _ in server.requests] == [
        *("/schemas/ids/7", "/subjects/b/versions/1", "/subjects/s%2Fc/versions/1")
    ]


def test_credentials_are_sent_as_basic_authorization(server: TestRegistry) -> None:
    server.schemas[1] = {"schema": "{}"}
    RegistryClient(Registry(server.url, "key", "sécret")).schema(1)
    RegistryClient(Registry(server.url)).schema(1)
    assert [header for _, header in server.requests] == ["Basic a2V5OnPDqWNyZXQ=", None]


def test_an_unknown_id_is_asked_for_again_after_a_while(server: TestRegistry) -> None:
    now = 0.0
    client = RegistryClient(Registry(server.url), lambda: now)
    for _ in range(2):
        with pytest.raises(Undecodable, match="has the schema 5, which the registry does not know"):
            client.schema(5)
    assert len(server.requests) == 1
    server.schemas[5] = {"schema": "{}"}
    now = 31.0
    assert client.schema(5) == Schema("AVRO", "{}")


def test_a_reference_to_nothing_makes_a_schema_unusable(server: TestRegistry) -> None:
    server.schemas[1] = {
        "schema": "x",
        "references": [{"name": "n", "subject": "gone", "version": 3}],
    }
    with pytest.raises(Undecodable, match="refers to version 3 of 'gone', which the registry does"):
        RegistryClient(Registry(server.url)).schema(1)


def test_references_in_a_circle_end(server: TestRegistry) -> None:
    circle = [{"name": "a", "subject": "a", "version": 1}]
    server.subjects["a", 1] = {"schema": "A", "references": circle}
    server.schemas[1] = {"schema": "X", "references": circle}
    assert RegistryClient(Registry(server.url)).schema(1).references == (("a", "A"),)


@pytest.mark.parametrize(
    ("status", "body", "why"),
    [
        (500, b'{"message": "store is down"}', r"it answers 500 .* \(store is down\)"),
        (401, b"<html>", "it answers 401"),
        (404, b"{}", "it answers 404"),
        (302, b"", "it answers 302"),
        (200, b"<html>", "its answer is not a JSON object"),
        (200, b"[]", "its answer is not a JSON object"),
        (200, b"{}", "its answer has no schema"),
        (200, b'{"schema": "", "references": [1]}', "its answer has a reference of a wrong form"),
    ],
)
def test_a_registry_that_fails_fails_the_batch(
    server: TestRegistry, status: int, body: bytes, why: str
) -> None:
    server.broken = (status, body, {"Location": f"{server.url}/elsewhere"})
    client = RegistryClient(Registry(server.url))
    with pytest.raises(
        Unavailable, match=f"the schema registry {server.url} can't be asked: {why}"
    ):
        client.schema(1)
    server.broken = None
    server.schemas[1] = {"schema": "{}"}
    assert client.schema(1).text == "{}", "a failure is not remembered"


def test_a_registry_that_is_not_there_fails_the_batch() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(Unavailable, match="Connection refused"):
            RegistryClient(Registry(url)).schema(1)


def test_a_registry_that_says_nothing_fails_the_batch() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(Unavailable, match="timed out"):
            RegistryClient(Registry(url, timeout_s=0.2)).schema(1)
