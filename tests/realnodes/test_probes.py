"""What is learned of real nodes by probes in real containers, held against the CPU quotas that they have.

In order, on one release: learn, find changed quotas; what may happen to a probe; find a frozen node and take
it back. The quotas are of one core, and the built-in benchmark does what it can in its share.
"""

import itertools
import json
import math
import subprocess
import sys

import pytest

from eclectus_e2e.testbed.chart import NAMESPACE
from eclectus_e2e.testbed.realnodes.pace import timed_units
from live_cluster import wait
from real_release import SHARES, pod

pytestmark = [pytest.mark.live, pytest.mark.timeout(1800)]  # the first run compiles and builds images
FROZEN = "real-40"
CHANGED = {**SHARES, "real-10": 0.4, "real-80": 0.2}
LEARN_SECONDS = 1200.0  # a probe on a fifth of a core takes ten seconds, most of it to start the container
# No deadline of a probe is in the way of a machine that is slow.
PATIENT = {f"{stage}Seconds": 600 for stage in ("scheduling", "pulling", "starting", "running")}
OURS = f"--namespace={NAMESPACE}"


def probe(name, work, deadlines=PATIENT, **limits):
    """A NodeProbe of the batch nodes that starts one as soon as there is room for one."""
    quick = {"perHour": 3600, "leastPerHour": 3600, "running": 4, "nodeIntervalSeconds": 0}
    return {
        "apiVersion": "eclectus.dev/v1alpha1",
        "kind": "NodeProbe",
        "metadata": {"name": name},
        "spec": {
            "nodeSelector": {"pool": "batch"},
            "classes": [{"name": "bench", **work}],
            "limits": {**quick, **limits},
            "deadlines": deadlines,
        },
    }


def unit(units=None):
    return {"unit": {"kind": "cpu", "units": units or timed_units()}}


@pytest.fixture
def probing(release, kubectl):
    """Makes NodeProbes; at the end all go, and Kubernetes takes their pods with them."""

    def make(name, work, **options):
        kubectl("create", "-f", "-", given=probe(name, work, **options))

    yield make
    kubectl("delete", "nodeprobes", "--all")
    wait("no probe pod is left", lambda: not probe_pods(kubectl), LEARN_SECONDS)


def probe_pods(kubectl):
    return kubectl.get("pods", OURS, "--selector=eclectus.dev/probe")


def profiles(kubectl):
    found = kubectl.get("nodeprofiles")
    return {one["metadata"]["name"]: one.get("status", {}) for one in found}


def speeds(kubectl):
    """What `eclectus speeds` says of the batch nodes, by name."""
    program = [sys.executable, "-c", "from eclectus.cli.main import main; main()", "speeds", "-o", "json"]
    told = subprocess.run(
        [*program, f"--kubeconfig={kubectl.kubeconfig}"], capture_output=True, text=True, check=True
    )
    return {one["node"]: one for one in json.loads(told.stdout) if one["node"] in SHARES}


def off(kubectl, shares, samples=3):
    """How far learned rates are from the quotas at worst, a factor; infinite before enough samples."""
    learned = {name: bench(one) for name, one in profiles(kubectl).items() if name in shares}
    if learned.keys() != shares.keys() or min(one.get("samples", 0) for one in learned.values()) < samples:
        return math.inf
    ratios = [learned[name]["rate"] / share for name, share in shares.items()]
    usual = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return max(max(ratio / usual, usual / ratio) for ratio in ratios)


def bench(profile):
    """What is learned of the probes' class."""
    return next((one for one in profile.get("classes", []) if one["name"] == "bench"), {})


def test_learned_speeds_are_the_quotas(probing, kubectl):
    probing("learn", unit())
    wait("all speeds are within a third", lambda: off(kubectl, SHARES) < 4 / 3, LEARN_SECONDS)
    wait("`eclectus speeds` tells who is faster", lambda: ranked(kubectl) == [*SHARES], LEARN_SECONDS)
    wait("each node's last probe is told", lambda: last_reasons(kubectl) == {"Completed"}, LEARN_SECONDS)


def ranked(kubectl):
    """The batch nodes in the order of their speeds, the slowest first."""
    shown = speeds(kubectl)
    return sorted(shown, key=lambda name: shown[name]["speed"])


def last_reasons(kubectl):
    """How the last probe of each batch node ended."""
    return {last_reason(kubectl, name) for name in SHARES}


def test_quotas_changed_under_load_are_found(probing, kubectl, real):
    probing("changed", unit())
    wait("it probes", lambda: probe_pods(kubectl))
    try:
        for name, share in CHANGED.items():
            real.set_quota(name, share)
        wait("the new speeds are within a third", lambda: off(kubectl, CHANGED) < 4 / 3, LEARN_SECONDS)
    finally:
        for name, share in SHARES.items():
            real.set_quota(name, share)


def test_a_killed_container_is_a_failed_probe_and_leaves_no_pod(probing, kubectl, real):
    probing("killed", unit(5000), running=1)
    wait("one runs", lambda: running(kubectl), LEARN_SECONDS)
    ((node, container),) = running(kubectl)
    kubectl("patch", "nodeprobe", "killed", "--type=merge", '--patch={"spec": {"suspend": true}}')
    real.kill_container(node, container)
    wait("it has failed", lambda: nodeprobe(kubectl, "killed").get("failed") == 1)
    wait("its pod is gone", lambda: not probe_pods(kubectl) and not nodeprobe(kubectl, "killed")["runs"])
    last = profiles(kubectl)[node]["lastProbe"]
    assert (last["succeeded"], last["endedBy"], last["stage"]) == (False, "Pod", "Running"), last


