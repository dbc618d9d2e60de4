"""How screens are drawn: what their templates may call, and what stands around each of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from starlette.responses import Response

from server.runtime import quantities
from server.runtime.version import PENSTOCK_VERSION
from server.web.html.document import Pages
from server.web.page import charts, page_request, wording
from server.web.page.page_request import PageRequest

SCREENS: Final = (("/", "Overview"), ("/letters", "Dead letters"), ("/server", "Server"))


class Screen(NamedTuple):
    """What is to be drawn: a template with its facts, and the title of the window."""

    template: str
    title: str
    facts: dict[str, Any]


def iso(ms: int) -> str:
    """A time as an attribute has it, empty if there is no such time."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return ""


_WORDING: Final = (
    *("NONE", "counted", "deliveries", "id_text", "id_ms", "moment", "rate", "shown"),
)
_QUANTITIES: Final = ("duration", "latency", "number")
_ADDRESSES: Final = (
    *("consumer_url", "entry_url", "group_url", "letters_url", "packed", "stream_url", "url"),
)

_NAMES: Final[dict[str, object]] = {
    **{name: getattr(wording, name) for name in _WORDING},
    **{name: getattr(quantities, name) for name in _QUANTITIES},
    **{name: getattr(page_request, name) for name in _ADDRESSES},
    "bytes_text": quantities.size,
    "chart": charts.chart,
    "iso": iso,
}

PAGES: Final = Pages(PENSTOCK_VERSION, _NAMES)


async def draw(screen: Screen, request: PageRequest | None = None, status: int = 200) -> Response:
    """Return a screen; without a ``request`` nobody has logged in yet."""
    around: dict[str, Any] = {"request": request, "part": False, "screens": SCREENS}
    around |= {"letters": 0, "troubled": 0}
    facts = {**around, **screen.facts}
    if request is None:
        return await PAGES.page(screen.template, screen.title, facts, status)
    facts["part"] = request.part
    facts["here"] = request.address.partition("?")[0]
    facts["letters"] = sum(
        count for (_, key), count in request.sampler.letters.items() if request.viewer.may_see(key)
    )
    facts["troubled"] = request.sampler.troubled if request.sees_all else 0
    return await PAGES.page(screen.template, screen.title, facts, status, request.pace.rest)


def message(title: str, text: str, kind: str = "bad") -> Screen:
    """A screen that says one thing."""
    return Screen("message.html", title, {"text": text, "kind": kind})
