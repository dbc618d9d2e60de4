"""The form in which the policies of a group are changed: by purpose, each with its sentence."""

from __future__ import annotations

import re
from typing import Any, Final

from server.config import policies
from server.config.policies import Settings
from server.web.page.running import Input
from server.web.page.wording import shown

PARTS: Final[dict[str, dict[policies.Policy[Any], str]]] = {
    "Trying again": {
        policies.ACK_WAIT: "30s",
        policies.BACKOFF: "1s,10s,1m",
        policies.CONSUMER_TTL: "10m",
    },
    "Dead letters": {
        policies.MAX_DELIVERIES: "5",
        policies.DEAD_LETTER: "orders:dead",
        policies.DEAD_LETTER_MAXLEN: "100000",
        policies.REASONS: "yes",
    },
    "How many at a time": {
        policies.RATE_LIMIT: "100/1s",
        policies.MAX_PENDING: "1000",
        policies.MAX_PENDING_CONSUMER: "10",
    },
    "Which, and in what order": {
        policies.ONLY: "kind=coffee",
        policies.ORDER_BY: "customer",
        policies.PRIORITY_FIELD: "urgency",
        policies.LOOK_AHEAD: "10000",
        policies.DELAY_FIELD: "at",
        policies.PAUSED: "yes",
    },
}
"""The policies of groups by what they are for, each with a value as an example."""


_END: Final = re.compile(r"(?<=[\w)`])\. (?=[A-Z`])")
"""The end of a sentence, which three dots are not."""


def policy_inputs(own: Settings, others: Settings) -> list[Input]:
    """Return a field for each policy: what the group has, and what holds where it has none."""
    inputs = []
    for part, examples in PARTS.items():
        for policy, example in examples.items():
            name = policy.name.decode()
            value = shown(own[policy.name]) if policy.name in own else ""
            hint = f"off; for example {example}"
            if policy.name in others:
                hint = f"as of the stream or the configuration: {shown(others[policy.name])}"
            sentence = _END.split(policy.help, 1)[0].replace("`", "").rstrip(".") + "."
            inputs.append(Input(f"set {name}", name, value, hint=hint, help=sentence, part=part))
            part = ""
    return inputs
