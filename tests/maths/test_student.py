import pytest

from eclectus.maths.student import half_width, quantile

# Percentage points of Student's t, as every statistics book prints them.
POINTS = [(1, 12.7062), (2, 4.30265), (3, 3.18245), (4, 2.77645), (5, 2.57058), (9, 2.26216), (29, 2.04523)]


@pytest.mark.parametrize(("freedom", "point"), POINTS)
def test_quantiles_equal_published_tables(freedom: int, point: float) -> None:
    assert quantile(0.975, freedom) == pytest.approx(point, rel=1e-5)


def test_with_many_degrees_it_is_the_normal_distribution() -> None:
    assert quantile(0.975, 20_000) == pytest.approx(1.95996, rel=1e-3)


def test_the_interval_of_two_values_and_of_one() -> None:
    assert half_width([1.0, 3.0]) == pytest.approx(12.7062, rel=1e-5)
    assert half_width([1.0]) is None
