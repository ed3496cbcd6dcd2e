"""Numbers as a reader wants them: few digits, a true minus sign, never a promise too good."""

from __future__ import annotations

import math

MINUS = "\N{MINUS SIGN}"
NARROW = "\N{NARROW NO-BREAK SPACE}"
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def short(value: float, digits: int = 4) -> str:
    """Return a number with a few significant digits.

    Examples
    --------
    >>> from tacit.report.numbers import short
    >>> short(-0.0123456), short(32561), short(1e-6)
    ('−0.01235', '32,561', '10⁻⁶')
    """
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    size = abs(value)
    if size and (size < 1e-4 or size >= 1e7):
        return _scientific(value, digits)
    if float(value).is_integer() or size >= 10.0**digits:
        return f"{round(value):,}".replace("-", MINUS)
    return f"{value:,.{digits}g}".replace("-", MINUS)


def _scientific(value: float, digits: int) -> str:
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    number = float(mantissa)
    power = f"10{str(int(exponent)).translate(_SUPERSCRIPTS)}"
    if number == 1.0:
        return power
    return f"{number:g}".replace("-", MINUS) + f"{NARROW}\N{MULTIPLICATION SIGN}{NARROW}{power}"


def probability(value: float) -> str:
    """Return a probability, a power of ten as one.

    Examples
    --------
    >>> from tacit.report.numbers import probability
    >>> probability(1e-4), probability(0.0), probability(2.5e-5).split()
    ('10⁻⁴', '0', ['2.5', '×', '10⁻⁵'])
    """
    if 0.0 < value < 0.1:
        return _scientific(value, 4)
    return short(value)


def rounded_up(value: float, digits: int = 4) -> str:
    """Return a cost with this many decimals, never less than it is.

    Examples
    --------
    >>> from tacit.report.numbers import rounded_up
    >>> rounded_up(0.99991), rounded_up(0.9999)
    ('1.0000', '0.9999')
    """
    if not math.isfinite(value):
        return short(value)
    unit = 10.0**-digits
    # As in Guarantee.statement, so that the page never contradicts itself.
    return f"{math.ceil(round(value / unit, 6)) * unit:.{digits}f}"


def rounded_down(value: float, digits: int = 4) -> str:
    """Return what is left with this many decimals, never more than it is.

    Examples
    --------
    >>> from tacit.report.numbers import rounded_down
    >>> rounded_down(0.99999), rounded_down(0.9999)
    ('0.9999', '0.9999')
    """
    if not math.isfinite(value):
        return short(value)
    unit = 10.0**-digits
    return f"{math.floor(round(value / unit, 6)) * unit:.{digits}f}"


def aligned(values: list[float]) -> list[str]:
    """Return numbers of one column with the same number of decimals.

    Examples
    --------
    >>> from tacit.report.numbers import aligned
    >>> aligned([1.23456, -12.0])
    ['1.23', '−12.00']
    """
    sizes = [abs(value) for value in values if value and math.isfinite(value)]
    largest = max(sizes, default=1.0)
    if largest >= 1e7 or largest < 1e-6:
        return [short(value, 3) for value in values]
    decimals = min(max(3 - math.floor(math.log10(largest)), 0), 8)
    return [_fixed(value, decimals) for value in values]


def _fixed(value: float, decimals: int) -> str:
    if not math.isfinite(value):
        return short(value)
    text = f"{value:,.{decimals}f}"
    if float(text.replace(",", "")) == 0.0:
        text = text.lstrip("-")
    return text.replace("-", MINUS)
