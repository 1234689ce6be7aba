"""The commands that pages name, run as they stand there in a copy of the repository."""

import pytest

from checkout import Checkout
from command_table import FAST, SLOW
from eclectus_e2e.paths import CHECKOUT

SLACK = 5  # times the minutes that a command takes: the machine may be busy


def run(command: str, checkout: Checkout) -> None:
    ended = checkout.shell(command)
    assert ended.returncode == 0, f"{command}\n{ended.stdout[-3000:]}\n{ended.stderr[-3000:]}"


@pytest.mark.parametrize("command", sorted(FAST))
def test_a_fast_command_of_a_page_works(command: str, checkout: Checkout) -> None:
    run(command, checkout)


def test_the_table_of_the_first_example_is_what_its_command_prints(checkout: Checkout) -> None:
    page = (CHECKOUT / "docs/simulator.md").read_text()
    block = page.partition("The example prints\n\n")[2].partition("\n\n")[0]
    lines = [line.strip().removesuffix("…").rstrip() for line in block.splitlines()]
    printed = checkout.shell("eclectus simulate my-cluster").stdout
    assert len(lines) == 3
    assert [line for line in lines if line not in printed] == [], "write what it prints into the page"


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
