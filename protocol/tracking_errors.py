"""The error texts of CLIENT TRACKING and CLIENT CACHING, which are those of Redis."""

from __future__ import annotations

from typing import Final

from protocol.errors import shown_name

NO_REDIRECTION_TARGET: Final = "ERR The client ID you want redirect to does not exist"
ONE_REDIRECTION: Final = "ERR A client can only redirect to a single other client"
PREFIX_WITHOUT_BCAST: Final = "ERR PREFIX option requires BCAST mode to be enabled"
BCAST_SWITCHED: Final = (
    "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then"
    " re-enabling it with a different mode."
)
OPTIN_SWITCHED: Final = (
    "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then"
    " re-enabling it with a different mode."
)
BCAST_WITH_OPTIONS: Final = "ERR OPTIN and OPTOUT are not compatible with BCAST"
OPTIN_AND_OPTOUT: Final = "ERR You can't specify both OPTIN mode and OPTOUT mode"
CACHING_WITHOUT_TRACKING: Final = (
    "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT"
    " mode enabled"
)
CACHING_YES_WITHOUT_OPTIN: Final = (
    "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode."
)
CACHING_NO_WITHOUT_OPTOUT: Final = (
    "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode."
)


def overlaps_with_existing(prefix: bytes, other: bytes) -> str:
    """A prefix of CLIENT TRACKING that does not go with one that the client has."""
    return _overlap(prefix, f"an existing prefix '{shown_name(other)}'")


def overlaps_with_provided(prefix: bytes, other: bytes) -> str:
    """Two prefixes of one CLIENT TRACKING that do not go together."""
    return _overlap(prefix, f"another provided prefix '{shown_name(other)}'")


def _overlap(prefix: bytes, with_what: str) -> str:
    return (
        f"ERR Prefix '{shown_name(prefix)}' overlaps with {with_what}."
        " Prefixes for a single client must not overlap."
    )
