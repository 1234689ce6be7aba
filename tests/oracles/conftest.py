"""Prints a table of all comparisons (expected, measured, interval), and attaches them to the tests."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from eclectus.policies import table
from short_scenarios import VERDICTS, Verdict
from tie_breaking_policies import RULES


@pytest.fixture(autouse=True)
def _rules_of_the_comparisons_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, rule in RULES.items():
        monkeypatch.setitem(table.PLACE, name, rule)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Oracles compare long simulations with formulas."""
    item.add_marker(pytest.mark.long)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    before = len(VERDICTS)
    try:
        yield
    finally:
        # Plain tuples, because user properties may be sent between processes.
        item.user_properties += [("verdict", tuple(verdict)) for verdict in VERDICTS[before:]]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [report for kind in terminalreporter.stats.values() for report in kind]
    verdicts = [
        Verdict(*said)
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, said in report.user_properties
        if name == "verdict"
    ]
    if verdicts:
        terminalreporter.section("oracles")
        terminalreporter.write_line(f"{'oracle':60} {'expected':>10} {'measured':>10}   ±95 %  runs")
    for each in verdicts:
        numbers = f"{each.oracle:10.4g} {each.mean:10.4g} {each.half:8.2g} {each.runs:4}"
        terminalreporter.write_line(f"{each.what:60} {numbers}")
