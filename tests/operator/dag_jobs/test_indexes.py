"""Sets of task numbers as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eclectus_operator.dag_jobs.tasks import indexes_text, parse_indexes


@given(st.frozensets(st.integers(0, 9_999)))
def test_what_is_written_is_read_again(numbers):
    assert parse_indexes(indexes_text(numbers), 10_000) == numbers


@pytest.mark.parametrize(
    ("numbers", "text"),
    [((), ""), ((3,), "3"), ((0, 1, 2), "0-2"), ((7, 0, 1, 5), "0-1,5,7"), (range(10_000), "0-9999")],
)
def test_ranges_are_as_in_an_indexed_job(numbers, text):
    assert indexes_text(numbers) == text


@pytest.mark.parametrize("text", ["x", "-1", "1-", "99999999999", "3-1", "1-99999999999", "5", ",,", " 0"])
def test_what_is_no_number_below_the_count_is_left_out(text):
    assert parse_indexes(text, 5) == frozenset()


def test_a_range_ends_at_the_count():
    assert parse_indexes("3-99999", 5) == {3, 4}


def test_the_longest_text_of_a_stage_fits_its_field():
    assert len(indexes_text(range(0, 10_000, 2))) < 60_000
