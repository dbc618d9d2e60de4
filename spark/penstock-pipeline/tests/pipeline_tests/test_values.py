"""Texts of a pipeline file: references, types, lengths of time, places."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock_pipeline.toml_file import duration, expand, resolve
from penstock_pipeline.values import is_type

ENVIRONMENT = {"USER": "ada", "EMPTY": ""}


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("plain", "plain"),
        ("${USER}", "ada"),
        ("<${USER}:${NONE:-x y}>", "<ada:x y>"),
        ("${EMPTY:-x}", ""),
        ("${NONE:-}", ""),
        ("$$HOME $${USER}", "$HOME ${USER}"),
        ("5 $ and $USER", "5 $ and $USER"),
    ],
)
def test_references_are_replaced(text: str, expanded: str) -> None:
    assert expand(text, ENVIRONMENT) == expanded


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("${NONE}", "the environment variable NONE is not set"),
        ("${USER", "'${USER' is no reference; allowed: ${NAME}, ${NAME:-default}"),
        ("${}", "'${}' is no reference; allowed: ${NAME}, ${NAME:-default}"),
    ],
)
def test_what_a_reference_lacks_is_told(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=r"reference|not set") as caught:
        expand(text, ENVIRONMENT)
    assert str(caught.value) == message


@pytest.mark.parametrize("text", ["int", " STRING ", "decimal(38,2)", "decimal", "timestamp"])
def test_types_of_single_values_are_known(text: str) -> None:
    assert is_type(text, nested=False)
    assert is_type(text)


@pytest.mark.parametrize("text", ["", "strin", "decimal(39,2)", "decimal(2,3)", "int int", "int("])
def test_other_words_are_no_types(text: str) -> None:
    assert not is_type(text, nested=False)
    assert not is_type(text)


@pytest.mark.parametrize(
    "text",
    [
        "array<int>",
        "map<string, array<double>>",
        "struct<a:int,`b c`:struct<d:decimal(3,1)>>",
    ],
)
def test_types_may_hold_others(text: str) -> None:
    assert is_type(text)
    assert not is_type(text, nested=False)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "array",
            "array<",
            "array<int",
            "array<int>>",
            "map<int>",
            "map<int,string",
            "map<int,string>",
        ),
        *("struct<>", "struct<a>", "struct<a:>", "struct<a:int", "struct<a:int,>", "array<int>;"),
    ],
)
def test_unfinished_types_are_refused(text: str) -> None:
    assert not is_type(text)


def test_lengths_of_time_are_seconds() -> None:
    assert duration("10 seconds") == 10
    assert duration("1 hour 30 Minutes") == 5400
    assert duration("250 milliseconds") == 0.25
    assert duration("2days") == 172800


@pytest.mark.parametrize("text", ["10", "ten seconds", "1 fortnight", "-1 second", "1 second x"])
def test_other_lengths_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="allowed: a number with millisecond, second, minute"):
        duration(text)


def test_relative_places_are_beside_the_file() -> None:
    assert resolve("out/x", Path("/a/b")) == "/a/b/out/x"
    assert resolve("../x", Path("/a/b")) == "/a/x"
    assert resolve("/x", Path("/a/b")) == "/x"
    assert resolve("s3a://bucket/x", Path("/a/b")) == "s3a://bucket/x"
