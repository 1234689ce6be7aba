"""The commands that pages name, run as they stand there in a copy of the repository."""

import pytest

from checkout import Checkout
from command_table import FAST, SLOW

SLACK = 5  # times the minutes that a command takes: the machine may be busy


def run(command: str, checkout: Checkout) -> None:
    ended = checkout.shell(command)
    assert ended.returncode == 0, f"{command}\n{ended.stdout[-3000:]}\n{ended.stderr[-3000:]}"


@pytest.mark.parametrize("command", sorted(FAST))
def test_a_fast_command_of_a_page_works(command: str, checkout: Checkout) -> None:
    run(command, checkout)


# Some start a control plane, but are not marked live: `make test` runs live tests, also slow ones.
@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(command, marks=pytest.mark.timeout(60 * SLACK * minutes), id=f"{command}: {minutes} min")
        for command, minutes in sorted(SLOW.items())
    ],
)
def test_a_long_command_of_a_page_works(command: str, checkout: Checkout) -> None:
    run(command, checkout)
