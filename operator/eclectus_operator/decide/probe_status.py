"""What stands in a NodeProbe's status and in a NodeProfile after each step. Pure: values in, values out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from eclectus.api.common import time_text
from eclectus.api.names import API_VERSION
from eclectus.api.node_probe import Condition, NodeProbe, NodeProbeStatus, Outcome, Run
from eclectus_operator.decide.dispatch import Held
from eclectus_operator.objects import convert
from eclectus_operator.objects.observed import Node

READY, PROBING = "Ready", "Probing"
_MESSAGE = 2000  # characters of a condition's message: an author reads no more


def begun(status: NodeProbeStatus, node: str, class_name: str, now: float) -> tuple[NodeProbeStatus, Run]:
    """A new run is written down, under the next number."""
    run = Run(status.next_number, node, class_name, time_text(now))
    after = replace(
        status,
        next_number=run.number + 1,
        runs=(*status.runs, run),
        running=len(status.runs) + 1,
        last_run_time=run.begun_time,
    )
    return after, run


def noted(status: NodeProbeStatus, run: Run, uid: str) -> NodeProbeStatus:
    """The pod of a run was seen."""
    return _with_run(status, replace(run, pod_uid=uid))


def ended(status: NodeProbeStatus, run: Run, outcome: Outcome) -> NodeProbeStatus:
    """A run has ended."""
    return _with_run(status, replace(run, outcome=outcome))


def forgotten(status: NodeProbeStatus, run: Run) -> NodeProbeStatus:
    """A run that has ended, and whose pod is gone, is counted and taken out."""
    left = tuple(each for each in status.runs if each.number != run.number)
    succeeded = run.outcome is not None and run.outcome.succeeded
    return replace(
        status,
        runs=left,
        running=len(left),
        succeeded=status.succeeded + succeeded,
        failed=status.failed + (not succeeded),
    )


def accepted(probe: NodeProbe, now: float) -> NodeProbeStatus:
    """The spec is understood and obeyed."""
    words = "no more probes are started" if probe.spec.suspend else "probes are started as the limits allow"
    reason = "Suspended" if probe.spec.suspend else "Accepted"
    ready = Condition(READY, "True", reason, time_text(now), words, probe.metadata.generation)
    return replace(told(probe.status, ready), observed_generation=probe.metadata.generation)


def rejected(
    status: NodeProbeStatus, generation: int, problems: Iterable[str], now: float
) -> NodeProbeStatus:
    """The spec cannot be obeyed."""
    words = "; ".join(problems)[:_MESSAGE]
    ready = Condition(READY, "False", "InvalidSpec", time_text(now), words, generation)
    return replace(told(status, ready), observed_generation=generation)


def probing(probe: NodeProbe, status: NodeProbeStatus, held: Held | None, now: float) -> NodeProbeStatus:
    """Whether the probe that was due was started."""
    generation, moment = probe.metadata.generation, time_text(now)
    if held is None:
        return told(status, Condition(PROBING, "True", "Started", moment, "the last one due was", generation))
    return told(status, Condition(PROBING, "False", held.reason, moment, held.message, generation))


def told(status: NodeProbeStatus, new: Condition) -> NodeProbeStatus:
    """A condition is as given. Other words for the same reason and generation are not worth a write."""
    old = next((each for each in status.conditions if each.type == new.type), None)
    if old and old.status == new.status:
        if (old.reason, old.observed_generation) == (new.reason, new.observed_generation):
            return status
        new = replace(new, last_transition_time=old.last_transition_time)
    others = tuple(each for each in status.conditions if each.type != new.type)
    return replace(status, conditions=tuple(sorted((*others, new), key=lambda each: each.type)))


def new_profile(node: Node) -> dict[str, Any]:
    """A NodeProfile without content, owned by its node so that it goes with it."""
    name, uid = node.metadata.name, node.metadata.uid
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}
    metadata = {"name": name, "ownerReferences": [owner]}
    return {"apiVersion": API_VERSION, "kind": "NodeProfile", "metadata": metadata}


def profile_patch(probe: str, run: Run) -> dict[str, Any]:
    """A merge patch of a NodeProfile's status: how the last run on its node ended."""
    outcome = convert.written(run.outcome) if run.outcome else {}
    head = {"probe": probe, "number": run.number, "class": run.class_name, "begunTime": run.begun_time}
    empty = {"seconds": None, "rate": None}  # of the run before, which a merge would leave
    return {"status": {"lastProbe": {**empty, **head, **outcome}}}


def _with_run(status: NodeProbeStatus, run: Run) -> NodeProbeStatus:
    return replace(status, runs=tuple(run if each.number == run.number else each for each in status.runs))
