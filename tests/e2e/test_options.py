"""A number that must be above 0 is refused with its name."""

import pytest

from eclectus_e2e.chaos import command as chaos
from eclectus_e2e.chaos.pressure import command as pressure
from eclectus_e2e.errors import UsageError


@pytest.mark.parametrize(
    ("parsed", "arguments", "problem"),
    [
        (chaos._parsed, ["--stop-after", "0"], "--stop-after 0: must be above 0"),
        (chaos._parsed, ["--seeds", "-1"], "--seeds -1: must be above 0"),
        (pressure._parsed, ["--minutes", "0"], "--minutes 0.0: must be above 0"),
    ],
)
def test_a_number_that_is_not_above_zero_is_named(parsed, arguments, problem):
    with pytest.raises(UsageError, match=problem):
        parsed(arguments)
