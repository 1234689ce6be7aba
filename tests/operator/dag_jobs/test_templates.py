"""Templates as Helm, Go programs and batch Jobs have them, and what is said against their pods."""

import pytest
import yaml

from dag_jobs import dag_job, stage, stored
from dag_operator_world import PODS, DagWorld, task_of
from eclectus.kube.cluster_objects import COSCHEDULING_LABEL
from eclectus.kubeclient.api_errors import RejectedError, UnauthenticatedError, UnsureError
from eclectus_operator.dag_jobs.task_pods import NewPod

WITH_NULLS = """
metadata: {annotations: {a: b}}
spec:
  nodeSelector:
  tolerations:
  volumes:
  securityContext:
  initContainers:
  containers:
    - {name: main, image: none, env: , ports: , resources: , volumeMounts: }
"""
DENIED = "ValidatingAdmissionPolicy 'freeze' with binding 'freeze' denied request: no new pods before Monday"
WEBHOOK = 'Internal error occurred: failed calling webhook "inject": no endpoints available'


def refuse(world, refused, error):
    """Pods are refused with this error while `refused` says so of the stage and the moment."""
    send = world.api.send

    async def refusing(method, path, body=None, query=None, **options):
        if method == "POST" and path == PODS and refused(body["metadata"]["labels"]["eclectus.dev/stage"]):
            raise error
        return await send(method, path, body, query, **options)

    world.api.send = refusing


def test_null_in_a_template_means_not_set():
    world = DagWorld(dag_job(stages=[stage("a", template=yaml.safe_load(WITH_NULLS))]))
    world.play(30)
    assert world.condition("Succeeded")["status"] == "True"
    (pod,) = world.pods().values()
    assert pod["spec"].keys() == {"schedulerName", "containers", "restartPolicy", "nodeName"}


def test_the_metadata_of_a_template_are_those_of_a_pod_template():
    given = {
        "name": "one",
        "creationTimestamp": None,
        "labels": {"app": "x"},
        "finalizers": ["example.com/hold"],
    }
    template = {"metadata": given, "spec": {"containers": [{"name": "main"}]}}
    world = DagWorld(dag_job(stages=[stage("a", template=template)]))
    world.sync()
    (pod,) = world.pods().values()
    assert pod["metadata"]["name"].startswith("job-a-0-0-"), "the name is left out, as a batch Job does"
    assert pod["metadata"]["finalizers"] == ["example.com/hold"]
    assert pod["metadata"]["labels"]["app"] == "x"


@pytest.mark.parametrize(
    ("message", "is_final"),
    [
        (DENIED, False),
        ('admission webhook "x" denied the request: spec.hostNetwork: not today', False),
        ('Pod "x" is invalid: spec.containers[0].image: Required value', True),
        ('Pod "x" is invalid: metadata.labels: Invalid value: "?"', True),
    ],
)
def test_only_what_is_wrong_with_a_field_fails_a_job_for_good(message, is_final):
    world = DagWorld(dag_job(stages=[stage("a", tasks=2)]))
    opens = world.api.now + 12.0
    refuse(world, lambda _: world.api.now < opens, RejectedError(f"POST {PODS}", 422, message))
    world.sync()
    ready = world.condition("Ready")
    assert (ready["status"], ready["reason"]) == (
        "False",
        "InvalidTemplate" if is_final else "PodForbidden",
    )
    assert message in ready["message"]
    assert bool(world.condition("Failed")) is is_final
    world.play(60)
    assert bool(world.condition("Succeeded")) is not is_final, "it goes on when the policy is lifted"


@pytest.mark.parametrize("status", [500, 0], ids=["answered", "no answer"])
def test_a_webhook_that_is_down_is_reported_and_other_stages_go_on(status):
    world = DagWorld(dag_job(stages=[stage("meshed"), stage("plain")]))
    opens = world.api.now + 60.0
    error = UnsureError(f"POST {PODS}", status, WEBHOOK)
    refuse(world, lambda name: name == "meshed" and world.api.now < opens, error)
    world.play(40)
    ready = world.condition("Ready")
    assert (ready["status"], ready["reason"]) == ("False", "FailedCreate")
    assert WEBHOOK in ready["message"]
    assert world.reasons().count("FailedCreate") == 1
    assert world.tasks("Succeeded") == [("plain", 0, 0)]
    world.play(60)
    assert world.condition("Succeeded")["status"] == "True"


def test_a_token_that_is_not_accepted_is_no_fault_of_a_pod():
    world = DagWorld(dag_job(stages=[stage("a")]))
    opens = world.api.now + 12.0
    refuse(world, lambda _: world.api.now < opens, UnauthenticatedError(f"POST {PODS}", 401, "Unauthorized"))
    world.play(10)
    assert world.status() == {}
    world.play(40)
    assert world.condition("Succeeded")["status"] == "True"


def test_a_long_name_is_cut_so_that_it_is_a_host_name_with_the_number_of_the_task():
    job = stored(dag_job("warehouse.nightly-customer-aggregation-europe", [stage("extract-and-normalise")]))
    names = [NewPod(job, job.spec.stages[0], index, 1).name for index in (7, 9_999)]
    for name, index in zip(names, (7, 9_999), strict=True):
        assert len(name) <= 63
        assert "." not in name
        assert f"-{index}-1-" in name
    assert names[0].startswith("warehouse-nightly-customer-")


@pytest.mark.parametrize(
    "template",
    [
        {"metadata": {"labels": {COSCHEDULING_LABEL: "mpi"}}, "spec": {"containers": [{"name": "main"}]}},
        {"spec": {"containers": [{"name": "main"}], "schedulingGroup": {"podGroupName": "mpi"}}},
    ],
    ids=["label", "field"],
)
def test_the_pods_of_a_gang_are_all_created_however_many_may_wait(template):
    others = [stage(name, tasks=200) for name in "abc"]
    world = DagWorld(dag_job(stages=[stage("mpi", tasks=120, template=template), *others]))
    for _ in range(10):
        world.sync()
        world.api.now += 2.0
    stages = [name for name, _, _ in world.tasks()]
    assert stages.count("mpi") == 120
    assert stages.count("a") == stages.count("b") == stages.count("c") == 33


def test_memory_that_was_raised_beyond_every_node_is_reported():
    world = DagWorld(dag_job(stages=[stage("a", memory="6Gi")]))
    world.ends = {("a", 0, 0): (137, "OOMKilled")}
    for _ in range(12):
        if any(task_of(pod) == ("a", 0, 1) for pod in world.pods().values()):
            break
        world.play(2)
    world.api.now += 2.0
    world.sync()
    ready = world.condition("Ready")
    assert (ready["status"], ready["reason"]) == ("False", "FitsNoNode")
    assert ready["message"] == (
        "stages[a]: no node of the cluster is large enough (memory), which is raised for tasks that had too "
        "little (main=2)"
    )
