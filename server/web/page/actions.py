"""What may be changed from the page, in steps: what is missing is asked for, the commands are
shown, then they run.

An action is made of what a form says, and is made again when it is confirmed. If the commands then
differ from those that were shown, or what they are about is not as it was, nothing runs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from server.web.page import entry_actions, group_actions
from server.web.page.drawing import Screen
from server.web.page.page_request import (
    PageRequest,
    Refused,
)
from server.web.page.running import Asked, Input, Maker, PageAction, run


async def act(request: PageRequest) -> AsyncIterator[Screen | str]:
    """Yields the screen of an action: what has to be said, what would run, or, once that is
    confirmed, what has run; before that, where it takes several batches, lines with what was done
    and how much there is to do. Raises :class:`Refused` if it may not run: nothing has changed
    then, unless there was such a line."""
    if not request.server.state.config.web_actions:
        raise Refused("This page is read-only: the setting web-actions is no.", 403)
    login = request.viewer.login
    if login is None or not login.sent(request.fields.secret("csrf")):
        raise Refused("This form does not come from a page that you were shown.", 403)
    kind = "edit" if request.fields.text("edit") else request.fields.text("kind")
    if kind not in KINDS:
        raise Refused("There is no such action.", 400)
    try:
        action = await KINDS[kind](request)
    except Asked as asked:
        yield _screen(request, "fill", asked.title, asked.about, asked.back, asked.inputs)
        return
    for batch in action.batches:
        for command in batch:
            request.require(*command)
            await request.pace.rest()
    confirmed = request.fields.text("confirm")
    if not confirmed:
        yield _screen(request, "ask", action.title, action.about, action.back, [], action)
        return
    if confirmed != action.digest():
        raise Refused("Something has changed since the command was shown: nothing was done.", 409)
    done = 0
    async for done in run(request.server, request.viewer.user.name, request.peer, action):
        if len(action.batches) > 1:
            yield f"{done}/{action.total}\n"
    yield _screen(request, "done", action.title, action.about, action.back, [], action, done)


def _screen(
    request: PageRequest,
    step: str,
    title: str,
    about: str,
    back: str,
    inputs: list[Input],
    action: PageAction | None = None,
    done: int = 0,
) -> Screen:
    """One of the three steps, with the fields that the next one needs again."""
    left_out = {each.name for each in inputs} | {"csrf", "confirm", "filled"}
    kept = [pair for pair in request.fields.pairs if pair[0] not in left_out]
    if step == "ask":
        kept.append(("filled", "1"))
    given: dict[str, Any] = {"step": step, "about": about, "back": back, "kept": kept}
    given |= {"heading": title, "inputs": inputs, "action": action, "done": done}
    return Screen("act.html", title, given)


KINDS: Final[dict[str, Maker]] = {
    **group_actions.KINDS,
    **entry_actions.KINDS,
}
"""The acts, by the names that forms have for them."""
