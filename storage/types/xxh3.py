"""The 64-bit XXH3 hash of a string, as used by DIGEST, IFDEQ and IFDNE.

The algorithm is specified at https://github.com/Cyan4973/xxHash; this is its form without a seed,
with the standard secret. Inputs are treated by length: nothing, 1-3, 4-8, 9-16, 17-128 and 129-240
bytes, and whole blocks beyond that.
"""

from __future__ import annotations

from collections.abc import Generator
from operator import mul
from struct import Struct, unpack_from
from typing import Final

from storage.engine.stepwise import result

_MASK: Final = 2**64 - 1
_LOW: Final = 2**32 - 1

_PRIME32_1: Final = 0x9E3779B1
_PRIME32_2: Final = 0x85EBCA77
_PRIME32_3: Final = 0xC2B2AE3D
_PRIME64_1: Final = 0x9E3779B185EBCA87
_PRIME64_2: Final = 0xC2B2AE3D27D4EB4F
_PRIME64_3: Final = 0x165667B19E3779F9
_PRIME64_4: Final = 0x85EBCA77C2B2AE63
_PRIME64_5: Final = 0x27D4EB2F165667C5
_MIXING_PRIME: Final = 0x165667919E3779F9
_SHORT_MIXING_PRIME: Final = 0x9FB21C651E98DF25

_SECRET: Final = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)

_STRIPE: Final = 64
_STRIPES_A_BLOCK: Final = (len(_SECRET) - _STRIPE) // 8
_BLOCK: Final = _STRIPE * _STRIPES_A_BLOCK

_BLOCK_KEYS: Final = int.from_bytes(
    b"".join(_SECRET[8 * place : 8 * place + _STRIPE] for place in range(_STRIPES_A_BLOCK)),
    "little",
)
"""What each of the stripes of a block is xored with."""

_WORDS: Final = Struct(f"<{_BLOCK // 8}Q")
_HALVES: Final = Struct(f"<{_BLOCK // 4}I")


def xxh3_64(data: bytes) -> int:
    """The hash as an unsigned number."""
    return result(xxh3_64_in_steps(data))


def xxh3_64_in_steps(data: bytes) -> Generator[None, None, int]:
    """The same, with a step for each KiB of long inputs."""
    length = len(data)
    if length <= 16:
        return _hash_short(data)
    if length <= 128:
        return _hash_medium(data)
    if length <= 240:
        return _hash_240(data)
    return (yield from _hash_long(data))


