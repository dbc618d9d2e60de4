"""A schema registry for tests: answers over HTTP as the API of Confluent's is documented."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class TestRegistry:
    """The schemas, the requests that came, and what goes wrong."""

    __test__ = False

    def __init__(self) -> None:
        self.schemas: dict[int, dict[str, Any]] = {}
        self.subjects: dict[tuple[str, int], dict[str, Any]] = {}
        self.requests: list[tuple[str, str | None]] = []
        self.broken: tuple[int, bytes, dict[str, str]] | None = None
        self.url = ""

    def answer(self, path: str) -> tuple[int, dict[str, Any]]:
        """The status and the object for a path."""
        match path.strip("/").split("/"):
            case ["schemas", "ids", id] if int(id) in self.schemas:
                return 200, self.schemas[int(id)]
            case ["schemas", "ids", _]:
                return 404, {"error_code": 40403, "message": "Schema not found"}
            case ["subjects", subject, "versions", version]:
                found = self.subjects.get((subject, int(version)))
                return (200, found) if found else (404, {"error_code": 40402, "message": "none"})
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}


@contextmanager
def registry() -> Iterator[TestRegistry]:
    """A registry that runs on a free port."""
    state = TestRegistry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.requests.append((self.path, self.headers.get("Authorization")))
            status, found = state.answer(self.path)
            body = json.dumps(found).encode()
            headers: dict[str, str] = {}
            if state.broken is not None:
                status, body, headers = state.broken
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
