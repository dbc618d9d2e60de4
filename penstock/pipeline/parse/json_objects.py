"""What is wrong with a JSON object, member by member.

Spark converts the objects, and only says that one is wrong. This finds out why, for those alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from penstock.pipeline.model import Column
from penstock.pipeline.parse.times import EPOCHS
from penstock.pipeline.parse.types import parse_type
from penstock.pipeline.parse.values import SHOWN, Convert, converter

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


def explainer(field: str, columns: Sequence[Column]) -> Callable[[str], str | None]:
    """A function that says what is wrong with a text, None if nothing is.

    Times by patterns of Spark, which Spark alone can read, are not looked at.
    """
    checks = [(column, _check(column)) for column in columns]

    def explain(text: str) -> str | None:
        try:
            members = read_object(text)
        except NotJson as error:
            return f"field '{field}' {error}"
        wrong: list[str] = []
        for column, check in checks:
            value = members.get(column.origin)
            if value is None and column.required:
                wrong.append(f"member '{column.origin}' is missing")
            check(value, column.origin, wrong)
        return "; ".join(dict.fromkeys(wrong)) or None

    return explain


def _check(column: Column) -> Convert:
    if column.format is None or column.format in EPOCHS:
        return converter(parse_type(column.type), column.format)
    return converter(parse_type("string"))
