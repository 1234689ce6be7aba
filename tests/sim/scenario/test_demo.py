"""The scenarios demo and short-demo are the live ones: the same nodes, classes of work, load and change."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pytest

from eclectus.api.names import GPU_MODEL_LABEL, KERNEL_LABEL
from eclectus.sim.base.machine import Machine
from eclectus.sim.base.work import WorkClass
from eclectus.sim.scenario import Scenario, load, shipped_scenarios
from eclectus.sim.world.cluster import apply_to_speeds
from eclectus.sim.world.judge import forbidden
from eclectus_e2e.demo.stream.plan import Perturbation, short_plan
from eclectus_e2e.demo.workload.arrivals import DEFAULT_MIX, Mix, NodeConstraint, capacity
from eclectus_e2e.testbed.kubelet.nodes import DEFAULT_SEED, NodeSpec, default_nodes


@dataclass
class Demo:
    """A shipped scenario beside the nodes, stream and load that it is to have."""

    scenario: Scenario
    nodes: list[NodeSpec]
    mix: Mix
    load: float
    perturbation: Perturbation | None = None
    machines: dict[str, Machine] = field(init=False)

    def __post_init__(self) -> None:
        self.machines = self.scenario.cluster.machines()

    def speeds(self) -> dict[str, float]:
        return {machine.group: machine.nominal_speed("") for machine in self.machines.values()}

    def nodes_of(self, work_class: WorkClass) -> frozenset[str]:
        return frozenset(
            machine.group
            for machine in self.machines.values()
            if not forbidden(work_class.spec, machine.node)
        )

    def nodes_for(self, constraint: NodeConstraint) -> frozenset[str]:
        return frozenset(node.name for node in self.nodes if constraint.met_by(node.labels))

    def preferred_by(self, work_class: WorkClass) -> frozenset[str]:
        (preference,) = work_class.spec.preferences
        (wanted,) = preference.term.expressions
        key = {"kernel": KERNEL_LABEL, "zone": "topology.kubernetes.io/zone"}[wanted.key]
        values = tuple(f"zone-{value}" if wanted.key == "zone" else value for value in wanted.values)
        return self.nodes_for(NodeConstraint(key, values, is_hard=False))


@pytest.fixture(params=["demo", "short-demo"])
def demo(request: pytest.FixtureRequest) -> Demo:
    scenario = load(shipped_scenarios()[request.param])
    if request.param == "demo":
        return Demo(scenario, default_nodes(DEFAULT_SEED), DEFAULT_MIX, 0.8)
    plan = short_plan([0.9], 100.0, 1, 1)
    return Demo(scenario, list(plan.nodes), plan.mix, 0.9, plan.perturbation)


def test_the_nodes_are_those_of_the_demo(demo: Demo) -> None:
    assert demo.speeds() == {node.name: node.speed for node in demo.nodes}


def test_the_load_is_that_of_the_demo(demo: Demo) -> None:
    expected = demo.load * capacity(demo.nodes, demo.mix)
    assert demo.scenario.plan.tasks_a_second == pytest.approx(expected, rel=1e-3)


def test_shares_and_sizes_of_the_classes(demo: Demo) -> None:
    work: Counter[str] = Counter()
    for work_class, seconds in demo.scenario.plan.work_rates.items():
        work[work_class.name] += seconds
    rate = demo.scenario.plan.tasks_a_second
    assert work == pytest.approx(
        {kind.name: rate * kind.share * kind.work_seconds for kind in demo.mix.classes}, rel=1e-3
    )


def test_hard_constraints_and_preferences_have_the_shares_and_nodes_of_the_demo(demo: Demo) -> None:
    """Of the class `build`, and the nodes of `infer`."""
    expected: Counter[tuple[str, frozenset[str]]] = Counter()
    for constraint, share in demo.mix.constraints:
        expected["hard" if constraint.is_hard else "soft", demo.nodes_for(constraint)] += share
    found: Counter[tuple[str, frozenset[str]]] = Counter()
    build = {each: work for each, work in demo.scenario.plan.work_rates.items() if each.name == "build"}
    for work_class, work in build.items():
        if work_class.spec.node_selector:
            found["hard", demo.nodes_of(work_class)] += work / sum(build.values())
        elif work_class.spec.preferences:
            found["soft", demo.preferred_by(work_class)] += work / sum(build.values())
    assert found == pytest.approx(expected, rel=1e-3)


def test_gpu_work_runs_on_the_nodes_with_gpus(demo: Demo) -> None:
    offering = {
        machine.group
        for machine in demo.machines.values()
        if dict(machine.node.allocatable).get("nvidia.com/gpu")
    }
    assert offering == {node.name for node in demo.nodes if node.labels.get(GPU_MODEL_LABEL)}


def test_speeds_change_as_in_the_demo(demo: Demo) -> None:
    for one in demo.scenario.perturbations:
        groups = ([demo.machines[name] for name in names] for names in (one.machines, one.partners))
        apply_to_speeds(one, *groups, one.at)
    live = demo.perturbation
    assert {one.at for one in demo.scenario.perturbations} == ({live.at_seconds} if live else set())
    assert demo.speeds() == (live.speeds if live else {node.name: node.speed for node in demo.nodes})
