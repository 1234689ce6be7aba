"""The values of the options of `demo` from their texts; each raises ArgumentTypeError for a wrong one."""

import argparse
from math import isfinite

from eclectus_e2e.demo.schedulers import SCHEDULERS


def load(text: str) -> float:
    """A load below 1."""
    value = _number(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(
            f"a load is between 0 and 1, not {text}: at 1 and above, queues grow without bound"
        )
    return value


def loads(text: str) -> list[float]:
    """Loads, separated by commas, in order; none of an empty text."""
    return sorted({load(part) for part in text.split(",") if part})


def seconds(text: str) -> float:
    """The length of a stream."""
    value = _number(text)
    if not 5 <= value <= 3600:
        raise argparse.ArgumentTypeError(f"between 5 and 3600 seconds, not {text}")
    return value


def pairs(text: str) -> int:
    """A number of pairs."""
    value = _number(text)
    if value != int(value) or not 1 <= value <= 20:
        raise argparse.ArgumentTypeError(f"a whole number from 1 to 20, not {text}")
    return int(value)


def names(text: str) -> list[str]:
    """Names of SCHEDULERS, separated by commas."""
    given = text.split(",")
    unknown = [name for name in given if name not in SCHEDULERS]
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is unknown; known are {', '.join(SCHEDULERS)}")
    return given


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not isfinite(value):
        raise argparse.ArgumentTypeError(f"a number is expected, not {text!r}")
    return value
