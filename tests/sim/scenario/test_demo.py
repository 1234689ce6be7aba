"""scenarios/demo.yaml is the live demo: the same nodes, classes of work, constraints and load."""

from __future__ import annotations

from collections import Counter

import pytest

from eclectus.api.names import GPU_MODEL_LABEL, KERNEL_LABEL
from eclectus.sim.base.work import WorkClass
from eclectus.sim.scenario.builtin import shipped_scenarios
from eclectus.sim.scenario.reading import load
from eclectus.sim.world.judge import forbidden
from eclectus_e2e.demo.workload.arrivals import CLASSES, CONSTRAINTS, NodeConstraint, capacity
from eclectus_e2e.testbed.kubelet.nodes import DEFAULT_SEED, default_nodes

DEMO = load(shipped_scenarios()["demo"])
NODES = default_nodes(DEFAULT_SEED)
MACHINES = DEMO.cluster.machines()


def nodes_of(work_class: WorkClass) -> frozenset[str]:
    return frozenset(
        machine.group for machine in MACHINES.values() if not forbidden(work_class.spec, machine.node)
    )


def nodes_for(constraint: NodeConstraint) -> frozenset[str]:
    return frozenset(node.name for node in NODES if constraint.met_by(node.labels))


def preferred_by(work_class: WorkClass) -> frozenset[str]:
    (preference,) = work_class.spec.preferences
    (wanted,) = preference.term.expressions
    key = {"kernel": KERNEL_LABEL, "zone": "topology.kubernetes.io/zone"}[wanted.key]
    values = tuple(f"zone-{value}" if wanted.key == "zone" else value for value in wanted.values)
    return nodes_for(NodeConstraint(key, values, is_hard=False))


def test_the_nodes_are_those_of_the_demo() -> None:
    speeds = {machine.group: machine.nominal_speed("") for machine in MACHINES.values()}
    assert speeds == {node.name: node.speed for node in NODES}


def test_the_load_is_08() -> None:
    assert DEMO.plan.tasks_a_second == pytest.approx(0.8 * capacity(NODES), rel=1e-3)


def test_shares_and_sizes_of_the_classes() -> None:
    work: Counter[str] = Counter()
    for work_class, seconds in DEMO.plan.work_rates.items():
        work[work_class.name] += seconds
    rate = DEMO.plan.tasks_a_second
    assert work == pytest.approx(
        {kind.name: rate * kind.share * kind.work_seconds for kind in CLASSES}, rel=1e-3
    )


def test_hard_constraints_and_preferences_have_the_shares_and_nodes_of_the_demo() -> None:
    """Of the class `build`, and the nodes of `infer`."""
    expected: Counter[tuple[str, frozenset[str]]] = Counter()
    for constraint, share in CONSTRAINTS:
        expected["hard" if constraint.is_hard else "soft", nodes_for(constraint)] += share
    found: Counter[tuple[str, frozenset[str]]] = Counter()
    build = {each: work for each, work in DEMO.plan.work_rates.items() if each.name == "build"}
    for work_class, work in build.items():
        if work_class.spec.node_selector:
            found["hard", nodes_of(work_class)] += work / sum(build.values())
        elif work_class.spec.preferences:
            found["soft", preferred_by(work_class)] += work / sum(build.values())
    assert found == pytest.approx(expected, rel=1e-3)


def test_gpu_work_runs_on_the_nodes_with_gpus() -> None:
    offering = {
        machine.group for machine in MACHINES.values() if dict(machine.node.allocatable).get("nvidia.com/gpu")
    }
    assert offering == {node.name for node in NODES if node.labels.get(GPU_MODEL_LABEL)}
