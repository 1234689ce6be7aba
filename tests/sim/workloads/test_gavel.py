"""Workload gavel on small tables; the published ones are in tests/oracles."""

from __future__ import annotations

import gzip
import json
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import yaml

from checked_worlds import build_checked
from eclectus.model.errors import SettingsError
from eclectus.sim.scenario import Scenario, parse
from eclectus.sim.world.run_record import RunRecord
from short_scenarios import document, place, runs

RATES = {"new": {"a": 10.0, "b": 4.0}, "old": {"a": 2.5, "b": 0.0}}
GROUPS = [
    {"name": "n", "count": 2, "labels": {"gpu-type": "new"}},
    {"name": "o", "count": 2, "labels": {"gpu-type": "old"}},
]


def write(path: Path, rates: dict[str, dict[str, float]]) -> None:
    table = {
        gpu: {f"('{job}', 1)": {"null": rate, "('b', 1)": [1.0, 2.0]} for job, rate in column.items()}
        for gpu, column in rates.items()
    }
    text = json.dumps(table).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


def asked(folder: Path, *, cluster: Any = None, measure: Any = None, **settings: Any) -> Scenario:
    chosen = {"throughputs": "t.json", "jobTypes": ["a", "b"], "reference": "new", "jobsPerHour": 0.05}
    window = {"firstJob": 5, "lastJob": 24}
    fields = document(
        cluster=cluster or {"groups": GROUPS},
        workload={"gavel": chosen | window | settings},
        measure=measure,
        profiles=place("uniform"),
    )
    return parse(yaml.safe_dump(fields), folder)


@pytest.fixture(autouse=True)
def _table(tmp_path: Path) -> None:
    write(tmp_path / "t.json", RATES)


def test_speeds_are_rates_over_those_of_the_reference(tmp_path: Path) -> None:
    machines = asked(tmp_path).cluster.machines()
    assert [machines["n-0"].nominal_speed(job) for job in "ab"] == [1.0, 1.0]
    assert machines["o-1"].nominal_speed("a") == 0.25


@pytest.mark.long
def test_a_rate_of_0_is_a_hard_constraint(tmp_path: Path) -> None:
    scenario = asked(tmp_path, lastJob=60)
    world = build_checked(scenario, scenario.profiles[0], seed=1)
    used: dict[str, set[str]] = {"a": set(), "b": set()}

    def on_step(*_: object) -> None:
        for machine in world.machines.values():
            for run in machine.running.values():
                used[run.work_class.name].add(machine.group)

    world.on_step = on_step
    world.run()
    assert used == {"a": {"n", "o"}, "b": {"n"}}


def test_jobs_arrive_until_all_that_are_measured_have_ended(tmp_path: Path) -> None:
    scenario = asked(tmp_path)
    (run,) = runs(scenario, [1])
    assert (run.response.count, run.complete) == (20, True)
    assert run.tasks >= 25
    ledger = RunRecord(scenario.window())
    arrived = 0
    for number, job in zip(range(25), ledger.until_measured(scenario.arrivals(1)), strict=False):
        ledger.arrive(number, job, job.at)
        arrived += 1
    assert arrived == 25, "the measured ones are still there"


def test_later_jobs_do_not_change_the_measured_window(tmp_path: Path) -> None:
    one, two = (runs(asked(tmp_path, firstJob=0, lastJob=last), [1])[0] for last in (0, 1))
    assert (one.response.count, two.response.count) == (1, 2)
    assert two.response.largest >= one.response.largest


def test_a_compressed_table_gives_the_same(tmp_path: Path) -> None:
    write(tmp_path / "t.json.gz", RATES)
    plain, packed = asked(tmp_path), asked(tmp_path, throughputs="t.json.gz")
    one, other = (list(islice(each.plan.arrivals(3), 20)) for each in (plain, packed))
    assert one == other


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"throughputs": "no.json"}, "workload.gavel.throughputs: .*No such file"),
        ({"jobTypes": ["a", "c"]}, r"has no rate of \('c', 1\) on new"),
        ({"reference": "neu"}, "has no GPU 'neu'; did you mean 'new'"),
        ({"reference": "old"}, "workload.gavel.reference: b does not run on old: choose another"),
        ({"jobTypes": []}, "workload.gavel.jobTypes: is empty"),
        ({"firstJob": 30}, "workload.gavel.lastJob: is before the first measured job"),
        ({"jobsPerHour": 5}, "the load is .*: queues would grow without bound"),
        ({"measure": {"tasks": 5}}, "measure.tasks: is not allowed here"),
        ({"cluster": {"groups": [{"name": "x"}]}}, "group 'x' of the cluster has no label gpu-type"),
    ],
)
def test_invalid_settings_are_refused(fields: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=words):
        asked(tmp_path, **fields)


@pytest.mark.parametrize("content", [b"{", b'{"new": {"(\'a\', 1)": {"null": -1}}}', b'{"new": {"x": {}}}'])
def test_an_invalid_table_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_bytes(content)
    with pytest.raises(SettingsError, match=r"t\.json is not a table of rates"):
        asked(tmp_path)
