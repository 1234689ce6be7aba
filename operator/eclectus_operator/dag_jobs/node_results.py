"""Where what a stage reads lies: on the nodes of the pods that made it. Pure.

The pods of a stage with inputs that are `lostWithNode` say so by the annotation `eclectus.dev/inputs`, as a
user could, so `hold: delay` treats them as any pod that reads data. How many bytes a task has left is not
known: each counts one, so of several nodes those count that most tasks have run on, and to `costs: quincy`,
which prices bytes, they are nothing.
"""

from collections import Counter
from collections.abc import Mapping

import msgspec

from eclectus.api.dag_job import DagJob, Stage
from eclectus.api.names import INPUTS
from eclectus.kube.data import MAX_BYTES, MAX_INPUTS, MAX_NODES
from eclectus_operator.dag_jobs.tasks import Tasks, winner


def inputs_hint(job: DagJob, stage: Stage, tasks: Mapping[str, Tasks]) -> dict[str, str]:
    """The annotation of the stage's pods; none if no results lie on nodes, or its template has its own.

    Of many nodes the `MAX_NODES` with most of the tasks are named, of each stage that is read.
    """
    if INPUTS in ((stage.template.get("metadata") or {}).get("annotations") or {}):
        return {}
    found, text = [], ""
    for each in stage.inputs:
        if each.lost_with_node:
            name = f"{job.metadata.name}.{each.stage}"
            by_count: dict[int, list[str]] = {}
            for node, count in _counts(tasks[each.stage]).most_common(MAX_NODES):
                by_count.setdefault(count, []).append(node)
            found += [{"name": name, "bytes": count, "nodes": nodes} for count, nodes in by_count.items()]
    for listed in range(1, min(len(found), MAX_INPUTS) + 1):
        longer = msgspec.json.encode(found[:listed]).decode()
        if len(longer.encode()) > MAX_BYTES:
            break
        text = longer
    return {INPUTS: text} if text else {}


def _counts(parent: Tasks) -> Counter[str]:
    """On how many tasks' results each node has."""
    made = (winner(own) for own in parent.pods.values())
    return Counter(pod.node for pod in made if pod is not None and pod.node)
