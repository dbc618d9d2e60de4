"""What the tools share: names as commands have them."""

from __future__ import annotations

import pytest

from penstock.operate.common import parser, word


@pytest.mark.parametrize(
    ("name", "typed"),
    [
        (b"orders:eu-1", "orders:eu-1"),
        (b"two words", '"two words"'),
        (b'a"b\\c', r'"a\"b\\c"'),
        (b"\xff\n", r'"\xff\x0a"'),
        ("é\x9b\u202e".encode(), r'"é\xc2\x9b\xe2\x80\xae"'),
    ],
)
def test_a_name_is_typed_as_redis_cli_reads_it(name: bytes, typed: str) -> None:
    assert word(name) == typed


def test_the_server_is_named_by_the_letters_of_redis_cli(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PENSTOCK_URL", "redis://other:1")
    assert parser("groups", "").parse_args([]).url == "redis://other:1"
    assert parser("groups", "").parse_args(["-p", "7000"]).url == "redis://127.0.0.1:7000"
    assert parser("groups", "").parse_args(["-u", "redis://host"]).url == "redis://host"
    for args, why in (
        (["-p", "0"], "-p is a number from 1 to 65535"),
        (["-p", "x"], "argument -p/--port: invalid int value: 'x'"),
        (["-p", "7000", "-u", "redis://host"], "not allowed with argument"),
    ):
        with pytest.raises(SystemExit):
            parser("groups", "").parse_args(args)
        assert why in capsys.readouterr().err
