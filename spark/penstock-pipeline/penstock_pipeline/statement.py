"""What can be told of a statement of SQL without Spark: where it begins, what it reads and gives.

Spark alone knows SQL; ``validate --sql`` asks it. Here a mistake is only told where there is no
doubt, so a statement that is not simple is taken for right.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

_PART: Final = re.compile(
    r"(?s)--[^\n]*|/\*.*?\*/|(?P<name>`(?:[^`]|``)+`|[^\W\d]\w*)"
    r"|(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|(?P<other>\d[\w.]*|->|\|>|[^\s])"
)

BEGINNINGS: Final = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "(")
_SETS: Final = ("UNION", "EXCEPT", "INTERSECT", "MINUS")
_NOT_SIMPLE: Final = {
    *_SETS,
    *("JOIN", "LATERAL", "PIVOT", "UNPIVOT", "TRANSFORM", "WITH", "->", "|>"),
}
_NO_COLUMNS: Final = {
    *("NULL", "TRUE", "FALSE", "ALL", "DISTINCT", "CURRENT_DATE", "CURRENT_TIMESTAMP", "USER"),
    *("CURRENT_USER", "SESSION_USER", "CURRENT_TIME", "LOCALTIMESTAMP", "CURRENT_TIMEZONE"),
    *("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DAYOFYEAR", "HOUR", "MINUTE", "SECOND"),
    *("MILLISECOND", "MICROSECOND", "CURRENT_CATALOG", "CURRENT_DATABASE", "CURRENT_SCHEMA"),
}
"""Words that may stand where a column may."""


class _Token(NamedTuple):
    word: str
    """In capitals, unless it is quoted."""
    name: str | None
    """As it is written, for names and words."""
    depth: int


@dataclass(frozen=True)
class Statement:
    """Holds what a statement reads and gives; columns are None where they are not known."""

    beginning: str
    tables: tuple[str, ...]
    groups: bool
    uses: tuple[str, ...]
    """Columns of the one table that it reads."""
    gives: tuple[str, ...] | None
    """Its columns; ``*`` stands for those of the one table."""
    is_simple: bool
    """Whether it is one SELECT from one table."""


def read_statement(sql: str) -> Statement:
    """Take a statement apart, as far as that is sure."""
    tokens = _tokens(sql)
    words = [token.word for token in tokens]
    tables = _tables(tokens)
    simple = words.count("SELECT") == 1 and not _NOT_SIMPLE & set(words) and len(tables) == 1
    simple = simple and words[0] == "SELECT" and _is_one_table(tokens)
    gives = _gives(tokens) if words.count("SELECT") == 1 and words[0] == "SELECT" else None
    groups = any(t.word == "GROUP" and t.depth == 0 for t in tokens)
    beginning = (tokens[0].name or tokens[0].word) if tokens else ""
    return Statement(beginning, tables, groups, _uses(tokens) if simple else (), gives, simple)


def _tokens(sql: str) -> list[_Token]:
    tokens: list[_Token] = []
    depth = 0
    for found in _PART.finditer(sql):
        if (name := found["name"]) is not None:
            is_quoted = name.startswith("`")
            plain = name.strip("`").replace("``", "`")
            tokens.append(_Token(name if is_quoted else name.upper(), plain, depth))
        elif found["text"] is not None:
            tokens.append(_Token("''", None, depth))
        elif sign := found["other"]:
            depth -= sign == ")"
            tokens.append(_Token(sign, None, depth))
            depth += sign == "("
    return tokens


_END: Final = _Token("", None, 0)


def _at(tokens: Sequence[_Token], place: int) -> _Token:
    return tokens[place] if 0 <= place < len(tokens) else _END


def _tables(tokens: Sequence[_Token]) -> tuple[str, ...]:
    """The names behind FROM and JOIN that a table before has to have."""
    own = _own_tables(tokens)
    found: list[str] = []
    queries = [True]
    for place, token in enumerate(tokens):
        if token.word == "(":
            inner = _at(tokens, place + 1).word
            before = _at(tokens, place - 1).word
            queries.append(inner in BEGINNINGS or before in ("FROM", "JOIN"))
        elif token.word == ")" and len(queries) > 1:
            queries.pop()
        elif queries[-1] and token.word in ("FROM", "JOIN"):
            name = _table_at(tokens, place)
            if name is not None and name.lower() not in own:
                found.append(name)
    return tuple(dict.fromkeys(found))


def _table_at(tokens: Sequence[_Token], place: int) -> str | None:
    """The table behind a FROM or JOIN; None for anything else than one name."""
    if _at(tokens, place - 1).word == "DISTINCT" and _at(tokens, place - 2).word in ("IS", "NOT"):
        return None
    name, behind = _at(tokens, place + 1), _at(tokens, place + 2)
    if behind.word in ("(", ".", "``") or name.word in ("LATERAL", "VALUES", "TABLE", "STREAM"):
        return None
    return name.name


def _own_tables(tokens: Sequence[_Token]) -> set[str]:
    """The names that WITH gives."""
    if not any(token.word == "WITH" for token in tokens):
        return set()
    return {
        (token.name or "").lower()
        for place, token in enumerate(tokens)
        if token.name
        and (_at(tokens, place + 1).word == "(" or _at(tokens, place + 1).word == "AS")
    }


def _is_one_table(tokens: Sequence[_Token]) -> bool:
    """Whether no second table follows behind a comma."""
    begin = next((n for n, t in enumerate(tokens) if t.word == "FROM" and not t.depth), len(tokens))
    for token in tokens[begin + 1 :]:
        if token.word in ("WHERE", "GROUP", "HAVING", "ORDER", "LIMIT") and not token.depth:
            return True
        if token.word == "," and not token.depth:
            return False
    return True


def _uses(tokens: Sequence[_Token]) -> tuple[str, ...]:
    """The names that stand alone as an argument, a column or a key of GROUP BY.

    Without those that the statement itself gives.
    """
    aliases = {
        (_at(tokens, n + 1).name or "").lower() for n, t in enumerate(tokens) if t.word == "AS"
    }
    found: list[str] = []
    for place, token in enumerate(tokens):
        before, behind = _at(tokens, place - 1), _at(tokens, place + 1)
        begins = before.word in ("(", ",", "SELECT", "BY", "DISTINCT")
        ends = behind.word in (")", ",", "AS", "") or (behind.word == "FROM" and not behind.depth)
        if token.name is None or not begins or not ends or token.word in _NO_COLUMNS:
            continue
        if token.name.lower() not in aliases:
            found.append(token.name)
    return tuple(dict.fromkeys(found))


def _gives(tokens: Sequence[_Token]) -> tuple[str, ...] | None:
    """The columns between SELECT and FROM; None if one has a name that Spark makes."""
    end = next((n for n, t in enumerate(tokens) if t.word == "FROM" and not t.depth), len(tokens))
    begin = 2 if _at(tokens, 1).word in ("DISTINCT", "ALL") else 1
    items: list[list[_Token]] = [[]]
    for token in tokens[begin:end]:
        if token.word == "," and not token.depth:
            items.append([])
        else:
            items[-1].append(token)
    names = [_name_of(item) for item in items]
    return None if None in names else tuple(name for name in names if name)


def _name_of(item: Sequence[_Token]) -> str | None:
    words = [token.word for token in item]
    if words == ["*"]:
        return "*"
    if not item or item[-1].name is None:
        return None
    if len(item) == 1 or words[-2] == "AS":
        return item[-1].name
    is_path = all(t.word == "." if n % 2 else t.name is not None for n, t in enumerate(item))
    return item[-1].name if is_path else None
