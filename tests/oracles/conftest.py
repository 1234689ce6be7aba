"""Shows every oracle that was asked: expected, measured, interval."""

from __future__ import annotations

import pytest

from simulated import VERDICTS


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if VERDICTS:
        terminalreporter.section("oracles")
        terminalreporter.write_line(f"{'oracle':60} {'expected':>10} {'measured':>10}   ±95 %  runs")
    for what, oracle, mean, half, runs in VERDICTS:
        terminalreporter.write_line(f"{what:60} {oracle:10.4g} {mean:10.4g} {half:8.2g} {runs:4}")
