"""Runs are counted by outcome and stage: the number of series does not grow with the nodes."""

import pytest

from eclectus.api.node_probe import Outcome
from eclectus.kubeclient.api_errors import RejectedError
from eclectus_operator.metrics import Metrics
from fake_api import PODS
from probe_world import world_with


def counted(metrics):
    """(outcome, stage) to number."""
    return {
        (sample.labels["outcome"], sample.labels["stage"]): sample.value
        for family in metrics.registry.collect()
        if family.name == "eclectus_probes"
        for sample in family.samples
    }


@pytest.mark.parametrize(
    ("succeeded", "ended_by", "label"),
    [
        (True, "Pod", "succeeded"),
        (False, "Pod", "failed"),
        (False, "Operator", "overdue"),
        (False, "Other", "lost"),
    ],
)
def test_an_outcome_has_one_label(succeeded, ended_by, label):
    metrics = Metrics()
    metrics.probe_ended(
        Outcome(succeeded, "Running", "Because", "it is so", ended_by, "2026-01-01T00:00:00Z")
    )
    assert counted(metrics) == {(label, "Running"): 1}
    assert f'eclectus_probes_total{{outcome="{label}",stage="Running"}} 1.0' in metrics.expose().decode()


def test_every_run_is_counted_once_as_in_status():
    world = world_with(nodes=3)
    world.play(120)
    status, found = world.status(), counted(world.controller._context.metrics)
    assert status["succeeded"] >= 1
    assert found == {("succeeded", "Running"): status["succeeded"]}


def test_pods_that_were_refused_are_counted_too():
    world = world_with(nodes=1)

    def refused(method, path):
        if (method, path) == ("POST", PODS):
            raise RejectedError("403 quota")

    world.api.before = refused
    world.play(60)
    assert counted(world.controller._context.metrics) == {("lost", "Creating"): world.status()["failed"]}
