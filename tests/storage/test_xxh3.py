"""The hash by which SET compares digests."""

from __future__ import annotations

import pytest

from storage.types.xxh3 import xxh3_64, xxh3_64_in_steps

BYTES = bytes(number * 7 % 251 for number in range(5000))


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        (0, 0x2D06800538D394C2),
        (1, 0xC44BDFF4074EECDB),
        (2, 0x9093381C8763D62E),
        (3, 0xC3489259E968AD9E),
        (4, 0xD3D60C1519014E89),
        (7, 0x0FFC4827844C63A6),
        (8, 0xB88DEE77F6BF6980),
        (9, 0x03688DCAD730D826),
        (15, 0x2E52BC81C6A30FA3),
        (16, 0x9DA23836ADF2BE1E),
        (17, 0xF34C3C9CF5A112D1),
        (31, 0x1C67766271B95C64),
        (32, 0x99CB9AD0F1A11FBE),
        (33, 0xC077B45492D29CDE),
        (64, 0xFAECD52EFFBB854F),
        (65, 0xFD2B8A4F15D954D0),
        (96, 0x8F8A0C940D32E958),
        (97, 0x92B3A831FEBF71AC),
        (128, 0x4C659B745F435148),
        (129, 0xB85222B83902B6E5),
        (143, 0xDBBF853F67ACEB7E),
        (144, 0x4030D31D75951B8F),
        (239, 0x6B9D88F6418559A4),
        (240, 0xD6DFBF67B0675B54),
        (241, 0xC614C8C3575348C1),
        (256, 0xF4186DC163A3283C),
        (1023, 0x540C9523214A845B),
        (1024, 0xF22EF3DC84FF47EA),
        (1025, 0x43F869A83769A435),
        (1088, 0x40D71F037CD0C530),
        (1089, 0xC1F23F6BFA8243A4),
        (2048, 0x3D2649F662A2E191),
        (2049, 0x4583128AFA3A2985),
        (5000, 0xCE29A19460EE1BFC),
    ],
)
def test_the_hash_of_every_kind_of_length(length: int, expected: int) -> None:
    assert xxh3_64(BYTES[:length]) == expected


def test_the_hash_of_a_known_text_with_leading_zeros() -> None:
    text = (
        b"v8lf0c11xh8ymlqztfd3eeq16kfn4sspw7fqmnuuq3k3t75em5wdizgcdw7uc26nnf961u2jkfzkjytls2kwlj7"
        b"626sd"
    )
    assert xxh3_64(text) == 0x00006C38ADF31777


def test_each_block_is_a_step() -> None:
    assert sum(1 for _ in xxh3_64_in_steps(bytes(10 * 1024 + 1))) == 10
    assert sum(1 for _ in xxh3_64_in_steps(bytes(240))) == 0
