"""Requests as bytes.

Invariants:

- However the bytes are cut into reads, the same requests come out, and the same error at the end.
- What is proved of the bytes is the plain spelling of requests, and both scanners prove the same.
- Nothing but :class:`ProtocolError` and :class:`QueryTooLong` is raised.
- A request is a list of byte strings that is not empty.
- What the parser holds is not worth more than what it has been given.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from fuzz.mutate import mutated
from fuzz.requests import Requests, commands
from fuzz.targets.base import require
from protocol import scanner, scanner_plain
from protocol.requests import ProtocolError, QueryTooLong, Request, RequestParser

ALLOWANCE = 4096
"""Bytes that a parser may take whatever it holds."""

WORTH = 200
"""Bytes of memory that one byte of input may lead to: an empty argument is six bytes."""

SINGLE = 2000
"""So many bytes of an input are read one by one, too."""

Outcome = tuple[list[Request], str | None]


class Parser:
    """Parses the same bytes in several ways."""

    name = "parser"
    mutable = True

    def __init__(self) -> None:
        self._commands = commands()

    def make(self, random: Random) -> bytes:
        """Some requests in RESP, or as text."""
        requests = Requests(random, self._commands)
        data = b"".join(_packed(random, requests.one()) for _ in range(random.randrange(1, 6)))
        return data if random.random() < 0.2 else mutated(random, data, [])

    def run(self, data: bytes) -> None:
        """Compares what comes out."""
        random = Random(data)
        whole = _parse([data])
        requests: list[list[bytes]] = []
        proved = scanner.read_requests(data, 0, requests)
        require(requests == _parse([data[:proved]])[0], "what was cut out is something else")
        require(proved == scanner_plain.requests_end(data, 0), "the two scanners disagree")
        spelt = b"".join([_plainly(request) for request in whole[0]])
        require(spelt.startswith(data[:proved]), "what is proved is something else")
        for _ in range(3):
            cuts = sorted(random.sample(range(len(data) + 1), min(len(data) + 1, 4)))
            parts = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
            require(_parse(parts) == whole, f"reads that end at {cuts} differ")
        single = [data[at : at + 1] for at in range(min(len(data), SINGLE))]
        require(_parse([*single, data[SINGLE:]]) == whole, "byte by byte is different")

    def close(self) -> None:
        """There is nothing to end."""


def _packed(random: Random, words: list[bytes]) -> bytes:
    if random.random() < 0.1:
        return b" ".join(words) + b"\r\n"
    return _plainly(words)


def _plainly(words: list[bytes]) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(w), w) for w in words)


def _parse(parts: Iterable[bytes]) -> Outcome:
    """What comes of reads: the requests, and the error in the end, if there is one."""
    parser = RequestParser()
    found: list[Request] = []
    fed = 0
    try:
        for part in parts:
            fed += len(part)
            parser.feed(part)
            found += parser.batch()
            while parser.ready:
                found += parser.batch()
            require(parser.memory <= ALLOWANCE + WORTH * fed, "more memory than the input is worth")
    except ProtocolError as error:
        return found, error.text
    except QueryTooLong:
        return found, "too long"
    require(all(found), "a request without words")
    return found, None
