"""Names in labels: what they look like, and that different ones never look alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from server.web.metrics.text import GAUGE, Family, labels, readable


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (b"orders", "orders"),
        ("größe".encode(), "größe"),
        (b"", ""),
        (rb"a\xff", r"a\xff"),
        (b"a\xff", "\ufffd" + r"a\xff"),
        (b"\\\xff", "\ufffd" + r"\\\xff"),
        ("\ufffd".encode(), "\ufffd" + r"\xef\xbf\xbd"),
    ],
)
def test_a_name_that_is_not_utf_8_is_escaped_behind_a_mark(name: bytes, text: str) -> None:
    assert readable(name) == text


NAMES = st.one_of(
    st.binary(max_size=6),
    st.text(st.sampled_from('\ufffd\\x"\nfea\r '), max_size=6).map(str.encode),
)


@given(st.lists(NAMES, unique=True))
def test_different_names_look_different(names: list[bytes]) -> None:
    assert len({readable(name) for name in names}) == len(names)


@given(st.lists(NAMES, min_size=2, max_size=2))
def test_labels_are_read_as_they_were(names: list[bytes]) -> None:
    pairs = dict(zip(("stream", "db"), map(readable, names), strict=True))
    head = Family("x", GAUGE, "Something.").head
    (family,) = text_string_to_metric_families(f"{head}x{labels(pairs)} 1\n")
    assert family.samples[0].labels == pairs


def test_labels_are_in_the_order_of_their_names() -> None:
    assert labels({"stream": 'a"b', "db": "x\ny\\"}) == r'{db="x\ny\\",stream="a\"b"}'
