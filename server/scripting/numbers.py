"""Numbers of scripts as text, and as the 32 bits that the library ``bit`` works on."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from operator import and_, or_, xor
from typing import Final

MASK: Final = 0xFFFFFFFF
SIGN: Final = 0x80000000
NUMBER_OF_BITS: Final = 32


def number_text(number: float) -> bytes:
    """The shortest text that reads as the same number, in the form that Redis gives it.

    Few zeros are written out; where there would be many, there is an exponent.
    """
    if math.isnan(number):
        return b"nan"
    if math.isinf(number):
        return b"inf" if number > 0 else b"-inf"
    digits, exponent = _shortest(float(abs(number)))
    sign = "-" if math.copysign(1, number) < 0 else ""
    return (sign + _written(digits, exponent)).encode()


def _shortest(number: float) -> tuple[str, int]:
    """Digits without zeros at the ends, and the power of ten of the last one."""
    mantissa, _, power = f"{number!r}e0".partition("e")
    whole, _, fraction = mantissa.partition(".")
    exponent = int(power.partition("e")[0]) - len(fraction)
    digits = (whole + fraction).lstrip("0")
    kept = digits.rstrip("0")
    return (kept, exponent + len(digits) - len(kept)) if kept else ("0", 0)


def _written(digits: str, exponent: int) -> str:
    count = len(digits)
    magnitude = abs(exponent + count - 1)
    if exponent >= 0 and magnitude < count + 7:
        return digits + "0" * exponent
    if exponent < 0 and (exponent > -7 or magnitude < 4):
        padded = digits.rjust(1 - exponent, "0")
        return f"{padded[:exponent]}.{padded[exponent:]}"
    fraction = f".{digits[1:]}" if count > 1 else ""
    return f"{digits[0]}{fraction}e{exponent + count - 1:+d}".replace("e-0", "e-")


# --- bits ------------------------------------------------------------------------------------


def to_bits(number: float) -> int:
    """The lowest 32 bits of the number, rounded to an integer; none for NaN and infinity."""
    return round(number) & MASK if math.isfinite(number) else 0


def _signed(bits: int) -> float:
    return float((bits & MASK ^ SIGN) - SIGN)


def _rotated(bits: int, count: int) -> int:
    count %= NUMBER_OF_BITS
    return bits << count | bits >> (NUMBER_OF_BITS - count)


def _shift(operation: Callable[[int, int], int]) -> Callable[..., float]:
    def apply(number: float, count: float) -> float:
        return _signed(operation(to_bits(number), to_bits(count) % NUMBER_OF_BITS))

    return apply


def _fold(operation: Callable[[int, int], int]) -> Callable[..., float]:
    return lambda *numbers: _signed(reduce(operation, map(to_bits, numbers)))


def _hexadecimal(number: float, digits: float) -> bytes:
    """As many of the last digits as are asked for; capital ones if that is negative."""
    wanted = _signed(to_bits(digits))
    count = min(8, abs(int(wanted)))
    form = "%08X" if wanted < 0 else "%08x"
    return (form % to_bits(number)).encode()[8 - count :]


def _swapped(number: float) -> float:
    return _signed(int.from_bytes(to_bits(number).to_bytes(4, "little"), "big"))


OPERATIONS: Final[dict[bytes, Callable[..., float | bytes]]] = {
    b"tobit": lambda number: _signed(to_bits(number)),
    b"bnot": lambda number: _signed(~to_bits(number)),
    b"band": _fold(and_),
    b"bor": _fold(or_),
    b"bxor": _fold(xor),
    b"lshift": _shift(lambda bits, count: bits << count),
    b"rshift": _shift(lambda bits, count: bits >> count),
    b"arshift": _shift(lambda bits, count: int(_signed(bits)) >> count),
    b"rol": _shift(_rotated),
    b"ror": _shift(lambda bits, count: _rotated(bits, -count)),
    b"bswap": _swapped,
    b"tohex": _hexadecimal,
}
"""The functions of the library ``bit``; their arguments are numbers."""


def operate(name: bytes, *numbers: float) -> float | bytes:
    """The result of one of :data:`OPERATIONS`."""
    return OPERATIONS[name](*numbers)
