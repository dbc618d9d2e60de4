"""Files that every screen needs, at ``/static``: styles, scripts, the icon."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from server.web.html.document import secured

FILES: Final = Path(__file__).parent / "static"

TYPES: Final = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""Of which kinds files are sent."""

_KEPT_S: Final = 3600


class Assets:
    """The files in memory."""

    def __init__(self) -> None:
        self._files = {
            path.name: path.read_bytes() for path in FILES.iterdir() if path.suffix in TYPES
        }

    async def answer(self, request: Request) -> Response:
        """The file of the path's ``name``."""
        name = request.path_params["name"]
        content = self._files.get(name)
        if content is None:
            return secured(PlainTextResponse("not found\n", 404))
        kind = TYPES[Path(name).suffix]
        headers = {"Cache-Control": f"max-age={_KEPT_S}"}
        return secured(Response(content, media_type=kind, headers=headers))
