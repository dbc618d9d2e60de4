"""HTML that is put together by functions, so that text can never become markup.

:func:`tag` escapes each child and each attribute, unless a child is :class:`Html`, which only these
functions make. A name that a user has chosen is a ``str``, so it is escaped wherever it goes.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Final

_VOID: Final = frozenset({"br", "input", "link", "meta", "path", "polyline", "rect"})
"""Elements without content; those of SVG are closed in their tag."""


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


Child = str | None
Attribute = str | int | bool | None


def tag(name: str, /, *children: Child, **attributes: Attribute) -> Html:
    """An element. ``class_`` stands for ``class``, and ``_`` inside a name for ``-``; attributes
    that are ``None`` or false are left out, and true ones have no value."""
    pairs = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Html(f"<{name}{pairs}/>")
    return Html(f"<{name}{pairs}>{joined(children)}</{name}>")


def _attribute(key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{html.escape(str(value))}"'


def joined(children: Iterable[Child]) -> Html:
    """Children behind each other, those escaped that are no markup."""
    return Html(
        "".join(
            child if isinstance(child, Html) else html.escape(child)
            for child in children
            if child is not None
        )
    )
