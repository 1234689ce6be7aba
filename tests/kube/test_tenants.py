"""Pods as the API server writes them, of two tenants with the same class label, from watch to placement."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from builders import make_engine, make_node
from eclectus.api.names import CLASS_LABEL
from eclectus.kube.objects import decode_pod
from eclectus.kube.translate import task_from
from eclectus.model.commands import Bind
from eclectus.model.events import BindConfirmed, NodeSeen, Resumed, TaskSeen
from eclectus.policies.rosella import Rosella, RosellaLearn
from pod_objects import PAUSE, raw

START = 1_800_000_000.0


class Cluster:
    """Two nodes and an engine; `shared` are the admin's classes."""

    def __init__(self, shared: frozenset[str] = frozenset()) -> None:
        self.engine, self.now, self._shared = make_engine(Rosella(), RosellaLearn()), START, shared
        nodes = [NodeSeen(make_node(name, cpu=16)) for name in ("slow", "fast")]
        self.engine.step([Resumed(), *nodes], self.now)

    def _seen(self, name: str, namespace: str, status: dict[str, Any], **spec: Any) -> list[Any]:
        spec = {"containers": [PAUSE], "restartPolicy": "Never", "schedulerName": "eclectus", **spec}
        labels = {CLASS_LABEL: "train"}
        pod = raw(spec, status, name=name, uid=name, namespace=namespace, labels=labels)
        return self.engine.step([TaskSeen(task_from(decode_pod(pod), shared=self._shared))], self.now)

    def run(self, name: str, namespace: str, node: str, seconds: float) -> None:
        """A pod of another scheduler runs to its end on this node."""
        began = self.now
        times = {"startedAt": _time(began)}
        self._seen(name, namespace, _status("Running", running=times), nodeName=node)
        self.now += seconds
        times |= {"finishedAt": _time(self.now)}
        self._seen(name, namespace, _status("Succeeded", terminated=times), nodeName=node)

    def placed(self, name: str, namespace: str) -> str:
        """The node that a pending pod is bound to."""
        (bind,) = [each for each in self._seen(name, namespace, {}) if isinstance(each, Bind)]
        self.engine.step([BindConfirmed(bind.uid, bind.node)], self.now)
        return bind.node


def _status(phase: str, **state: Any) -> dict[str, Any]:
    return {"phase": phase, "containerStatuses": [{"name": "main", "state": state}]}


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.mark.parametrize(("shared", "nodes"), [(frozenset(), {"fast"}), (frozenset({"train"}), {"slow"})])
def test_pods_with_the_label_of_others_teach_them_nothing_unless_it_is_shared(
    shared: frozenset[str], nodes: set[str]
) -> None:
    cluster = Cluster(shared)
    for number in range(10):
        cluster.run(f"a{number}", "team-a", "slow", 100.0)
        cluster.run(f"b{number}", "team-a", "fast", 10.0)
    for number in range(100):
        cluster.run(f"e{number}", "evil", "slow", 1.0)
    cluster.now += 2.0
    assert {cluster.placed(f"p{number}", "team-a") for number in range(4)} == nodes
