"""`make tenants`: profiles are explained, figures are of the measured pools, the page has a row for each."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from eclectus.sim.base.results import PoolResult, PoolsResult, RunResult, Times
from eclectus.sim.runs import run
from eclectus.sim.scenario import load, shipped_scenarios
from eclectus_bench.profiles import measure
from eclectus_bench.tenants import FILE, MEANS, SCENARIO, Facts, furthest, page, part
from eclectus_e2e.paths import CHECKOUT
from short_scenarios import scenario

NO_TIMES = Times(1, 2.0, 2.0, 2.0, 9.0, 9.0, 9.0, {})


def got(share: float, held: float) -> PoolResult:
    return PoolResult("cpu", share, held, 0.0, NO_TIMES, 5.0, 8.0)


def test_every_profile_of_the_scenario_is_explained() -> None:
    assert [each.name for each in load(shipped_scenarios()[SCENARIO]).profiles] == list(MEANS)


def test_the_pool_that_is_furthest_from_its_share_counts() -> None:
    pools = {"a": got(0.5, 0.4), "b": got(0.1, 0.13), "c": got(0.0, 0.0)}
    assert furthest(PoolsResult(pools, None, None, 0)) == pytest.approx(30.0)


def test_the_page_has_a_row_for_each_profile_and_tenant() -> None:
    plain = scenario()
    any_run: RunResult = run(plain, plain.profiles[0], 1)
    fair, unfair = ({"a": got(0.25, held), "b": got(0.75, 1.0 - held)} for held in (0.25, 0.5))
    runs = {
        "pools": [replace(any_run, pools=PoolsResult(fair, 0.99, 0.98, 4))] * 2,
        "fifo": [replace(any_run, pools=PoolsResult(unfair, None, None, 0), evictions=3)],
    }
    lines = page(Facts("1.0", 2), runs).splitlines()
    assert "| `pools` | 0.990 ±0.000 | 0.980 ±0.000 | 0.0 ±0.0 | 0 |" in lines
    assert "| `fifo` |  |  | 100.0 | 3 |" in lines
    assert "| `a` | `fifo` | 25.0 | 50.0 | 2.0 | 9.0 | 3.0 |" in lines


def test_the_readme_quotes_the_figures_of_the_page() -> None:
    rows = {tuple(cells[:3]): cells for cells in map(_cells, FILE.read_text(encoding="utf-8").splitlines())}
    quoted = " ".join((CHECKOUT / "README.md").read_text(encoding="utf-8").split())
    furthest_of = {cells[1]: cells[4] for cells in rows.values() if len(cells) == 7}
    wait_p99 = {cells[2]: cells[6] for cells in rows.values() if cells[1:2] == ["`greedy`"]}
    assert f"within {furthest_of['`pools`']} % of its share" in quoted
    assert f"rule within {furthest_of['`kube-scheduler`']} %" in quoted
    assert f"keeps them within {furthest_of['`drf`']} %" in quoted
    assert f"{wait_p99['`drf`']} s instead of {wait_p99['`pools`']} (" in quoted


def _cells(line: str) -> list[str]:
    return [each.strip() for each in line.split("|")]


@pytest.mark.long
def test_tenants_are_measured() -> None:
    said: list[str] = []
    (runs,) = measure(SCENARIO, [part(1, 70.0)], 1, said.append)
    assert list(runs) == list(MEANS)
    held = {name: mine[0].pools.pools["greedy"].held for name, mine in runs.items() if mine[0].pools}
    assert held["pools"] < held["kube-scheduler"]
