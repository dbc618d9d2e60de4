"""The examples of the pages of commands: the cases of the scripts ``reference-*.txt``, which the
conformance tests play. Replies are shown as redis-cli does, in RESP2, and in RESP3 where that looks
different, but not for what is only set up."""

from __future__ import annotations

import re
from typing import Final

from tests.conformance.marks import expectation
from tests.conformance.resp import Frame, Incomplete, escape, parse
from tests.conformance.script import SCRIPTS, Case, Step, Topic, read_topic
from tests.conformance.test_conformance import PENSTOCK_VERSION, recorded_replies
from tests.conformance.transcripts import PROTOCOLS

_SIGNS: Final = {b"*": ")", b"%": "#", b"~": "~", b">": ">"}
_NAMES: Final = {b"*": "array", b"%": "hash", b"~": "set", b">": "push"}
_SCALARS: Final = {b"-": "(error) ", b":": "(integer) ", b",": "(double) "}


def examples() -> dict[str, str]:
    """The lines of each case's example, by the name of the case, which is that of a command."""
    topics = [read_topic(path) for path in sorted(SCRIPTS.glob("reference-*.txt"))]
    return {case.name: _example(topic, case) for topic in topics for case in topic.cases}


def _example(topic: Topic, case: Case) -> str:
    several = len({step.client for step in case.steps}) > 1
    steps = [step for step in case.steps if step.observed]
    replies = zip(*(recorded_replies(topic, case, protocol) for protocol in PROTOCOLS), strict=True)
    recorded = dict(zip(map(id, steps), replies, strict=True))
    lines = []
    for step in case.steps:
        prompt = f"{step.client}> " if several else "> "
        lines.append(f"{prompt}{step.text}" if step.text else f"({step.line})")
        if step.observed and step.action != "closed":
            resp2, resp3 = _replies(step, *recorded[id(step)])
            lines += resp2
            if resp3 != resp2 and (case.name in step.text or not step.text):
                lines += ["RESP3:", *resp3]
    return "\n".join(lines)


def _replies(step: Step, *recorded: bytes | None) -> list[list[str]]:
    """The lines of the reply to a step in each protocol."""
    wanted = [
        expectation(step.marks, protocol, PENSTOCK_VERSION, reply)
        for protocol, reply in zip(PROTOCOLS, recorded, strict=True)
    ]
    return [["…"] if each.how == "no error" else rendered(each.data) for each in wanted]


def rendered(reply: bytes) -> list[str]:
    """A reply as redis-cli shows it, without trailing blanks; what is no whole reply, as after
    ``keep``, with dots behind it. A masked text is ``#``, a saved one ``{name}``."""
    reply = re.sub(rb"<(\w+)>(?=\r\n)", rb"{\1}", reply)
    reply = re.sub(
        rb"\$[\d#]+(?=\r\n(#|\{\w+\})\r\n)", lambda found: b"$%d" % len(found.group(1)), reply
    )
    try:
        return _lines(parse(reply)[0])
    except (Incomplete, ValueError):
        return [*reply.decode().splitlines(), "…"]


def _lines(frame: Frame) -> list[str]:
    if frame.items:
        return _elements(frame)
    if frame.kind in _SIGNS and frame.text is None:
        return [f"(empty {_NAMES[frame.kind]})"]
    if frame.kind in (b"_", *_SIGNS) or frame.text is None:
        return ["(nil)"]
    if frame.kind == b"$":
        return ['"' + escape(frame.text).replace('"', '\\"') + '"']
    if frame.kind == b"#":
        return ["(true)" if frame.text == b"t" else "(false)"]
    text = frame.text.decode()
    return text[4:].splitlines() if frame.kind == b"=" else [_SCALARS.get(frame.kind, "") + text]


def _elements(frame: Frame) -> list[str]:
    size = 2 if frame.kind == b"%" else 1
    groups = [frame.items[at : at + size] for at in range(0, len(frame.items), size)]
    lines = []
    for number, (*key, value) in enumerate(groups, 1):
        head = f"{number:>{len(str(len(groups)))}}{_SIGNS[frame.kind]} "
        margin, found = " " * len(head), _lines(value)
        if key:
            head = f"{head}{' '.join(_lines(key[0]))} =>"
            found = (
                [f" {found[0]}"] if len(found) == 1 else ["", *(margin + line for line in found)]
            )
            lines += [head + found[0], *found[1:]]
        else:
            lines += [head + found[0], *(margin + line for line in found[1:])]
    return lines
