"""Scores as text: as clients write them, and as Redis prints them.

Redis prints whole numbers in full, and others by Grisu2 (F. Loitsch, "Printing Floating-Point
Numbers Quickly and Accurately with Integers", PLDI 2010). That works on 64 bits, so now and then it
does not find the shortest digits, or not the nearest ones; Python's ``repr`` always does. Here it
is done as there, so that each score has the text that Redis gives it.
"""

from __future__ import annotations

import re
from math import copysign, frexp, inf, isfinite
from typing import Final

from protocol import errors
from protocol.encoder import bulk
from protocol.errors import CommandError
from server.commands.sorted_sets import errors as zset_errors

# --- reading ---------------------------------------------------------------------------------

_DECIMAL: Final = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DIGITS: Final = b"0123456789.+-eE"
_ENDS: Final = {b"-inf": -inf, b"+inf": inf}
"""The texts that most ranges end with."""
_INFINITE: Final = re.compile(rb"[+-]?inf(?:inity)?", re.IGNORECASE)
_HEXADECIMAL: Final = re.compile(
    rb"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP][+-]?[0-9]+)?"
)
_NOT_ZERO: Final = re.compile(rb"[1-9a-fA-F]")


def score_of(text: bytes, error: str = errors.NOT_A_FLOAT) -> float:
    """The number that a text spells, decimal, hexadecimal or infinite. Raises
    :class:`CommandError` for another text, and for a number that is not held."""
    plain = _plain(text)
    if plain and isfinite(plain):
        return plain
    if _DECIMAL.fullmatch(text):
        score = float(text)
        digits = re.split(rb"[eE]", text)[0] if not score else b""
    elif _INFINITE.fullmatch(text):
        return float(text)
    elif _HEXADECIMAL.fullmatch(text):
        score, digits = _of_hexadecimal(text), re.split(rb"[xXpP]", text)[1]
    else:
        raise CommandError(error)
    if score in (inf, -inf) or (not score and _NOT_ZERO.search(digits)):
        raise CommandError(error)
    return score


def _plain(text: bytes) -> float | None:
    """The number that a text of digits spells. Of these letters Python takes the same texts as
    Redis, and takes them faster than a pattern."""
    if text.strip(_DIGITS):
        return None
    try:
        return float(text)
    except ValueError:
        return None


def _of_hexadecimal(text: bytes) -> float:
    try:
        return float.fromhex(text.decode())
    except OverflowError:
        return inf


def end_of_range(text: bytes) -> tuple[float, bool]:
    """A score that ends a range, and whether it belongs to the range, as it does without a ``(``
    before it. Raises :class:`CommandError`."""
    number = _ENDS.get(text)
    if number is None:
        number = _plain(text)
    if number is not None:
        return number, True
    inside = not text.startswith(b"(")
    digits = (text if inside else text[1:]).split(b"\0", 1)[0]
    if not digits:
        return 0.0, inside
    if _DECIMAL.fullmatch(digits) or _INFINITE.fullmatch(digits):
        return float(digits), inside
    raise CommandError(zset_errors.NO_SCORE_RANGE)


# --- printing --------------------------------------------------------------------------------

_IN_FULL: Final = 2.0**62
"""Up to here whole numbers are printed in full."""


def text_of(score: float) -> bytes:
    """The text of a score."""
    if -_IN_FULL <= score <= _IN_FULL:
        whole = int(score)
        if whole == score and (whole or copysign(1.0, score) > 0):
            return b"%d" % whole
    if score == inf or score == -inf or not score:
        return b"%g" % score
    digits, exponent = _grisu(abs(score))
    sign = b"-" if score < 0 else b""
    return sign + _placed(b"%d" % digits, exponent, 18 - len(sign))


def written(score: float, resp3: bool) -> bytes:
    """A score in a reply, encoded."""
    text = text_of(score)
    return b",%b\r\n" % text if resp3 else bulk(text)


_FEW_ZEROS: Final = 7
"""Fewer zeros than these follow the digits of a large number, and so many places at most a number
has behind its point if it is not near 1."""
_NEAR: Final = 4
"""Fewer places than these from 1, a number is written with all its places."""


def _placed(digits: bytes, exponent: int, most: int) -> bytes:
    """Digits times a power of ten, with its zeros or with an exponent."""
    count = len(digits)
    power = exponent + count - 1
    if exponent >= 0 and power < count + _FEW_ZEROS:
        return digits + b"0" * exponent
    if exponent < 0 and (exponent > -_FEW_ZEROS or abs(power) < _NEAR):
        point = count + exponent
        if point <= 0:
            return b"0." + b"0" * -point + digits
        return digits[:point] + b"." + digits[point:]
    digits = digits[:most]
    rest = b"." + digits[1:] if count > 1 else b""
    return b"%b%be%+d" % (digits[:1], rest, power)


