from __future__ import annotations

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from penstock_pipeline.toml_file import line_of, locate

TEXT = '''\
# [not.a.table]
name = "x"   # comment with = and "quotes"

[source]
"stream.keys" = "a"
list = [
  "b = 1",   # ]
  [1, 2],
]
after = 1
nested.key = 2

[[sink]]
text = """
[[sink]]
path = 1 \\""" still
"""
path = 'a'
[sink.options]
x = { y = 1 }

[[sink]]
path = 'b'
'''


def test_every_key_and_table_has_its_line() -> None:
    assert locate(TEXT) == {
        ("name",): 2,
        ("source",): 4,
        ("source", "stream.keys"): 5,
        ("source", "list"): 6,
        ("source", "after"): 10,
        ("source", "nested"): 11,
        ("source", "nested", "key"): 11,
        ("sink",): 13,
        ("sink", 0): 13,
        ("sink", 0, "text"): 14,
        ("sink", 0, "path"): 18,
        ("sink", 0, "options"): 19,
        ("sink", 0, "options", "x"): 20,
        ("sink", 1): 22,
        ("sink", 1, "path"): 23,
    }


def test_a_key_within_an_inline_table_has_the_line_of_that() -> None:
    lines = locate(TEXT)
    assert line_of(lines, ("sink", 0, "options", "x", "y")) == 20
    assert line_of(lines, ("missing",)) == 1


def test_windows_line_ends_count_once() -> None:
    assert locate("a = 1\r\n\r\nb = 2\r\n") == {("a",): 1, ("b",): 3}


VALUES = st.one_of(
    st.text(st.sampled_from("ab=[]{}#\\ '"), max_size=8).map(
        lambda text: '"' + text.replace("\\", "\\\\") + '"'
    ),
    st.text(st.sampled_from('ab=[]{}#"\n'), max_size=8).map(
        lambda text: "'''" + text + "'''" if not text.startswith("\n") else "''' '''"
    ),
    st.lists(st.sampled_from(['"]"', "'['", "1", "{ a = 1 }"]), max_size=3).map(
        lambda parts: "[\n" + "".join(f"  {part}, # ]\n" for part in parts) + "]"
    ),
)


@given(st.lists(VALUES, min_size=1, max_size=6))
def test_lines_are_right_whatever_the_values_hold(values: list[str]) -> None:
    text = ""
    expected = {}
    for number, value in enumerate(values):
        expected[f"k{number}",] = text.count("\n") + 1
        text += f"k{number} = {value}\n"
    assert set(tomllib.loads(text)) == {path[0] for path in expected}
    assert locate(text) == expected
