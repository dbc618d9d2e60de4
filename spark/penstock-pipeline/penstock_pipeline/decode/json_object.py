"""Objects of JSON, read exactly."""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from penstock_pipeline.values import SHOWN

_SPACE: Final = " \t\r\n"


class NotJson(ValueError):
    """A text that is not one JSON object; the message goes on behind the name of its field."""


def read_object(text: str) -> dict[str, Any]:
    """The members of the JSON object that the whole text is, its numbers exact.

    Raises NotJson.
    """
    stripped = text.lstrip(_SPACE)
    begin = len(text) - len(stripped)
    try:
        found, end = _DECODER.raw_decode(stripped)
    except json.JSONDecodeError as error:
        why = f"{error.msg[0].lower()}{error.msg[1:]}"
        raise NotJson(
            f"is '{text[:SHOWN]}', not JSON: {why} at character {error.pos + begin + 1}"
        ) from None
    except RecursionError:
        raise NotJson(f"is '{text[:SHOWN]}', not JSON: it is nested too deeply") from None
    except (ValueError, InvalidOperation) as error:
        raise NotJson(f"is '{text[:SHOWN]}', not JSON: {error}") from None
    behind = stripped[end:].lstrip(_SPACE)
    if behind:
        place = len(text) - len(behind) + 1
        raise NotJson(f"has text behind its JSON, from character {place}: '{behind[:SHOWN]}'")
    if not isinstance(found, dict):
        raise NotJson(f"is '{text[:SHOWN]}', not a JSON object")
    return found


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no number")


_DECODER: Final = json.JSONDecoder(parse_float=Decimal, parse_constant=_no_number)