_MANTISSA: Final = 53
_LOWEST: Final = -1074
"""The exponent of the lowest numbers."""
_WORD: Final = 64
_HALF: Final = 1 << _WORD - 1

_FIRST_POWER: Final = -348
_POWER_STEP: Final = 8
_POWERS: Final = 87
_LEAST_EXPONENT: Final = -60
_MOST_EXPONENT: Final = -32
_LOG10_OF_2: Final = 0.30102999566398114


def _power_of_ten(power: int) -> tuple[int, int]:
    """A power of ten as 64 bits and a power of two, rounded."""
    ten = 10 ** abs(power)
    length = ten.bit_length()
    if power < 0:
        shift = _WORD - 1 + length
        return ((1 << shift) + ten // 2) // ten, -shift
    shift = length - _WORD
    return (ten + (1 << shift - 1) >> shift if shift > 0 else ten << -shift), shift


_TENS: Final[list[tuple[int, int]]] = []
"""Powers of ten, made when the first is needed."""


def _power_for(exponent: int) -> tuple[int, int, int]:
    """Of the powers of ten one that brings a number with this exponent to where its digits can be
    taken off: its bits, its exponent, and the power."""
    if not _TENS:
        powers = range(_FIRST_POWER, _FIRST_POWER + _POWERS * _POWER_STEP, _POWER_STEP)
        _TENS.extend([_power_of_ten(power) for power in powers])
    guess = int(-(exponent + _POWERS) * _LOG10_OF_2)
    at = (guess - _FIRST_POWER) // _POWER_STEP
    while True:
        bits, power = _TENS[at]
        reached = exponent + power + _WORD
        if reached < _LEAST_EXPONENT:
            at += 1
        elif reached > _MOST_EXPONENT:
            at -= 1
        else:
            return bits, power, _FIRST_POWER + at * _POWER_STEP


def _grisu(score: float) -> tuple[int, int]:
    """The digits of a positive number, and the power of ten of the last of them."""
    fraction, power = frexp(score)
    exponent = max(power - _MANTISSA, _LOWEST)
    mantissa = int(fraction * 2.0**_MANTISSA) >> exponent - (power - _MANTISSA)
    # The number and half the way to its neighbours, as 64 bits with the exponent of the upper one.
    shift = _WORD - (2 * mantissa + 1).bit_length()
    upper = 2 * mantissa + 1 << shift
    lower = 2 * mantissa - 1 << shift
    if mantissa == 1 << _MANTISSA - 1:
        lower = 4 * mantissa - 1 << shift - 1
    middle = mantissa << shift + 1
    ten, ten_exponent, tens = _power_for(exponent - 1 - shift)
    upper = (upper * ten + _HALF >> _WORD) - 1
    lower = (lower * ten + _HALF >> _WORD) + 1
    middle = middle * ten + _HALF >> _WORD
    places = -(exponent - 1 - shift + ten_exponent + _WORD)
    digits, dropped = _shortest(upper, upper - middle, upper - lower, places)
    return digits, dropped - tens


def _shortest(upper: int, above: int, width: int, places: int) -> tuple[int, int]:
    """The fewest digits of a number of which so many bits are behind its point that lie no further
    than ``width`` below ``upper``, and how many of its digits before the point are dropped; the
    number itself lies ``above`` that is below it."""
    whole, rest = upper >> places, upper & (1 << places) - 1
    unit = 10**9
    left = 10
    digits = 0
    while left:
        digits = 10 * digits + whole // unit
        whole %= unit
        left -= 1
        below = (whole << places) + rest
        if below <= width:
            return digits - _steps_down(below, width, unit << places, above), left
        unit //= 10
    while True:
        rest *= 10
        width *= 10
        above *= 10
        digits = 10 * digits + (rest >> places)
        rest &= (1 << places) - 1
        left -= 1
        if rest < width:
            return digits - _steps_down(rest, width, 1 << places, above), left


def _steps_down(below: int, width: int, unit: int, above: int) -> int:
    """By how many units digits that lie ``below`` the upper end get nearer to the number."""
    steps = 0
    while (
        below < above
        and width - below >= unit
        and (below + unit < above or above - below > below + unit - above)
    ):
        below += unit
        steps += 1
    return steps
