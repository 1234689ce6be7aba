"""Scenario files: validation and its messages, overrides, shipped scenarios."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from eclectus.model.errors import SettingsError
from eclectus.sim.scenario import about, load, parse, shipped_scenarios
from eclectus_e2e.paths import CHECKOUT
from short_scenarios import document, place, poisson, scenario

TWO = {"groups": [{"name": "a", "count": 2, "labels": {"disk": "ssd"}}, {"name": "b", "speed": 3}]}

PICKY = [{"name": "ssd", "nodeSelector": {"disk": "ssd"}}, {"name": "any"}]
WIDE = [{"name": "wide", "requests": {"cpu": 2}}, {"name": "any"}]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"clusters": {}}, "clusters: unknown field; did you mean 'cluster'?"),
        ({"kind": "Scenarios"}, "kind: must be Scenario, not 'Scenarios'"),
        ({"cluster": {"groups": []}}, "cluster.groups: the cluster is empty"),
        ({"cluster": {"groups": [{"count": 0}]}}, "cluster.groups[0].count: 0 is too small"),
        (
            {"cluster": {"groups": [{"slot": 2}]}},
            "cluster.groups[0].slot: unknown field; did you mean 'slots'?",
        ),
        (
            {"cluster": {"groups": [{"resources": {"cpu": 1, "gpu": 2}}]}},
            "cluster.groups[0].resources.gpu: is not a resource that a scheduler counts; write cpu, memory,",
        ),
        (
            {"cluster": {"groups": [{"resources": {"cpu": 1, "gpu-milli": 0.5}}]}},
            "cluster.groups[0].resources.gpu-milli: must be a whole number",
        ),
        ({"cluster": {"groups": [{"speed": -1}]}}, "cluster.groups[0].speed: -1 is too small"),
        ({"cluster": {"groups": [{"speeds": {"a": 0}}]}}, "cluster.groups[0].speeds.a: 0 is too small"),
        (
            {"cluster": {"groups": [{"name": "x"}, {"name": "x"}]}},
            "groups[1].name: 'x' is already used by groups[0]",
        ),
        (
            {"cluster": {"groups": [{"resources": {"cpu": "lots"}}]}},
            "cluster.groups[0].resources.cpu: 'lots' is not",
        ),
        ({"cluster": {"groups": [{"taints": [{"value": "x"}]}]}}, "taints[0].key: is missing"),
        ({"workload": {}}, "workload: must have exactly one workload; known are: "),
        (
            {"workload": {"poison": {}}},
            "workload.poison: must have exactly one workload; did you mean",
        ),
        ({"workload": poisson()}, "workload.poisson.rate: give either rate or load"),
        ({"workload": poisson(0.5, rate=3)}, "workload.poisson.rate: give either rate or load"),
        ({"workload": poisson(rate=-3)}, "workload.poisson.rate: -3 tasks/s is too small"),
        (
            {"workload": poisson(1.0)},
            "workload: the load is 1: queues would grow without bound; lower it, or set",
        ),
        ({"workload": poisson(rate=7)}, "workload: the load is 7"),
        ({"workload": poisson(0.5, {"law": "gauss"})}, "classes[0].size.law: 'gauss' is unknown; known are"),
        ({"workload": poisson(0.5, {"shape": 1})}, "classes[0].size.shape: 1 is too small"),
        (
            {
                "cluster": {"groups": [{"slots": 3}]},
                "workload": {"poisson": {"load": 0.5, "classes": WIDE}},
            },
            "workload.poisson.load: is ambiguous",
        ),
        (
            {"workload": {"poisson": {"rate": 0.5, "classes": [{"nodeSelector": {"disk": "hdd"}}]}}},
            "workload: class 'work' can run on no machine of the cluster",
        ),
        ({"workload": {"jobtrace": {"file": "none.gz"}}}, "workload.jobtrace.file: none.gz cannot be read"),
        ({"workload": {"jobtrace": {}}}, "workload.jobtrace.file: is missing"),
        ({"events": [{"at": 3, "action": "burn", "group": "g0"}]}, "events[0].action: 'burn' is unknown"),
        (
            {"events": [{"at": 3, "action": "fail", "group": "g9"}]},
            "events[0].group: 'g9' is not a group; did you",
        ),
        (
            {"events": [{"at": 3, "action": "swap", "group": "g0"}]},
            "events[0].partner: is required by action: swap",
        ),
        (
            {"events": [{"at": 3, "action": "fail", "group": "g0", "factor": 2}]},
            "events[0].factor: is required by action: scale",
        ),
        ({"profiles": []}, "profiles: must be a list of at least one profile"),
        (
            {"profiles": place("rosela")},
            "profiles[0].place.policy: 'rosela' is unknown; did you mean 'rosella'?",
        ),
        ({"profiles": place("uniform") * 2}, "profiles[1].schedulerName: 'it' is used twice"),
        ({"profiles": place("uniform", learn="truths")}, "profiles[0].learn.policy: 'truths' is unknown"),
        ({"measure": {"tasks": 3, "horizon": 3}}, "measure.horizon: give either tasks or horizon"),
        ({"measure": {"warmUp": 1}}, "measure.warmUp: 1 is too large"),
        (
            {"measure": {"groups": ["lenght"]}},
            "measure.groups[0]: 'lenght' is unknown; did you mean 'length'?",
        ),
        (
            {"measure": {"groups": ["class+colour"]}},
            "measure.groups[0]: 'colour' is unknown; known are: class, con",
        ),
        (
            {"measure": {"groups": ["length"]}},
            "measure.cutOff: is required by groups by length",
        ),
        ({"measure": {"cutOff": 3}}, "measure.cutOff: is required by groups by length"),
        ({"measure": {"groups": ["length"], "cutOff": -1}}, "measure.cutOff: -1 s is too small"),
        ({"seeds": 0}, "seeds: 0 is too small"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_an_invalid_scenario_is_refused_with_the_field_and_the_reason(
    fields: dict[str, Any], words: str
) -> None:
    with pytest.raises(SettingsError) as refused:
        scenario(**fields)
    assert words in str(refused.value)


def test_overload_is_possible_with_allow_unstable() -> None:
    assert scenario(workload=poisson(1.5), allowUnstable=True).load == pytest.approx(1.5)


def test_load_and_rate_are_equivalent() -> None:
    by_load = scenario(cluster=TWO, workload=poisson(0.6, {"mean": 2}))
    assert by_load.plan.tasks_a_second == pytest.approx(0.6 * 5 / 2)
    by_rate = scenario(cluster=TWO, workload=poisson(None, {"mean": 2}, rate=1.5))
    assert (by_rate.load, by_rate.load_is_exact) == (pytest.approx(0.6), True)


def test_if_classes_have_different_machines_the_load_is_a_lower_bound() -> None:
    constrained = scenario(cluster=TWO, workload={"poisson": {"rate": 3, "classes": PICKY}})
    assert (constrained.load, constrained.load_is_exact) == (
        pytest.approx(0.75),
        False,
    )  # 1.5 on two machines


def test_a_load_of_constrained_classes_is_that_of_all_machines() -> None:
    constrained = scenario(cluster=TWO, workload={"poisson": {"load": 0.5, "classes": PICKY}})
    assert constrained.plan.tasks_a_second == pytest.approx(0.5 * 5)
    assert (constrained.load, constrained.load_is_exact) == (pytest.approx(0.625), False)


def test_a_scenario_can_be_changed_before_it_is_read(tmp_path: Path) -> None:
    import yaml

    file = tmp_path / "s.yaml"
    file.write_text(yaml.safe_dump(document(cluster=TWO)))
    changed = load(
        file,
        (
            "cluster.groups.b.count=7",
            "cluster.groups[0].speed=2",
            "measure={tasks: 9}",
            "profiles.plain.place.queue=lines",
        ),
    )
    assert [(group.count, group.speed) for group in changed.cluster.groups] == [(2, 2.0), (7, 3.0)]
    assert changed.tasks == 9
    assert changed.profiles[0].profile["place"]["queue"] == "lines"


@pytest.mark.parametrize("change", ["seeds", "cluster.groups[9].count=1", "cluster.groups.zz.count=1", "=3"])
def test_an_invalid_change_is_refused(change: str, tmp_path: Path) -> None:
    import yaml

    file = tmp_path / "s.yaml"
    file.write_text(yaml.safe_dump(document()))
    with pytest.raises(SettingsError, match=r"write it as path=value|there is no "):
        load(file, (change,))


@pytest.mark.parametrize("name", shipped_scenarios())
def test_every_shipped_scenario_is_valid_and_has_a_description(name: str) -> None:
    read = load(shipped_scenarios()[name])
    assert len(read.profiles) > 1
    assert read.about == about(shipped_scenarios()[name])
    assert read.about.endswith(".")


def test_the_example_of_the_documentation_is_valid() -> None:
    page = (CHECKOUT / "docs" / "simulator.md").read_text()
    example = page.partition("## A scenario")[2].lstrip().partition("\n\n")[0]
    read = parse(dedent("    " + example.lstrip()))
    assert [each.action for each in read.perturbations] == ["swap", "scale", "fail", "freeze", "recover"]
    assert [each.name for each in read.profiles] == ["eclectus", "oracle"]
