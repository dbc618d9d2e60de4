"""Failures are sorted into those that are worth a retry and those that are not."""

from __future__ import annotations

import json

import pytest

from penstock_pipeline.errors import Failure, error_class, failure_of, worth_retry

OWN = "[STREAM_FAILED] Query x\n  File y\npyspark_redis_streams.errors.{}\n\tat java.lang.X"
JAVA = "An error occurred while calling o186.save.\n: {}\n\tat org.apache.spark.X\n"

STAY = {
    "a wrong password": OWN.format(
        "ServerError: h:6379/0 refuses: WRONGPASS invalid username-password pair; check"
    ),
    "no password": OWN.format("ServerError: h:6379/0 refuses: NOAUTH Authentication required."),
    "a user without a right": OWN.format("ServerError: h:1/0 refuses: NOPERM no permissions"),
    "TLS that does not fit": OWN.format(
        "ServerError: h:1/0 can't be reached: TLS fails: handshake timed out; does the server "
        "speak TLS on this port, with such a certificate?"
    ),
    "an unknown group": "NOGROUP No such key 's' or consumer group 'g' in XREADGROUP",
    "a key of another type": OWN.format("ServerError: key 's' can't be read as a stream: WRONG"),
    "an old server": OWN.format("ServerError: the server is older than Redis 7.0, which counts"),
    "lost entries": OWN.format("DataLossError: stream 's': 2 entries removed before being read"),
    "an older checkpoint": OWN.format("CheckpointError: sink 't': the table has batch 3 of this q"),
    "a wrong option": OWN.format("OptionError: option 'mode' is 'x'; allowed: offsets, group"),
    "SQL that does not fit": "pyspark.errors.AnalysisException: [UNRESOLVED_COLUMN] no column x",
    "a missing driver": JAVA.format("java.lang.ClassNotFoundException: org.postgresql.Driver"),
    "a database's password": JAVA.format(
        'org.postgresql.util.PSQLException: FATAL: password authentication failed for user "u"'
    ),
    "a missing table": JAVA.format(
        'org.postgresql.util.PSQLException: ERROR: relation "t" does not exist'
    ),
    "a missing database": JAVA.format(
        'org.postgresql.util.PSQLException: FATAL: database "d" does not exist'
    ),
    "a value that SQL can't take": "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012",
    "a row that is not as expected": "[USER_RAISED_EXCEPTION] a row of SQLSTATE: P0001",
    "a folder that may not be written": "Caused by: java.io.IOException: Permission denied\n",
    "a module that is not installed": "ModuleNotFoundError: No module named 'deltalake'",
}

PASS = {
    "a server that is away": OWN.format(
        "ServerError: h:6379/0 can't be reached after 6 tries: Connection refused"
    ),
    "a server that loads": OWN.format("ServerError: h:6379/0 refuses: LOADING Redis is loading"),
    "a replica after failover": OWN.format("ServerError: h:1/0 refuses: READONLY You can't write"),
    "a cluster that is down": OWN.format("ServerError: h:1/0 refuses: CLUSTERDOWN The cluster"),
    "a full memory": OWN.format("ServerError: h:1/0 refuses: OOM command not allowed when used"),
    "too many clients": OWN.format("ServerError: h:1/0 refuses: max number of clients reached"),
    "a disk that is full": "Caused by: java.io.IOException: No space left on device\n",
    "a database that is away": JAVA.format(
        "org.postgresql.util.PSQLException: Connection to h:5432 refused."
    ),
    "what nobody knows": "something else",
}


@pytest.mark.parametrize("text", STAY.values(), ids=list(STAY))
def test_what_stays_wrong_is_not_tried_again(text: str) -> None:
    assert not worth_retry(Exception(text))


@pytest.mark.parametrize("text", PASS.values(), ids=list(PASS))
def test_what_may_pass_is_tried_again(text: str) -> None:
    assert worth_retry(Exception(text))


def test_a_value_is_tried_again_where_attempts_make_it_a_dead_letter() -> None:
    for name in ("a value that SQL can't take", "a row that is not as expected"):
        assert worth_retry(Exception(STAY[name]), poison_counts=True)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (OWN.format("ServerError: x"), "ServerError"),
        ("[STREAM_FAILED] Query\n[DIVIDE_BY_ZERO] x", "DIVIDE_BY_ZERO"),
        (JAVA.format("java.sql.SQLException: x"), "SQLException"),
        ("x\nCaused by: java.io.IOException: No space", "IOException"),
        ("Traceback\nValueError: five", "ValueError"),
        ("nothing known", "Exception"),
    ],
)
def test_an_error_is_named_by_its_innermost_class(text: str, name: str) -> None:
    assert error_class(Exception(text)) == name


def failed(text: str, attempt: int) -> Failure:
    return failure_of("2026-01-01T00:00:00.000Z", "q", Exception(text), attempt, 3, 5.0)


def test_a_failure_is_a_line_for_people_and_one_for_machines() -> None:
    failure = failed(PASS["a server that is away"], 2)
    message = "h:6379/0 can't be reached after 6 tries: Connection refused"
    assert failure.line() == f"q: {message}; attempt 2 of 3 follows"
    assert json.loads(failure.record("p")) == {
        "kind": "failure",
        "pipeline": "p",
        "time": "2026-01-01T00:00:00.000Z",
        "query": "q",
        "attempt": 2,
        "attempts": 3,
        "error": "ServerError",
        "retry": True,
        "pause_s": 5.0,
        "message": message,
    }


def test_the_last_failure_says_that_nothing_follows() -> None:
    used_up = failed(PASS["a server that is away"], 4)
    assert (used_up.retry, used_up.pause_s) == (False, 0.0)
    certain = failed(STAY["a missing driver"], 1)
    assert not certain.retry
    assert certain.line() == (
        "q: the Java class 'org.postgresql.Driver' is missing: name its jar in 'spark.jars' or "
        "'spark.jars.packages' of [spark.conf]"
    )
