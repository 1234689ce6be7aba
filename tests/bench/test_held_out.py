"""README's ratios: when they are won, and that they are those that their command prints."""

import re
from itertools import chain
from math import prod

import pytest

from eclectus.sim.scenario import parse, shipped_scenarios
from eclectus.sim.world.run_record import Window
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


@pytest.mark.parametrize(
    "row", [*chain(*held_out.ROWS.values()), *held_out.PREFERRING], ids=lambda row: row.title[:60]
)
def test_a_row_is_a_scenario_with_its_profiles(row):
    path = shipped_scenarios()[row.scenario]
    found = parse(path.read_text(), path.parent, row.changes)
    profiles = {each.name: each.profile for each in found.profiles}
    assert {row.ours, *row.theirs} <= profiles.keys()
    if "least-allocated" in row.theirs:  # kube-scheduler draws among nodes with equal scores
        assert profiles["least-allocated"]["place"]["ties"] == "random"


def test_a_gradual_change_ends_where_the_same_at_once_does_and_is_measured_from_its_start():
    path = shipped_scenarios()["demo"]
    row = held_out.changed("slower", {"node-02": 0.25}, steps=10)
    found = parse(path.read_text(), path.parent, row.changes)
    assert prod(each.factor for each in found.perturbations) == pytest.approx(0.25)
    assert min(each.at for each in found.perturbations) == held_out.CHANGE_AT
    assert found.window() == Window(0, held_out.CHANGE_AT, 2 * held_out.CHANGE_AT)


def test_a_change_is_compared_with_known_speeds_and_with_the_rival(monkeypatch):
    monkeypatch.setattr(held_out, "CHANGE_AT", 2.0)
    found = held_out.measure(held_out.changed("traded", held_out.TRADED, steps=2), (1, 2), processes=1)
    assert {rival: [each.figure for each in ratios] for rival, ratios in found.items()} == {
        "oracle": ["mean response", "p99"],
        "least-allocated": ["mean response", "p99"],
    }


def test_each_soft_weight_is_compared_with_the_rival_and_the_least_one(capsys, monkeypatch):
    row = Row("short-demo", "eclectus", ("least-allocated",), (MEAN, MET), ("measure.horizon=5s",))
    monkeypatch.setattr(held_out, "PREFERRING", (row,))
    monkeypatch.setattr(held_out, "SOFT_WEIGHTS", ("softWeight: 3", "softWeight: 100"))
    held_out.main(["--preferences", "--quick", "--jobs", "1"])
    titles = re.findall(r"\): (softWeight.*)", capsys.readouterr().out)
    over_kube = [f"softWeight: {weight} over least-allocated" for weight in (3, 100)]
    assert sorted(titles) == sorted([*over_kube, "softWeight: 100 over softWeight: 3"])


def test_the_table_by_what_differs_has_a_row_for_each_load_and_law_of_sizes(capsys, monkeypatch):
    monkeypatch.setattr(held_out, "SPEED_RATIOS", (1, 8))
    monkeypatch.setattr(held_out, "LOADS", (0.5,))
    small = held_out.two_speeds

    def shortened(ratio: float, load: float, *changes: str) -> Row:
        return small(ratio, load, *changes, "measure.tasks=300")

    monkeypatch.setattr(held_out, "two_speeds", shortened)
    held_out.main(["--grid", "--quick", "--jobs", "1"])
    head, _, *rows = capsys.readouterr().out.splitlines()
    assert head == "| sizes | load | 1 : 1 | 1 : 8 |"
    assert [row.split(" | ")[0] for row in rows] == [f"| {name}" for name in held_out.SIZES]
    equal, different = (float(cell.strip("* |")[:4]) for cell in rows[0].split(" | ")[2:])
    assert different < 0.8 < equal


@pytest.mark.slow
@pytest.mark.timeout(1800)  # five minutes on two idle cores
def test_readme_quotes_what_the_command_prints(capsys):
    held_out.main([])
    printed = set(re.findall(r"\d+\.\d\d ±\d+\.\d\d", capsys.readouterr().out))
    quoted = set(re.findall(r"\d+\.\d\d ±\d+\.\d\d", (CHECKOUT / "README.md").read_text()))
    assert len(quoted) > 10
    assert quoted <= printed
