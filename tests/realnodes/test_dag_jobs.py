"""A DagJob of real containers: a missing image, one that is killed for its memory, one that fails once."""

import pytest

from eclectus.api.names import API_VERSION, ATTEMPT_LABEL, DAG_JOB, STAGE_LABEL
from live_cluster import wait
from real_release import VALUES, installed

# The first run compiles and builds images.
pytestmark = [pytest.mark.live, pytest.mark.alone, pytest.mark.timeout(1800)]
WITH_DAG_JOBS = {**VALUES, "operator": {**VALUES["operator"], "dagJobs": {"enabled": True}}}
MISSING, PRESENT = "127.0.0.1:9/none:1", "busybox:static"
MEBIBYTE = 2**20
LIMIT = 48 * MEBIBYTE  # of the container that fills 64 MiB: too little at first, enough when doubled


@pytest.fixture(scope="module")
def release(real, kubectl):
    with installed(real.plane.kubeconfig, kubectl, WITH_DAG_JOBS) as one:
        yield one


def stage(name, *command, depends_on=(), image=PRESENT, memory=32 * MEBIBYTE):
    attempt = {"fieldRef": {"fieldPath": f"metadata.labels['{ATTEMPT_LABEL}']"}}
    amounts = {"cpu": "50m", "memory": str(memory)}
    main = {
        "name": "main",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": list(command),
        "env": [{"name": "ATTEMPT", "valueFrom": attempt}],
        "resources": {"requests": amounts, "limits": {"memory": str(memory)}},
    }
    spec = {"nodeSelector": {"pool": "system"}, "terminationGracePeriodSeconds": 1, "containers": [main]}
    return {"name": name, "dependsOn": list(depends_on), "template": {"spec": spec}}


STAGES = [
    stage("image", "true", image=MISSING),
    stage("memory", "dd", "if=/dev/zero", "of=/dev/null", "bs=64M", "count=1", memory=LIMIT),
    stage("retry", "sh", "-c", 'test "$ATTEMPT" -gt 0'),
    stage("end", "true", depends_on=("image", "memory", "retry")),
]


def status(kubectl):
    return kubectl.get("dagjob", "job").get("status", {})


def condition(kubectl, kind):
    return next((each for each in status(kubectl).get("conditions", []) if each["type"] == kind), {})


def pods(kubectl, name):
    """The pods of a stage, in the order of their attempts."""
    found = kubectl.get("pods", f"--selector={STAGE_LABEL}={name}")
    return sorted(found, key=lambda each: each["metadata"]["labels"][ATTEMPT_LABEL])


def messages(kubectl, reason):
    return [each["message"] for each in kubectl.get("events") if each["reason"] == reason]


def test_a_missing_image_is_reported_and_memory_is_raised_and_a_failure_run_again(release, kubectl):
    job = {
        "apiVersion": API_VERSION,
        "kind": DAG_JOB,
        "metadata": {"name": "job"},
        "spec": {"stages": STAGES},
    }
    kubectl("create", "-f", "-", given=job)
    wait("the image is reported", lambda: condition(kubectl, "Ready").get("reason") == "ImageNotPulled")
    assert MISSING in condition(kubectl, "Ready")["message"]
    wait("the others have ended", lambda: status(kubectl).get("tasks") == "2/4")
    (killed, raised), (failed, _) = pods(kubectl, "memory"), pods(kubectl, "retry")
    assert terminated(killed)["reason"] == "OOMKilled"
    assert raised["spec"]["containers"][0]["resources"]["limits"]["memory"] == str(2 * LIMIT)
    factors = "run again with more memory, by these factors of the template's: memory[0]: main=2"
    wait("an event says so", lambda: messages(kubectl, "MemoryRaised") == [factors])
    assert terminated(failed)["exitCode"] == 1
    failure = "run again after a failure: retry[0]: container main: Error, exit code 1"
    wait("another one too", lambda: messages(kubectl, "TasksRetried") == [failure])
    (waiting,) = pods(kubectl, "image")
    kubectl("set", "image", f"pod/{waiting['metadata']['name']}", f"main={PRESENT}")
    wait("the job succeeds", lambda: condition(kubectl, "Succeeded").get("status") == "True")
    assert condition(kubectl, "Ready")["status"] == "True"
    retried = {each["name"]: each.get("retried", 0) for each in status(kubectl)["stages"]}
    assert retried == {"image": 0, "memory": 1, "retry": 1, "end": 0}
    kubectl("delete", "dagjob", "job")
    wait("its pods are deleted", lambda: not kubectl.get("pods"))


def terminated(pod):
    return pod["status"]["containerStatuses"][0]["state"]["terminated"]
