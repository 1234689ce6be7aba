import pytest

from eclectus.api.common import time_text
from eclectus.api.node_probe import Deadlines
from eclectus_operator.convert import read
from eclectus_operator.node_probes.run_steps import ended_by_itself, overdue
from eclectus_operator.observed import Pod, PodEvent
from eclectus_operator.pod_stages import Stage, StageSince, current_stage, is_overdue

BORN, BOUND = 1000.0, 1010.0


def pod(node="n1", state=None, phase="Pending", **fields):
    """A pod created at 1000 and, if it has a node, bound at 1010."""
    conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": time_text(BOUND)}]
    statuses = [] if state is None else [{"name": "main", "state": state}]
    return read(
        {
            "metadata": {"name": "p", "creationTimestamp": time_text(BORN), **fields.get("metadata", {})},
            "spec": {"nodeName": node, "containers": [{"name": "main", "image": "reg:5000/i:1"}]},
            "status": {
                "phase": phase,
                "conditions": fields.get("conditions", conditions if node else []),
                "containerStatuses": statuses,
                **fields.get("status", {}),
            },
        },
        Pod,
    )


def event(reason, at):
    return read({"reason": reason, "message": f"{reason}!", "lastTimestamp": time_text(at)}, PodEvent)


def waiting(reason):
    return {"waiting": {"reason": reason, "message": "because"}}


def ended(code=0, reason="Completed", message=""):
    moments = {"startedAt": time_text(1020), "finishedAt": time_text(1050)}
    return {"terminated": {"exitCode": code, "reason": reason, "message": message, **moments}}


@pytest.mark.parametrize(
    ("seen", "events", "stage", "since"),
    [
        (pod(node=""), [], Stage.SCHEDULING, BORN),
        (pod(), [], Stage.STARTING, BOUND),
        (pod(state=waiting("ContainerCreating")), [], Stage.STARTING, BOUND),
        (pod(state=waiting("ContainerCreating")), [event("Pulling", 1011)], Stage.PULLING, BOUND),
        (
            pod(state=waiting("ContainerCreating")),
            [event("Pulled", 1030), event("Pulling", 1011)],
            Stage.STARTING,
            1030,
        ),
        (pod(state=waiting("ErrImagePull")), [], Stage.PULLING, BOUND),
        (pod(state=waiting("CreateContainerConfigError")), [], Stage.STARTING, BOUND),
        (pod(state={"running": {"startedAt": time_text(1040)}}), [], Stage.RUNNING, 1040),
        (pod(state=ended(), phase="Succeeded"), [], Stage.SUCCEEDED, BORN),
        (pod(phase="Failed"), [], Stage.FAILED, BORN),
        (pod(metadata={"deletionTimestamp": time_text(1060)}), [], Stage.DELETING, 1060),
    ],
)
def test_the_stage_of_a_pod_and_since_when(seen, events, stage, since):
    found = current_stage(seen, events)
    assert (found.stage, found.since) == (stage, since)


def test_a_stage_is_overdue_from_its_own_deadline_on():
    deadlines = Deadlines(scheduling_seconds=60, pulling_seconds=30, running_seconds=600)
    assert is_overdue(StageSince(Stage.PULLING, 1000), deadlines, 1030)
    assert not is_overdue(StageSince(Stage.PULLING, 1000), deadlines, 1029.9)
    assert not is_overdue(StageSince(Stage.SCHEDULING, 1000), deadlines, 1030)
    assert not is_overdue(StageSince(Stage.SUCCEEDED, 0), deadlines, 1e9)


@pytest.mark.parametrize(
    ("seen", "reason", "parts"),
    [
        (
            pod(state=waiting("ImagePullBackOff")),
            "ImagePullBackOff",
            ["pod p: still pulling image reg:5000/i:1 after 120 s", "(node n1)", "because"],
        ),
        (pod(node=""), "DeadlineExceeded", ["pod p: still not on a node after 60 s"]),
        (pod(), "DeadlineExceeded", ["pod p: still not started after 60 s (node n1)"]),
        (
            pod(state={"running": {"startedAt": time_text(1040)}}),
            "DeadlineExceeded",
            ["pod p: still running after 600 s (node n1)"],
        ),
    ],
)
def test_an_overdue_stage_names_stage_node_and_cause(seen, reason, parts):
    outcome = overdue(seen, current_stage(seen), Deadlines(), 5000).outcome
    assert (outcome.succeeded, outcome.ended_by, outcome.reason) == (False, "Operator", reason)
    assert [part for part in parts if part not in outcome.message] == []


@pytest.mark.parametrize(
    ("message", "rate"),
    [
        ('{"unit": "cpu", "rate": 12.5}', 12.5),
        ('warming up\n{"rate": 3}\n', 3.0),
        ("done", None),
        ('{"rate": "fast"}', None),
        ("[1]", None),
        ("", None),
    ],
)
def test_the_rate_is_in_the_last_line_of_the_benchmark(message, rate):
    seen = pod(state=ended(message=message), phase="Succeeded")
    outcome = ended_by_itself(seen, 2000, is_unit=True)
    assert (outcome.succeeded, outcome.rate, outcome.seconds) == (True, rate, 30.0)
    assert ended_by_itself(seen, 2000, is_unit=False).rate is None, "other work may print anything"


@pytest.mark.parametrize(
    ("seen", "stage", "reason", "part"),
    [
        (pod(state=ended(137, "OOMKilled"), phase="Failed"), "Running", "OOMKilled", "exit code 137"),
        (
            pod(phase="Failed", status={"reason": "OutOfcpu", "message": "Pod was rejected: cpu"}),
            "Starting",
            "OutOfcpu",
            "Pod was rejected: cpu",
        ),
        (
            pod(phase="Failed", status={"reason": "DeadlineExceeded"}),
            "Starting",
            "DeadlineExceeded",
            "node n1",
        ),
        (pod(state=ended(1, "Error", "x" * 5000), phase="Failed"), "Running", "Error", "x" * 1500),
    ],
)
def test_a_failed_pods_outcome_has_stage_and_reason(seen, stage, reason, part):
    outcome = ended_by_itself(seen, 2000, is_unit=True)
    assert (outcome.succeeded, outcome.ended_by) == (False, "Pod")
    assert (outcome.stage, outcome.reason) == (stage, reason)
    assert part in outcome.message
    assert len(outcome.message) < 2000