def running(kubectl):
    """Node and container of every probe that runs."""
    return [
        (one["spec"]["nodeName"], status["containerID"])
        for one in probe_pods(kubectl)
        for status in one["status"].get("containerStatuses", [])
        if "running" in status["state"]
    ]


def nodeprobe(kubectl, name):
    return kubectl.get("nodeprobe", name).get("status", {})


def test_real_work_is_bound_beside_a_probe_and_then_the_probe_ends(probing, kubectl):
    """A pod that asks for every core of a node does not wait until the probe there is gone."""
    probing("beside", unit(5000), running=1)
    wait("one runs", lambda: running(kubectl), LEARN_SECONDS)
    ((node, _),) = running(kubectl)
    kubectl("patch", "nodeprobe", "beside", "--type=merge", '--patch={"spec": {"suspend": true}}')
    cores = kubectl.get("node", node)["status"]["allocatable"]["cpu"]
    selector = {"kubernetes.io/hostname": node}
    kubectl("create", "-f", "-", given=pod("whole", "sleep", "1", cpu=cores, nodeSelector=selector))
    wait("the probe has ended", lambda: last_reason(kubectl, node) == "Yielded", LEARN_SECONDS)
    wait("the pod has run", lambda: finished(kubectl) == 1, LEARN_SECONDS)
    (bound,) = (
        one["lastTransitionTime"]
        for one in kubectl.get("pod", "whole")["status"]["conditions"]
        if one["type"] == "PodScheduled"
    )
    assert bound <= profiles(kubectl)[node]["lastProbe"]["endedTime"]
    kubectl("delete", "pod", "whole", "--force", "--grace-period=0")


def last_reason(kubectl, node):
    return profiles(kubectl)[node].get("lastProbe", {}).get("reason")


def test_a_missing_image_is_told_with_its_stage_and_node(probing, kubectl):
    image = "127.0.0.1:9/none:1"
    work = {"run": {"image": image, "requests": {"cpu": "100m"}}}
    probing("missing", work, deadlines={**PATIENT, "pullingSeconds": 5}, running=1)
    words = f"still pulling image {image} after 5 s (node real-"
    wait("it is told", lambda: any(words in one for one in last_messages(kubectl)), LEARN_SECONDS)
    wait("it is counted", lambda: nodeprobe(kubectl, "missing").get("failed"))


def last_messages(kubectl):
    """What was said of each node's last probe."""
    return [one["lastProbe"]["message"] for one in profiles(kubectl).values() if "lastProbe" in one]


def test_a_frozen_node_gets_no_work_and_comes_back_by_probes_alone(release, probing, kubectl, real):
    """Nobody else tells the scheduler: the API server goes on to call the node ready.

    How soon a node that is trusted again gets work is for its speed to say, and for what the faster ones
    have room for. So more comes than those can hold, and goes on to come.
    """
    number, cpu = itertools.count(), quarter(kubectl)

    def send(count):
        """Place so many tasks; the nodes that got them."""
        names = [f"work-{next(number)}" for _ in range(count)]
        items = [task(name, cpu) for name in names]
        kubectl("create", "-f", "-", given={"apiVersion": "v1", "kind": "List", "items": items})
        wait("all are placed", lambda: all(placed(kubectl).get(name) for name in names), LEARN_SECONDS)
        return [placed(kubectl)[name] for name in names]

    def given_up():
        send(1)
        return state(kubectl, FROZEN) == "Dead"

    send(12)
    wait("so long do they take", lambda: finished(kubectl) == 12, LEARN_SECONDS)
    hung = [hung_task(f"hung-{each}") for each in range(8)]
    kubectl("create", "-f", "-", given={"apiVersion": "v1", "kind": "List", "items": hung})
    wait("they run there", lambda: started(kubectl, FROZEN) == len(hung), LEARN_SECONDS)
    real.freeze(FROZEN)
    try:
        wait("it is given up", given_up, LEARN_SECONDS)
        assert FROZEN not in send(12)
        kubectl("delete", "pods", "--all", "--force", "--grace-period=0")
    finally:
        real.thaw(FROZEN)
    probing("back", unit())
    wait("it is trusted again", lambda: state(kubectl, FROZEN) == "Live", LEARN_SECONDS)
    wait("it gets work again", lambda: FROZEN in send(40), LEARN_SECONDS)
    kubectl("delete", "pods", "--all", "--force", "--grace-period=0")


def quarter(kubectl):
    """Of a node's cores: four tasks fill it, however many cores this machine has."""
    return f"{int(kubectl.get('node', FROZEN)['status']['allocatable']['cpu']) * 250}m"


def task(name, cpu):
    """Real work that takes three seconds on every node, however many run there."""
    return pod(name, "sleep", "3", cpu=cpu, klass="waiting", nodeSelector={"pool": "batch"})


def hung_task(name):
    """The same, caught by the freeze in the midst of it."""
    return pod(name, "sleep", "600", klass="waiting", nodeSelector={"kubernetes.io/hostname": FROZEN})


def placed(kubectl):
    return {one["metadata"]["name"]: one["spec"].get("nodeName") for one in kubectl.get("pods")}


def finished(kubectl):
    return sum(one["status"]["phase"] == "Succeeded" for one in kubectl.get("pods"))


def started(kubectl, node):
    return len(kubectl.get("pods", f"--field-selector=spec.nodeName={node},status.phase=Running"))


def state(kubectl, node):
    return profiles(kubectl).get(node, {}).get("state")
