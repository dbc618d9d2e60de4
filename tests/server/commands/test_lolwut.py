from __future__ import annotations

import pytest

from server.commands.server.admin import PICTURE
from server.runtime.version import PENSTOCK_VERSION, REDIS_VERSION
from tests.support.direct import Direct

VERSIONS = f"Penstock {PENSTOCK_VERSION}. Redis ver. {REDIS_VERSION}\n"
NOT_AN_INTEGER = b"-ERR value is not an integer or out of range\r\n"


@pytest.mark.parametrize(
    "words", [[], ["VERSION"], ["x"], ["version", "5", "1", "2"], ["VERSION", "6"], ["1", "x"]]
)
def test_a_picture_and_the_versions(words: list[str]) -> None:
    text = (PICTURE + VERSIONS).encode()
    assert Direct().client().send("LOLWUT", *words) == b"$%d\r\n%b\r\n" % (len(text), text)


@pytest.mark.parametrize("version", ["1", "99", "-1"])
def test_versions_without_a_picture(version: str) -> None:
    reply = Direct().client(resp3=True).send("LOLWUT", "VERSION", version)
    text = b"txt:" + VERSIONS.encode()
    assert reply == b"=%d\r\n%b\r\n" % (len(text), text)


@pytest.mark.parametrize(
    "words", [["VERSION", "x"], ["VERSION", "5", "x"], ["VERSION", "6", "1", "x"]]
)
def test_numbers_are_read(words: list[str]) -> None:
    assert Direct().client().send("LOLWUT", *words) == NOT_AN_INTEGER
