"""Plain decimal numbers in delimited text, many at a time: the same doubles as one by one, in a third of the time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array, Mask

_PAD = 16  # bytes before the text, so that the two words before any place can be loaded
_WORD = 8  # digits that fit a word
_WORDY = 0.25  # share of cells that may need the slow way; beyond it the other reader is faster
_EXACT = 1 << 53  # whole numbers up to here are doubles
_MOST_DIGITS = 19  # that fit 64 bits
_ZEROS = np.uint64(0x3030303030303030)
_PLAIN = b"0123456789+-.eE"

Words = NDArray[np.uint64]
Places = NDArray[np.intp]


def _masks() -> Words:
    """For 0 to 8 digits: the bytes of a word that hold them when they end with it."""
    every = (1 << 64) - 1
    return np.array([every ^ ((1 << 8 * (_WORD - n)) - 1) for n in range(_WORD + 1)], dtype=np.uint64)


_MASKS = _masks()
_POWERS = np.array([10**n for n in range(2 * _WORD + 1)], dtype=np.uint64)
_SCALES = np.array([10.0**n for n in range(2 * _WORD + 1)])


def decimal_table(text: str, delimiter: str, n_columns: int) -> Array | None:
    """The numbers of whole lines, (n_rows, n_columns), or None if another reader must see to them.

    A double is made as the whole number of all digits, divided by a power of ten. Up to 2^53 and 10^22 both are exact,
    and the division rounds once: the result is the nearest double, as strtod gives it. Cells with an exponent, more
    digits or blanks go through `float`.

    Args:
        text: Lines, the last with its line end.
        delimiter: One character between cells.
        n_columns: Cells in every line.

    Returns:
        None where lines have other numbers of cells, or hold anything but digits, signs, points and exponents.
    """
    content = text.encode()
    # Without what numbers are made of, only delimiters and line ends may be left, in the order of a table.
    frame = content.translate(None, _PLAIN)
    row = delimiter.encode() * (n_columns - 1) + b"\n"
    n_rows = len(frame) // len(row)
    if n_rows == 0 or frame != row * n_rows:
        return None
    values = _decimals(b"0" * _PAD + content, ord(delimiter))
    return None if values is None else values.reshape(n_rows, n_columns)


def _decimals(padded: bytes, delimiter: int) -> Array | None:
    """All numbers of a text in which each ends with the delimiter or a line end."""
    letters = np.frombuffer(padded, np.uint8)
    marks = np.flatnonzero((letters == ord(".")) | (letters == delimiter) | (letters == ord("\n")))
    is_point = letters[marks] == ord(".")
    ends = np.flatnonzero(~is_point)
    pointed = is_point[ends - 1] & (ends > 0)
    end = marks[ends]
    point = np.where(pointed, marks[ends - 1], end)
    start = np.concatenate([[_PAD], end[:-1] + 1])
    negative = letters[start] == ord("-")
    n_whole, n_decimals = point - start - negative, end - point - pointed
    n_digits = n_whole + n_decimals
    odd = (n_whole > _WORD) | (n_decimals > 2 * _WORD) | (n_digits == 0) | (n_digits > _MOST_DIGITS)
    number, scale, unclear = _mantissas(padded, point, end, n_whole, n_decimals)
    odd |= unclear | (number > _EXACT)
    values = number.astype(np.float64)
    values /= scale
    np.negative(values, out=values, where=negative)
    return _with_odd(values, odd, padded, start, end)


def _mantissas(
    padded: bytes, point: Places, end: Places, n_whole: Places, n_decimals: Places
) -> tuple[Words, Array, Mask]:
    """All digits of each cell as a whole number, the power of ten it is too large by, and where that went wrong."""
    words: Words = np.ndarray((len(padded) - 7,), dtype="<u8", buffer=padded, strides=(1,))
    whole, faults = _digits(words[point - _WORD], np.clip(n_whole, 0, _WORD))
    low, more = _digits(words[end - _WORD], np.clip(n_decimals, 0, _WORD))
    faults |= more
    if (n_decimals > _WORD).any():
        high, more = _digits(words[end - 2 * _WORD], np.clip(n_decimals - _WORD, 0, _WORD))
        faults |= more
        low += high * _POWERS[_WORD]
    power = np.clip(n_decimals, 0, 2 * _WORD)
    number: Words = whole * _POWERS[power] + low
    return number, _SCALES[power], faults != 0


def _digits(words: Words, count: Places) -> tuple[Words, Words]:
    """The numbers that the last `count` letters of each word spell, and other than 0 where one is no digit."""
    u = np.uint64
    words ^= _ZEROS
    words &= _MASKS[count]
    faults = (words | (words + u(0x7676767676767676))) & u(0x8080808080808080)
    # Neighbours are joined to pairs, pairs to fours, fours to the number: 10 a + b in all places of the word at once.
    words *= u(10 * 2**8 + 1)
    words >>= u(8)
    words &= u(0x00FF00FF00FF00FF)
    words *= u(100 * 2**16 + 1)
    words >>= u(16)
    words &= u(0x0000FFFF0000FFFF)
    words *= u(10000 * 2**32 + 1)
    words >>= u(32)
    return words, faults


def _with_odd(values: Array, odd: Mask, padded: bytes, start: Places, end: Places) -> Array | None:
    """The values with those of odd cells read one by one; None if one is no number, or they are many."""
    places = np.flatnonzero(odd)
    if len(places) > _WORDY * len(values):
        return None
    bounds = zip(start[places].tolist(), end[places].tolist(), strict=True)
    try:
        values[places] = [float(padded[first:last]) for first, last in bounds]
    except ValueError:
        return None
    return values
