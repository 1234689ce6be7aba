"""Quantities: the grammar of Kubernetes, exact to thousandths, with errors for anything else."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eclectus.kube import requests as quantity
from eclectus.kube.requests import BEYOND_MOST, thousandths, units

WRITTEN = {
    "0": 0,
    "-0": 0,
    "1": 1_000,
    "+3": 3_000,
    "250m": 250,
    "0.1": 100,
    ".5": 500,
    "1.": 1_000,
    "1.5Gi": 1_610_612_736_000,
    "2Ki": 2_048_000,
    "1k": 1_000_000,
    "3M": 3_000_000_000,
    "1G": 10**12,
    "1T": 10**15,
    "1P": 10**18,
    "1E": 10**21,  # exa, not an exponent without digits
    "1E3": 1_000_000,
    "12e6": 12_000_000_000,
    "5e-1": 500,
    "1Mi": 2**20 * 1000,
    "1Ti": 2**40 * 1000,
    "1Pi": 2**50 * 1000,
    "1Ei": 2**60 * 1000,
    "100u": 1,  # rounded up, as the API server does when it stores it
    "1n": 1,
    "1001u": 2,
    # Spellings that the API server stores as they are: what they say is what a kubelet counts.
    "0" * 99 + "64": 64_000,
    "64e" + "0" * 99: 64_000,
    "6400e-00000000002": 64_000,
    "64e4294967296": 64_000,  # apimachinery keeps 32 bits of an exponent
    "1e4294967293": 1,
    "1e-4294967293": 1_000_000,
    "1." + "0" * 99: 1_000,
    "1." + "0" * 99 + "1": 1_001,
    "." + "0" * 9999 + "1Ei": 1,
    "1e-2147483648": 1,
    "0e2147483647": 0,
}

HUGE = ["1e102", "1e1000", "9" * 65, "9" * 9999, "1e2147483647", "1" + "0" * 60 + "Ei"]


@pytest.mark.parametrize(("text", "amount"), WRITTEN.items(), ids=lambda part: str(part)[:20])
def test_every_form_of_the_grammar(text: str, amount: int) -> None:
    assert thousandths(text) == amount


NO_QUANTITIES = [
    *("", " 1", "1 ", "1e", "abc", "1_000", "١", "1KI", "1Kib", "--1", "1..2", ".", "+", "1e+"),
    "1e" + "9" * 20,
]


@pytest.mark.parametrize("text", NO_QUANTITIES)
def test_an_invalid_quantity_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity such as"):
        thousandths(text)


@pytest.mark.parametrize("text", HUGE, ids=lambda text: text[:20])
def test_what_no_node_has_is_a_large_amount_whatever_its_size(text: str) -> None:
    assert BEYOND_MOST * 1000 < thousandths(text) < 10**100


def test_a_long_text_is_not_kept() -> None:
    """A pod may have one of a megabyte, and a tenant many pods."""
    before = quantity._cached.cache_info().currsize
    for length in range(1000, 1010):
        thousandths("1" * length)
    assert quantity._cached.cache_info().currsize == before


def test_negative_amounts_are_refused() -> None:
    with pytest.raises(ValueError, match="'-100m' is negative"):
        thousandths("-100m")


@given(
    st.integers(0, 10**12),
    st.sampled_from(["", "n", "u", "m", "k", "M", "G", "Ki", "Mi", "Gi", "e3", "E-2"]),
)
def test_rounds_up_and_by_less_than_one_thousandth(number: int, suffix: str) -> None:
    powers = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "e3": 3, "E-2": -2}
    factor = Fraction(10) ** powers[suffix] if suffix in powers else 1024 ** ("KMG".index(suffix[0]) + 1)
    exact = number * factor * 1000
    assert 0 <= thousandths(f"{number}{suffix}") - exact < 1


@given(st.integers(0, 10**9))
def test_whole_units_are_rounded_up(amount: int) -> None:
    assert units(amount) * 1000 - amount in range(1000)
