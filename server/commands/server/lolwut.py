"""LOLWUT: a picture and the version."""

from __future__ import annotations

from typing import Final

from protocol.replies import Reply, Verbatim
from server.commands.declare import command
from server.road.session import Session
from server.road.table import Arguments
from server.runtime.arguments import integer
from server.runtime.version import PENSTOCK_VERSION, REDIS_VERSION
from server.services import Services

_WITH_NUMBERS: Final = (5, 6)
"""Versions of Redis whose pictures take numbers: they are read, and make no difference."""
_WITH_PICTURES: Final = (*_WITH_NUMBERS, 8)

PICTURE: Final = r"""
     ~~~~~~~~~~|
     ~~~~~~~~~~|=\\
     ~~~~~~~~~~| \\
               |  \\
               |   \\_____
               |    \\____ ()  ~ ~ ~
"""


@command(
    "LOLWUT",
    flags="readonly fast",
    since="5.0.0",
    summary="Shows a picture and the version.",
    syntax="[VERSION version]",
)
def lolwut(server: Services, session: Session, args: Arguments) -> Reply:
    """The picture, but for versions that have none, and a line with the versions."""
    text = PICTURE
    if len(args) > 2 and args[1].upper() == b"VERSION":
        version = integer(args[2])
        if version not in _WITH_PICTURES:
            text = ""
        elif version in _WITH_NUMBERS:
            for arg in args[3:6]:
                integer(arg)
    return Verbatim(f"{text}Penstock {PENSTOCK_VERSION}. Redis ver. {REDIS_VERSION}\n".encode())
