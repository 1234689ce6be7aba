"""Amounts on nodes are exact, whatever a pod claims to hold."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from builders import make_node, make_task
from eclectus.cluster.nodes import Cluster
from eclectus.kube.requests import BEYOND_MOST
from eclectus.model.objects import Task


def claiming(amount: int, at: int) -> Task:
    """A pod that claims this much cpu and memory, as one that somebody has bound by its nodeName may."""
    task = make_task(f"claims-{at}")
    amounts = (("cpu", amount), ("memory", amount))
    return replace(task, spec=replace(task.spec, requests=amounts, score_requests=(amount, amount)))


@pytest.mark.parametrize("amount", [2**46 + 1, 2**53 - 1, BEYOND_MOST])
def test_a_pod_gives_back_what_it_took(amount: int) -> None:
    cluster = Cluster()
    cluster.set_node(make_node("n"))
    small = make_task("small", cpu=0.001, memory=1 / 2**30)
    cluster.hold(0, small)
    before, scored = cluster.used[0].copy(), cluster.scored[0].copy()
    claims = [claiming(amount, at) for at in range(110)]  # as many as a node takes
    for task in claims:
        cluster.hold(0, task)
    for task in claims:
        cluster.release(0, task)
    assert (cluster.used[0] == before).all()
    assert (cluster.scored[0] == scored).all()


def test_what_no_node_can_hold_fits_nowhere() -> None:
    from eclectus.feasibility.task_class import TaskClass

    cluster = Cluster()
    cluster.set_node(make_node("n", cpu=2**43))
    assert not TaskClass(cluster, claiming(BEYOND_MOST, 0).spec, "").feasible_count
