"""Of the pods of a workload with different requests, how many are distinguished."""

from math import inf

from eclectus.policies.rosella.rates import MOST_SHAPES, EndedShapes


def test_beyond_the_bound_the_shape_of_least_weight_is_forgotten() -> None:
    shapes = EndedShapes()
    for at in range(MOST_SHAPES + 5):
        shapes.add(0, ("cpu", at), weight=1.0 + at, seconds=2.0)
    paces = [shapes.pace(0, ("cpu", at)) for at in range(MOST_SHAPES + 5)]
    assert paces == 5 * [None] + MOST_SHAPES * [0.5]
    assert (shapes.mixed(), shapes.pace(1, ("cpu", 0))) == ([0], None)


def test_a_single_shape_is_not_distinguished() -> None:
    shapes = EndedShapes()
    shapes.add(0, ("cpu", 1), weight=1.0, seconds=2.0)
    assert shapes.pace(0, ("cpu", 1)) == inf
