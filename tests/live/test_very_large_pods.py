"""A pod as large as the API server takes: what is kept of it is bounded, and what is not kept is said."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from builders import make_engine, make_node
from eclectus.kube.translate import BYTES_MOST, KEPT_MOST
from eclectus.live.watch.reflector import ObservedObject
from eclectus.live.watch.watched_kinds import WatchedPods
from eclectus.model.events import TaskSeen
from eclectus.model.objects import Task
from worlds import World

TOLERATIONS = [{"key": f"a{at:x}", "operator": "Exists"} for at in range(20_000)]
TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": {f"k{at}": "v" for at in range(9_000)}}}
EXPRESSION = {"key": "disk", "operator": "In", "values": [f"kind-{at}" for at in range(9_000)]}
RESOURCES = {f"a.example/{at}": "1" for at in range(5_000)}
LARGE: dict[str, dict[str, Any]] = {
    "tolerations": {"tolerations": TOLERATIONS},
    "node selector": {"nodeSelector": {f"k{at}": "v" for at in range(9_000)}},
    "node affinity": {
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [EXPRESSION]}]
                }
            }
        }
    },
    "anti-affinity": {
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}
    },
    "gates": {"schedulingGates": [{"name": f"example.com/gate-{at}"} for at in range(9_000)]},
    "resources": {"overhead": RESOURCES},
}


def observed(spec: dict[str, Any] | None = None, **metadata: Any) -> ObservedObject:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}
    body = {
        "metadata": {"name": "p", "namespace": "t", "uid": "u", "resourceVersion": "5", **metadata},
        "spec": {"schedulerName": "eclectus", "containers": [container], **(spec or {})},
        "status": {"phase": "Pending"},
    }
    return WatchedPods(lambda _: True).observe(msgspec.Raw(msgspec.json.encode(body)), 0.0)


def task_of(found: ObservedObject) -> Task:
    assert isinstance(found.event, TaskSeen)
    return found.event.task


@pytest.mark.parametrize("spec", LARGE.values(), ids=LARGE)
@pytest.mark.parametrize("node", ["", "n1"], ids=["waiting", "on a node"])
def test_what_is_kept_of_one_is_bounded_and_its_room_still_counts(spec: dict[str, Any], node: str) -> None:
    found = observed({**spec, "nodeName": node})
    task = task_of(found)
    assert len(msgspec.json.encode(task)) < BYTES_MOST
    assert {"cpu": 2000, "memory": 2**30}.items() <= dict(task.holding).items()
    assert f"more than {BYTES_MOST} bytes" in str(found.problem)


def test_labels_without_end_are_not_kept() -> None:
    task = task_of(observed(labels={f"label-{at}": "value" for at in range(9_000)}))
    assert len(task.labels) == KEPT_MOST
    assert task.spec.unsupported


def test_it_is_not_placed_and_its_report_says_why() -> None:
    world = World(make_engine(), make_node("n1"))
    world.add(task_of(observed({"tolerations": TOLERATIONS})))
    assert world.placed() == {}
    ((reason, message),) = world.messages("p")
    assert reason == "SchedulerError"
    assert f"constraints, labels and resources of more than {BYTES_MOST} bytes" in message


def test_a_large_pod_whose_constraints_are_small_is_as_any_other() -> None:
    env = [{"name": f"E{at}", "value": "x" * 100} for at in range(5_000)]
    container = {"name": "c", "image": "x", "env": env}
    found = observed({"containers": [container], "tolerations": TOLERATIONS[:100]})
    assert found.problem is None
    assert len(task_of(found).spec.tolerations) == 100
