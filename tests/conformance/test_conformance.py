"""Every scripted conversation, in both protocols: the replies are the expected ones to the byte."""

from __future__ import annotations

from functools import cache

import pytest

from . import transcripts
from .marks import Version, expectation
from .player import Observation, Player, Server
from .resp import escape
from .script import Case, Topic, all_topics

PENSTOCK_VERSION: Version = (8, 10)
TOPICS = list(all_topics())


def conversations(topics: list[Topic]) -> list[object]:
    """Topic, case and protocol of each conversation, with a readable name."""
    return [
        pytest.param(topic, case, protocol, id=f"{topic.name}-RESP{protocol}-{case.name}")
        for topic in topics
        for case in topic.cases
        for protocol in transcripts.PROTOCOLS
    ]


@cache
def transcript_of(topic: str) -> dict[int, transcripts.Transcript]:
    """The recorded replies of a topic, by protocol."""
    return transcripts.read(transcripts.path_of(transcripts.TRANSCRIPTS, topic))


def recorded_replies(topic: Topic, case: Case, protocol: int) -> list[bytes | None]:
    """What the recorded server answered to each step; nothing where the script says it all."""
    steps = [step for step in case.steps if step.observed]
    if topic.since is not None:
        return [None] * len(steps)
    recorded = transcript_of(topic.name)[protocol].get(case.name, [])
    assert [line for line, _ in recorded] == [step.line for step in steps], "record this case again"
    return [reply for _, reply in recorded]


def differences(
    observed: list[Observation], recorded: list[bytes | None], protocol: int, version: Version
) -> list[str]:
    """What was answered wrongly, in words."""
    found = []
    for observation, reply in zip(observed, recorded, strict=True):
        wanted = expectation(observation.step.marks, protocol, version, reply)
        if not wanted.met_by(observation.reply):
            found.append(
                f"{observation.step.line}\n  replied  {escape(observation.reply)}\n"
                f"  expected {escape(wanted.data)} ({wanted.how})"
            )
    return found


def check(server: Server, topic: Topic, case: Case, protocol: int, version: Version) -> None:
    """Play a case and fail with all the differences."""
    observed = Player(server, protocol, case).play()
    found = differences(observed, recorded_replies(topic, case, protocol), protocol, version)
    if found:
        pytest.fail("\n".join(found), pytrace=False)


@pytest.mark.parametrize(("topic", "case", "protocol"), conversations(TOPICS))
def test_penstock_replies_as_expected(
    penstock: Server, topic: Topic, case: Case, protocol: int
) -> None:
    """Penstock's replies are those of the transcript, or those written for newer versions."""
    check(penstock, topic, case, protocol, PENSTOCK_VERSION)


@pytest.mark.parametrize(
    ("topic", "case", "protocol"), conversations([topic for topic in TOPICS if not topic.since])
)
def test_a_real_server_replies_as_recorded(
    redis: Server, topic: Topic, case: Case, protocol: int
) -> None:
    """The transcripts still say what the real server answers."""
    check(redis, topic, case, protocol, redis.version())