def _u64(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")


def _fold(one: int, two: int) -> int:
    """The two halves of a 128-bit product, xored."""
    product = one * two
    return (product & _MASK) ^ (product >> 64)


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _MASK


def _avalanche(value: int) -> int:
    value ^= value >> 37
    value = value * _MIXING_PRIME & _MASK
    return value ^ (value >> 32)


def _older_avalanche(value: int) -> int:
    """The last step of XXH64, which the shortest inputs share."""
    value ^= value >> 33
    value = value * _PRIME64_2 & _MASK
    value ^= value >> 29
    value = value * _PRIME64_3 & _MASK
    return value ^ (value >> 32)


def _hash_short(data: bytes) -> int:
    length = len(data)
    if length > 8:
        low = _u64(data, 0) ^ _u64(_SECRET, 24) ^ _u64(_SECRET, 32)
        high = _u64(data, length - 8) ^ _u64(_SECRET, 40) ^ _u64(_SECRET, 48)
        swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
        return _avalanche((length + swapped + high + _fold(low, high)) & _MASK)
    if length > 3:
        return _hash_4_to_8(data)
    if not data:
        return _older_avalanche(_u64(_SECRET, 56) ^ _u64(_SECRET, 64))
    first, middle, last = data[0], data[length >> 1], data[-1]
    low_secret, high_secret = unpack_from("<II", _SECRET)
    combined = first << 16 | middle << 24 | last | length << 8
    return _older_avalanche(combined ^ low_secret ^ high_secret)


def _hash_4_to_8(data: bytes) -> int:
    length = len(data)
    first = int.from_bytes(data[:4], "little")
    last = int.from_bytes(data[-4:], "little")
    value = (last + (first << 32)) ^ _u64(_SECRET, 8) ^ _u64(_SECRET, 16)
    value ^= _rotated(value, 49) ^ _rotated(value, 24)
    value = value * _SHORT_MIXING_PRIME & _MASK
    value ^= (value >> 35) + length
    value = value * _SHORT_MIXING_PRIME & _MASK
    return value ^ (value >> 28)


def _mix16(data: bytes, at: int, secret_at: int) -> int:
    low, high = unpack_from("<QQ", data, at)
    low_secret, high_secret = unpack_from("<QQ", _SECRET, secret_at)
    return _fold(low ^ low_secret, high ^ high_secret)


def _hash_medium(data: bytes) -> int:
    """From both ends towards the middle, 16 bytes at a time."""
    length = len(data)
    total = length * _PRIME64_1
    for i in range((length - 1) // 32 + 1):
        total += _mix16(data, 16 * i, 32 * i) + _mix16(data, length - 16 * (i + 1), 32 * i + 16)
    return _avalanche(total & _MASK)


def _hash_240(data: bytes) -> int:
    length = len(data)
    total = length * _PRIME64_1 + sum(_mix16(data, at, at) for at in range(0, 128, 16))
    total = _avalanche(total & _MASK)
    for at in range(128, length // 16 * 16, 16):
        total += _mix16(data, at, at - 128 + 3)
    return _avalanche((total + _mix16(data, length - 16, 136 - 17)) & _MASK)


def _hash_long(data: bytes) -> Generator[None, None, int]:
    lanes = [
        _PRIME32_3, _PRIME64_1, _PRIME64_2, _PRIME64_3,
        _PRIME64_4, _PRIME32_2, _PRIME64_5, _PRIME32_1,
    ]  # fmt: skip
    stripes = (len(data) - 1) // _STRIPE
    in_blocks = stripes - stripes % _STRIPES_A_BLOCK
    for at in range(0, in_blocks * _STRIPE, _BLOCK):
        _accumulate_block(lanes, data, at)
        _scramble(lanes)
        yield
    for place, stripe in enumerate(range(in_blocks, stripes)):
        _accumulate(lanes, data, stripe * _STRIPE, 8 * place)
    _accumulate(lanes, data, len(data) - _STRIPE, len(_SECRET) - _STRIPE - 7)
    total = len(data) * _PRIME64_1
    keys = unpack_from("<8Q", _SECRET, 11)
    for i in range(0, 8, 2):
        total += _fold(lanes[i] ^ keys[i], lanes[i + 1] ^ keys[i + 1])
    return _avalanche(total & _MASK)


def _accumulate(lanes: list[int], data: bytes, at: int, secret_at: int) -> None:
    """Takes a stripe into the lanes."""
    words = unpack_from("<8Q", data, at)
    keys = unpack_from("<8Q", _SECRET, secret_at)
    for i in range(8):
        keyed = words[i] ^ keys[i]
        lanes[i ^ 1] = (lanes[i ^ 1] + words[i]) & _MASK
        lanes[i] = (lanes[i] + (keyed & _LOW) * (keyed >> 32)) & _MASK


def _accumulate_block(lanes: list[int], data: bytes, at: int) -> None:
    """Takes all stripes of a block into the lanes. They are sums, so the order is of no matter,
    and what is the same for many words is done in C, which takes about half of the time."""
    words = _WORDS.unpack_from(data, at)
    keyed = int.from_bytes(data[at : at + _BLOCK], "little") ^ _BLOCK_KEYS
    halves = _HALVES.unpack(keyed.to_bytes(_BLOCK, "little"))
    for i in range(8):
        lanes[i ^ 1] += sum(words[i::8])
        lanes[i] += sum(map(mul, halves[2 * i :: 16], halves[2 * i + 1 :: 16]))
    for i in range(8):
        lanes[i] &= _MASK


def _scramble(lanes: list[int]) -> None:
    """Ends a block of stripes."""
    keys = unpack_from("<8Q", _SECRET, len(_SECRET) - _STRIPE)
    for i in range(8):
        lanes[i] = (lanes[i] ^ (lanes[i] >> 47) ^ keys[i]) * _PRIME32_1 & _MASK
