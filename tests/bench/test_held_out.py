"""README's ratios: when they are won, and that they are those that their command prints."""

import re

import pytest

from eclectus_bench import held_out
from eclectus_bench.held_out import MEAN, MET, Ratio, Row
from eclectus_e2e.paths import CHECKOUT


@pytest.mark.parametrize(
    ("figure", "mean", "half_width", "unit", "verdict"),
    [
        ("mean", 0.90, 0.05, "", "won"),
        ("mean", 0.96, 0.05, "", "equal"),
        ("mean", 1.06, 0.05, "", "lost"),
        ("mean", 1.004, 0.001, "", "equal"),
        (MET[0], 0.70, 0.05, "", "lost"),
        (MET[0], 1.20, 0.05, "", "won"),
        ("wait", 0.10, 0.05, " s", "lost"),
        ("wait", 0.04, 0.05, " s", "equal"),
    ],
)
def test_a_ratio_is_won_or_lost_where_its_interval_leaves_out_one(figure, mean, half_width, unit, verdict):
    assert Ratio(figure, mean, half_width, unit).verdict == verdict


def test_a_row_has_the_ratios_of_runs_with_the_same_seed():
    row = Row("short-demo", "least-allocated", ("oracle",), (MEAN,), ("measure.horizon=5s",))
    found = held_out.measure(row, (1, 2), processes=1)
    ((rival, (mean,)),) = found.items()
    assert (rival, mean.figure) == ("oracle", "mean response")
    assert mean.mean > 1  # nothing is faster than what knows all speeds


@pytest.mark.slow
@pytest.mark.timeout(1800)  # five minutes on two idle cores
def test_readme_quotes_what_the_command_prints(capsys):
    held_out.main([])
    printed = set(re.findall(r"\d+\.\d\d ±\d+\.\d\d", capsys.readouterr().out))
    quoted = set(re.findall(r"\d+\.\d\d ±\d+\.\d\d", (CHECKOUT / "README.md").read_text()))
    assert len(quoted) > 10
    assert quoted <= printed
