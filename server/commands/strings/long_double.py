"""Addition with the precision that INCRBYFLOAT has on most machines.

Redis computes in C's ``long double``, which on x86 has a mantissa of 64 bits: eleven more than
Python's ``float``. Here numbers are exact fractions that are rounded where C would round.
"""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from typing import Final

MANTISSA_BITS: Final = 64
LONGEST_TEXT: Final = 5119
"""No longer text is taken for a number."""

HIGHEST: Final = Fraction(2**MANTISSA_BITS - 1) * 2 ** (16384 - MANTISSA_BITS)
"""The highest finite number."""

_LOWEST: Final = Fraction(1, 2**16446)
"""Numbers up to this one vanish: it is half the lowest that can be held."""

_EXPONENT_LIMIT: Final = 50_000
"""No exponent beyond this makes a difference, given the length of the text before it."""

_DECIMALS: Final = 17

_DECIMAL: Final = re.compile(rb"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:[eE]([+-]?[0-9]+))?")
_HEXADECIMAL: Final = re.compile(
    rb"([+-]?)0[xX](?=\.?[0-9a-fA-F])([0-9a-fA-F]*)\.?([0-9a-fA-F]*)(?:[pP]([+-]?[0-9]+))?"
)
_INFINITY: Final = re.compile(rb"[+-]?inf(?:inity)?", re.IGNORECASE)


def add(first: bytes, second: bytes) -> bytes:
    """The sum of two numbers, with up to 17 decimal places and no zeros at its end.

    Raises :class:`ValueError` if a text is no number or its number cannot be held, and
    :class:`OverflowError` if the sum is not finite.
    """
    one, two = parse(first), parse(second)
    if one is None or two is None:
        raise OverflowError
    total = rounded(one + two)
    if abs(total) > HIGHEST:
        raise OverflowError
    return text_of(total)


def parse(text: bytes) -> Fraction | None:
    """The number that ``text`` spells as C's strtold reads it; ``None`` if that is infinity.

    Raises :class:`ValueError` if it is no number, or one that cannot be held.
    """
    if len(text) > LONGEST_TEXT:
        raise ValueError("too long for a number")
    if _INFINITY.fullmatch(text):
        return None
    exact = _exact(text)
    value = rounded(exact)
    if abs(value) > HIGHEST or (exact and abs(exact) <= _LOWEST):
        raise ValueError("out of range")
    return value


def _exact(text: bytes) -> Fraction:
    if match := _DECIMAL.fullmatch(text):
        exponent = _exponent(match[2])
        return Fraction(Decimal(f"{match[1].decode()}e{exponent}"))
    if match := _HEXADECIMAL.fullmatch(text):
        sign, whole, rest, exponent = match[1], match[2], match[3], _exponent(match[4])
        value = Fraction(int(whole + rest, 16)) * Fraction(2) ** (exponent - 4 * len(rest))
        return -value if sign == b"-" else value
    raise ValueError("not a number")


def _exponent(text: bytes | None) -> int:
    if text is None:
        return 0
    value = int(Decimal(text.decode()))
    return max(-_EXPONENT_LIMIT, min(_EXPONENT_LIMIT, value))


def rounded(value: Fraction) -> Fraction:
    """The nearest number of 64 significant bits; of two that are as near, the even one."""
    if not value:
        return value
    excess = value.numerator.bit_length() - value.denominator.bit_length() - MANTISSA_BITS
    unit = Fraction(2) ** excess
    if abs(value) >= unit * 2**MANTISSA_BITS:
        unit *= 2
    return round(value / unit) * unit


def text_of(value: Fraction) -> bytes:
    """The number with up to 17 decimal places and no zeros at its end."""
    digits = str(Decimal(abs(round(value * 10**_DECIMALS)))).rjust(_DECIMALS + 1, "0")
    whole, rest = digits[:-_DECIMALS], digits[-_DECIMALS:].rstrip("0")
    text = f"{whole}.{rest}" if rest else whole
    return (f"-{text}" if value < 0 and text != "0" else text).encode()
