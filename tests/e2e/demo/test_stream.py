"""The stream: arrivals, work, constraints and pod objects."""

import itertools
from collections import Counter
from statistics import mean, pstdev

import pytest

from eclectus_e2e.demo.workload.arrivals import (
    CLASSES,
    GPU_CONSTRAINT,
    Arrival,
    NodeConstraint,
    capacity,
    poisson_arrivals,
)
from eclectus_e2e.demo.workload.pods import pod_object
from eclectus_e2e.testbed.kubelet.nodes import DEFAULT_SEED, default_nodes
from eclectus_e2e.testbed.kubelet.objects import Pod
from eclectus_e2e.testbed.kubelet.pods.admission import PodRequests
from eclectus_e2e.testbed.kubelet.pods.matching import matches_node

NODES = default_nodes(DEFAULT_SEED)
MANY = poisson_arrivals(7, 20.0, 1000.0)


def test_the_same_seed_is_the_same_stream():
    assert poisson_arrivals(3, 20.0, 30.0) == poisson_arrivals(3, 20.0, 30.0)
    assert poisson_arrivals(3, 20.0, 30.0) != poisson_arrivals(4, 20.0, 30.0)


def test_another_load_is_the_same_pods_at_another_pace():
    slow, fast = poisson_arrivals(3, 10.0, 60.0), poisson_arrivals(3, 20.0, 30.0)
    assert [(one.kind, one.work_seconds, one.constraint) for one in slow] == [
        (one.kind, one.work_seconds, one.constraint) for one in fast
    ]
    assert [one.at_seconds for one in slow] == pytest.approx([2 * one.at_seconds for one in fast])


def test_arrivals_are_poisson():
    gaps = [later.at_seconds - one.at_seconds for one, later in itertools.pairwise(MANY)]
    assert mean(gaps) == pytest.approx(1 / 20, rel=0.03)
    assert pstdev(gaps) == pytest.approx(1 / 20, rel=0.05)  # an exponential's spread is its mean


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.name)
def test_each_class_has_its_share_mean_and_spread(kind):
    works = [one.work_seconds for one in MANY if one.kind == kind]
    assert len(works) / len(MANY) == pytest.approx(kind.share, rel=0.08)
    assert mean(works) == pytest.approx(kind.work_seconds, rel=0.06)
    assert pstdev(works) / mean(works) == pytest.approx(kind.shape**-0.5, rel=0.1)


def test_a_third_has_constraints_hard_or_soft():
    hard = sum(one.constraint is not None and one.constraint.is_hard for one in MANY) / len(MANY)
    soft = sum(one.constraint is not None and not one.constraint.is_hard for one in MANY) / len(MANY)
    assert hard + soft == pytest.approx(1 / 3, abs=0.02)
    assert hard > 0.15
    assert soft > 0.05


def test_capacity_is_the_rate_at_which_the_nodes_complete_pods():
    """432 core-speeds; a pod needs .25 x .5 x 6 + .5 x 15 + .2 x 2 x 15 + .05 x 10 = 14.75 of them."""
    assert capacity(NODES) == pytest.approx(432 / 14.75)


def test_no_constraint_leaves_too_few_nodes_for_the_pods_that_have_it():
    """Even if the pods with a hard constraint used no other nodes, those would have room."""
    for constraint in {one.constraint for one in MANY if one.constraint and one.constraint.is_hard}:
        allowed = [node for node in NODES if constraint.met_by(node.labels)]
        share = sum(one.constraint == constraint for one in MANY) / len(MANY)
        assert share * capacity(NODES) < 0.6 * capacity(allowed)


@pytest.mark.parametrize(
    "constraint",
    [
        NodeConstraint("kubernetes.io/arch", ("arm64",), is_hard=True),
        NodeConstraint("eclectus.dev/nic-gbps", ("25", "100"), is_hard=True),
        GPU_CONSTRAINT,
        NodeConstraint("topology.kubernetes.io/zone", ("zone-a",), is_hard=False),
        None,
    ],
)
def test_the_pod_has_the_constraint_of_its_arrival(constraint):
    kind = next(kind for kind in CLASSES if bool(kind.gpus) == (constraint == GPU_CONSTRAINT))
    pod = pod_object(Arrival(5, 0.0, kind, 2.5, constraint), "some-scheduler")
    for node in NODES:
        may = matches_node(pod["spec"], node.name, node.labels)
        assert may == (constraint is None or not constraint.is_hard or constraint.met_by(node.labels))
    preferred = "preferredDuringSchedulingIgnoredDuringExecution" in str(pod)
    assert preferred == (constraint is not None and not constraint.is_hard)


def test_the_kubelet_reads_class_work_and_requests():
    kind = CLASSES[3]
    pod = pod_object(Arrival(5, 0.0, kind, 2.5, GPU_CONSTRAINT), "some-scheduler")
    resources = PodRequests.of(pod["spec"]).resources
    assert (resources["cpu"], resources["nvidia.com/gpu"]) == (kind.cpu_millicores, 1)
    read = Pod(metadata=_metadata(pod), spec=pod["spec"])
    assert (read.klass, read.work_seconds()) == (kind.name, 2.5)
    assert pod["spec"]["schedulerName"] == "some-scheduler"


def test_every_constraint_occurs():
    assert len(Counter(one.constraint for one in MANY)) == 10  # none, GPU, 2 archs, NIC, 2 kernels, 3 zones


def _metadata(pod):
    from eclectus_e2e.testbed.kubelet.objects import Metadata

    meta = pod["metadata"]
    return Metadata(meta["name"], meta["namespace"], labels=meta["labels"], annotations=meta["annotations"])
