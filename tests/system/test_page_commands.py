"""The commands that pages name, run as they stand there in a copy of the repository."""

import pytest

from checkout import Checkout
from command_table import FAST, SLOW
from eclectus_e2e.paths import CHECKOUT
from quoted_tables import QuotedTables, of_page, quoted_tables

QUOTED = list(quoted_tables())
WITH_TABLES = {command for each in QUOTED for command in each.commands}
SLACK = 5  # times the minutes that a command takes: the machine may be busy


def run(command: str, checkout: Checkout) -> str:
    ended = checkout.shell(command)
    assert ended.returncode == 0, f"{command}\n{ended.stdout[-3000:]}\n{ended.stderr[-3000:]}"
    return ended.stdout


def taking(minutes: int, value: object, name: str) -> object:
    """A parameter of a test that takes so long on two idle cores."""
    return pytest.param(value, marks=pytest.mark.timeout(60 * SLACK * minutes), id=f"{name}: {minutes} min")


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


def test_tables_belong_to_the_simulations_above_them() -> None:
    table = "\n\nSo:\n\n| | mean |\n|---|---|\n| a | 1.0 ±.2 |\n| b | 3 ±4 | 5 |\n"
    two = "    eclectus simulate x\n    eclectus simulate y --seeds 2   # why"
    text = f"    make z{table}\n{two}{table}\n## Next{table}\n    eclectus simulate w\n\nNo table.\n"
    assert list(of_page(text)) == [
        QuotedTables(("eclectus simulate x", "eclectus simulate y --seeds 2"), ("1.0 ±.2", "3 ±4"))
    ]
    assert next(of_page(text)).missing_from("a  1.02 ±0.19  13 ±4") == ["3 ±4"]


def test_the_commands_of_tables_are_slow_ones() -> None:
    assert len(QUOTED) >= 7
    assert WITH_TABLES - SLOW.keys() == set()


# Some start a control plane, but are not marked live: `make test` runs live tests, also slow ones.
@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize(
    "command", [taking(SLOW[each], each, each) for each in sorted(SLOW.keys() - WITH_TABLES)]
)
def test_a_long_command_of_a_page_works(command: str, checkout: Checkout) -> None:
    run(command, checkout)


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize(
    "tables",
    [
        taking(sum(SLOW.get(command, 0) for command in each.commands), each, each.commands[0])
        for each in QUOTED
    ],
)
def test_the_tables_of_a_page_are_what_its_commands_print(tables: QuotedTables, checkout: Checkout) -> None:
    printed = "\n".join(run(command, checkout) for command in tables.commands)
    assert tables.missing_from(printed) == [], f"write what it prints into the page:\n{printed}"
