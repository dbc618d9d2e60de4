"""What to write where a file is not TOML; the standard library says only what it expected."""

from __future__ import annotations

import json
import re
from typing import Final

_PAIR: Final = re.compile(r"\s*([\w.\"'-]+)\s*=\s*(.*?)\s*")
_YAML: Final = re.compile(r"\s*([\w.-]+)\s*:\s*(.*?)\s*")
_BARE: Final = re.compile(r"=\s*([A-Za-z_$./~][^\s,}\]#\"']*)")
_HEADER: Final = re.compile(r"\s*(\[\[?)\s*([\w.\"' -]+?)\s*\]*\s*")
_NUMBER_AND_MORE: Final = re.compile(r"[\d+-][^#\"']*")


def advice(line: str, reason: str) -> str:
    """Advise on a line that the parser refuses with a reason; empty if that says enough."""
    if "twice" in reason or "overwrite" in reason or "mutate" in reason:
        return _twice(line)
    if header := _HEADER.fullmatch(line):
        brackets = header[1]
        return f"write {brackets}{header[2]}{']' * len(brackets)}"
    if "=" not in line and (pair := _YAML.fullmatch(line)):
        value = pair[2].strip("\"'")
        return f"write {pair[1]} = {json.dumps(value, ensure_ascii=False)}, as this is no YAML"
    return _value(line)


def _twice(line: str) -> str:
    if header := _HEADER.fullmatch(line):
        name = header[2]
        return f"a table is there once; for each [[{name}]] of several write two brackets"
    pair = _PAIR.fullmatch(line)
    what = f"'{pair[1]}'" if pair else "a key"
    return f"{what} is there twice in its table, of which one has to go"


def _value(line: str) -> str:
    """Advise on the value of a line: most often the quotes around it are missing."""
    pair = _PAIR.fullmatch(line)
    if pair is None:
        return ""
    if pair[2].startswith(("'", '"')):
        return "the text has to end with the sign that it begins with, in the same line"
    if _NUMBER_AND_MORE.fullmatch(pair[2]):
        return f"a text needs quotes: {pair[1]} = {json.dumps(pair[2], ensure_ascii=False)}"
    bare = _BARE.search(line)
    while bare and bare[1] in ("true", "false"):
        bare = _BARE.search(line, bare.end())
    if bare is None:
        return ""
    if bare[1].lower() in ("true", "false"):
        return f"write {bare[1].lower()}"
    return f"a text needs quotes: {json.dumps(bare[1], ensure_ascii=False)}"
