"""Lines of policies in the configuration."""

from __future__ import annotations

import pytest

from server.config.file import apply, rewritten
from server.config.policy_lines import settings_of_group
from server.config.registry import Config
from tests.server.config.test_file import error, read

LINE = 'stream-policy "orders:*" kitchen max-deliveries 5 dead-letter orders:dead\n'


A_TIME = "a time such as 500, 30s, 5m or 1d, up to 9007199254740992 milliseconds"


def test_lines_add_up_in_their_order() -> None:
    config = read(LINE + 'stream-policy "my \\"q\\"" * retention 5\n')
    assert config.get_text("stream-policy") == (
        'orders:* kitchen max-deliveries 5 dead-letter orders:dead\n"my \\"q\\"" * retention 5'
    )
    assert settings_of_group(config.stream_policy, b"orders:1", b"kitchen") == {
        b"max-deliveries": b"5",
        b"dead-letter": b"orders:dead",
    }


def test_options_of_the_command_are_lines_as_well() -> None:
    config = read(LINE)
    apply(config, "stream-policy", ["a b", "*", "paused", "yes"], "--stream-policy")
    assert config.get_text("stream-policy").split("\n")[1] == '"a b" * paused yes'


def test_a_rewrite_keeps_all_lines_where_the_first_was() -> None:
    text = f"# mine\n{LINE}timeout 5\nstream-policy a* * ack-wait 5\n"
    config = read(text)
    assert rewritten(config, text) == (
        "# mine\nstream-policy orders:* kitchen max-deliveries 5 dead-letter orders:dead\n"
        "stream-policy a* * ack-wait 5\ntimeout 5\n"
    )
    assert rewritten(config, "timeout 5\n").endswith(
        "\nstream-policy orders:* kitchen max-deliveries 5 dead-letter orders:dead\n"
        "stream-policy a* * ack-wait 5\n"
    )
    assert rewritten(Config(), text) == "# mine\ntimeout 0\n"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("orders kitchen", "expected: pattern group name value [name value ...]"),
        ("orders kitchen ack-wait", "expected: pattern group name value [name value ...]"),
        ("orders kitchen ack-wait x", f"ack-wait: 'x' is not {A_TIME}"),
        ("orders kitchen retention 5", "retention: is of the whole stream: the group must be *"),
        ("a * max-deliveries 5", "max-deliveries: dead-letter must name a stream for them"),
        ("a * dead-letter b ack-wait 1 ack-wait 2", "the policy 'ack-wait' is given twice"),
    ],
)
def test_a_line_that_cannot_be(line: str, reason: str) -> None:
    assert error(f"stream-policy {line}") == f"test.conf, line 1: stream-policy: {reason}"


def test_quotes_are_to_be_closed() -> None:
    with pytest.raises(Exception, match="unbalanced quotes"):
        Config(stream_policy='a "b * ack-wait 5')


def test_dead_letters_must_not_come_back() -> None:
    assert error("stream-policy a* * dead-letter b1\nstream-policy b* * dead-letter a1") == (
        "test.conf, line 2: stream-policy: dead-letter: dead letters would come back:"
        " a1 -> b1 -> a1"
    )


def test_a_line_is_not_for_the_stream_that_it_names() -> None:
    assert len(read(LINE + "stream-policy orders:dead x dead-letter attic").stream_policy) == 2


def test_it_is_not_set_while_the_server_runs() -> None:
    from tests.support.direct import Direct

    client = Direct().client()
    assert client.send("CONFIG", "SET", "stream-policy", "a * ack-wait 5") == (
        b"-ERR CONFIG SET failed (possibly related to argument 'stream-policy') - can't set"
        b" immutable config\r\n"
    )
