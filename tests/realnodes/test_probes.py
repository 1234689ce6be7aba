"""Probes on real nodes: learned speeds compared with the nodes' CPU quotas.

In order, on one release: learn speeds, then changed quotas; failures of probes; detect a frozen node and
trust it again. A quota is a share of one core, and the built-in benchmark uses all of it. Where speeds are
compared with quotas two probes run at a time, because on two cores four of them and the control plane slow
each other down, and they are long, because the start of a container counts as well.
"""

import functools
import itertools
import json
import math
import subprocess
import sys

import pytest

from eclectus_e2e.testbed.chart import NAMESPACE
from eclectus_e2e.testbed.realnodes.benchmark_units import units_of_core_seconds
from live_cluster import wait as wait_often
from real_release import SHARES, pod

# The first run compiles and builds images.
pytestmark = [pytest.mark.live, pytest.mark.alone, pytest.mark.timeout(1800)]
FROZEN = "real-40"
CHANGED = {**SHARES, "real-10": 0.4, "real-80": 0.2}
LEARN_SECONDS = 1200.0  # a probe on a fifth of a core takes ten seconds, mostly to start the container
# Long deadlines, so that probes do not time out on a slow machine.
LONG_DEADLINES = {f"{stage}Seconds": 600 for stage in ("scheduling", "pulling", "starting", "running")}
LONG_CORE_SECONDS = 3.0
OURS = f"--namespace={NAMESPACE}"
# Each check runs kubectl, whose CPU time the nodes under test need.
wait = functools.partial(wait_often, every=2.0)


def probe(name, work, deadlines=LONG_DEADLINES, **limits):
    """A NodeProbe of the batch nodes that starts a probe as soon as it fits."""
    unlimited = {"perHour": 3600, "leastPerHour": 3600, "running": 4, "nodeIntervalSeconds": 0}
    return {
        "apiVersion": "eclectus.dev/v1alpha1",
        "kind": "NodeProbe",
        "metadata": {"name": name},
        "spec": {
            "nodeSelector": {"pool": "batch"},
            "classes": [{"name": "bench", **work}],
            "limits": {**unlimited, **limits},
            "deadlines": deadlines,
        },
    }


def unit(units=None):
    return {"unit": {"kind": "cpu", "units": units or units_of_core_seconds()}}


@pytest.fixture
def probing(release, kubectl):
    """Creates NodeProbes, and deletes all at the end; their pods are garbage collected."""

    def create(name, work, **options):
        kubectl("create", "-f", "-", given=probe(name, work, **options))

    yield create
    kubectl("delete", "nodeprobes", "--all")
    wait("no probe pod is left", lambda: not probe_pods(kubectl), LEARN_SECONDS)


def probe_pods(kubectl):
    return kubectl.get("pods", OURS, "--selector=eclectus.dev/probe")


def profiles(kubectl):
    found = kubectl.get("nodeprofiles")
    return {one["metadata"]["name"]: one.get("status", {}) for one in found}


def speeds(kubectl):
    """The output of `eclectus speeds` for the batch nodes, by name."""
    program = [sys.executable, "-c", "from eclectus.cli.main import main; main()", "speeds", "-o", "json"]
    result = subprocess.run(
        [*program, f"--kubeconfig={kubectl.kubeconfig}"], capture_output=True, text=True, check=True
    )
    return {one["node"]: one for one in json.loads(result.stdout) if one["node"] in SHARES}


def worst_error(kubectl, shares, samples=3):
    """The largest factor between learned rates and quotas, both relative to their mean.

    Infinite before every node has `samples` samples.
    """
    learned = {name: bench(one) for name, one in profiles(kubectl).items() if name in shares}
    if learned.keys() != shares.keys() or min(one.get("samples", 0) for one in learned.values()) < samples:
        return math.inf
    ratios = [learned[name]["rate"] / share for name, share in shares.items()]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return max(max(ratio / mean, mean / ratio) for ratio in ratios)


def bench(profile):
    """The learned values of the probes' class."""
    return next((one for one in profile.get("classes", []) if one["name"] == "bench"), {})


def test_learned_speeds_are_the_quotas(probing, kubectl):
    probing("learn", unit(units_of_core_seconds(LONG_CORE_SECONDS)), running=2)
    wait(
        "all speeds are within a third",
        lambda: worst_error(kubectl, SHARES, samples=2) < 4 / 3,
        LEARN_SECONDS,
    )
    wait("`eclectus speeds` orders the nodes by speed", lambda: ranked(kubectl) == [*SHARES], LEARN_SECONDS)
    wait("each node's last probe is reported", lambda: last_reasons(kubectl) == {"Completed"}, LEARN_SECONDS)


def ranked(kubectl):
    """The batch nodes in the order of their speeds, the slowest first."""
    shown = speeds(kubectl)
    return sorted(shown, key=lambda name: shown[name]["speed"])


def last_reasons(kubectl):
    """How the last probe of each batch node ended."""
    return {last_reason(kubectl, name) for name in SHARES}


@pytest.mark.slow
def test_quotas_changed_under_load_are_learned(probing, kubectl, real):
    probing("changed", unit(units_of_core_seconds(LONG_CORE_SECONDS)), running=2)
    # With fewer samples a change raises no alarm, and it takes three times as many probes to outweigh them.
    wait("all are known well", lambda: worst_error(kubectl, SHARES, samples=10) < math.inf, LEARN_SECONDS)
    wait("a probe runs", lambda: probe_pods(kubectl))
    try:
        for name, share in CHANGED.items():
            real.set_quota(name, share)
        wait(
            "the new speeds are within a third", lambda: worst_error(kubectl, CHANGED) < 4 / 3, LEARN_SECONDS
        )
    finally:
        for name, share in SHARES.items():
            real.set_quota(name, share)


def test_a_killed_container_is_a_failed_probe_whose_pod_is_deleted(probing, kubectl, real):
    probing("killed", unit(5000), running=1)
    wait("one runs", lambda: running(kubectl), LEARN_SECONDS)
    ((node, container),) = running(kubectl)
    kubectl("patch", "nodeprobe", "killed", "--type=merge", '--patch={"spec": {"suspend": true}}')
    real.kill_container(node, container)
    wait("it has failed", lambda: nodeprobe(kubectl, "killed").get("failed") == 1)
    wait("its pod is deleted", lambda: not probe_pods(kubectl) and not nodeprobe(kubectl, "killed")["runs"])
    last = profiles(kubectl)[node]["lastProbe"]
    assert (last["succeeded"], last["endedBy"], last["stage"]) == (False, "Pod", "Running"), last


def running(kubectl):
    """Node and container of every running probe."""
    return [
        (one["spec"]["nodeName"], status["containerID"])
        for one in probe_pods(kubectl)
        for status in one["status"].get("containerStatuses", [])
        if "running" in status["state"]
    ]


def nodeprobe(kubectl, name):
    return kubectl.get("nodeprobe", name).get("status", {})


def test_a_pod_is_bound_next_to_a_probe_and_then_the_probe_ends(probing, kubectl):
    """A pod that requests every core of a node is bound while the probe there still runs."""
    probing("next-to", unit(5000), running=1)
    wait("one runs", lambda: running(kubectl), LEARN_SECONDS)
    ((node, _),) = running(kubectl)
    kubectl("patch", "nodeprobe", "next-to", "--type=merge", '--patch={"spec": {"suspend": true}}')
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


def test_a_missing_image_is_reported_with_stage_and_node(probing, kubectl):
    image = "127.0.0.1:9/none:1"
    work = {"run": {"image": image, "requests": {"cpu": "100m"}}}
    probing("missing", work, deadlines={**LONG_DEADLINES, "pullingSeconds": 5}, running=1)
    message = f"still pulling image {image} after 5 s (node real-"
    wait("it is reported", lambda: any(message in one for one in last_messages(kubectl)), LEARN_SECONDS)
    wait("it is counted", lambda: nodeprobe(kubectl, "missing").get("failed"))


def last_messages(kubectl):
    """The message of each node's last probe."""
    return [one["lastProbe"]["message"] for one in profiles(kubectl).values() if "lastProbe" in one]


@pytest.mark.slow  # five minutes; tests/system/test_demo_perturbations.py has a frozen node without kubelets
def test_a_frozen_node_gets_no_pods_and_is_trusted_again_after_probes(release, probing, kubectl, real):
    """Only missing progress shows it: the node stays Ready in the API server.

    How soon a node gets pods again depends on its speed and on the capacity of faster nodes, so the test
    sends more pods than those can hold.
    """
    number, cpu = itertools.count(), quarter(kubectl)

    def send(count):
        """Create `count` pods; returns their nodes once all are bound."""
        names = [f"work-{next(number)}" for _ in range(count)]
        items = [task(name, cpu) for name in names]
        kubectl("create", "-f", "-", given={"apiVersion": "v1", "kind": "List", "items": items})
        wait("all are placed", lambda: all(placed(kubectl).get(name) for name in names), LEARN_SECONDS)
        return [placed(kubectl)[name] for name in names]

    def is_dead():
        send(1)
        return state(kubectl, FROZEN) == "Dead"

    send(12)
    like_hung = pod("like-hung", "sleep", "3", klass="waiting", nodeSelector={"pool": "batch"})
    kubectl("create", "-f", "-", given=like_hung)
    wait("the first have run", lambda: finished(kubectl) == 13, LEARN_SECONDS)
    hung = [hung_task(f"hung-{each}") for each in range(8)]
    kubectl("create", "-f", "-", given={"apiVersion": "v1", "kind": "List", "items": hung})
    wait("they run there", lambda: started(kubectl, FROZEN) == len(hung), LEARN_SECONDS)
    real.freeze(FROZEN)
    try:
        wait("it counts as dead", is_dead, LEARN_SECONDS)
        assert FROZEN not in send(12)
        kubectl("delete", "pods", "--all", "--force", "--grace-period=0")
    finally:
        real.thaw(FROZEN)
    probing("back", unit())
    wait("it is trusted again", lambda: state(kubectl, FROZEN) == "Live", LEARN_SECONDS)
    wait("it gets work again", lambda: FROZEN in send(40), LEARN_SECONDS)
    kubectl("delete", "pods", "--all", "--force", "--grace-period=0")


def quarter(kubectl):
    """A quarter of a node's cores, however many this machine has."""
    return f"{int(kubectl.get('node', FROZEN)['status']['allocatable']['cpu']) * 250}m"


def task(name, cpu):
    """A pod that takes three seconds on every node, however many run there."""
    return pod(name, "sleep", "3", cpu=cpu, klass="waiting", nodeSelector={"pool": "batch"})


def hung_task(name):
    """A pod that still runs when its node is frozen, with the requests of one that has ended."""
    return pod(name, "sleep", "600", klass="waiting", nodeSelector={"kubernetes.io/hostname": FROZEN})


def placed(kubectl):
    return {one["metadata"]["name"]: one["spec"].get("nodeName") for one in kubectl.get("pods")}


def finished(kubectl):
    return sum(one["status"]["phase"] == "Succeeded" for one in kubectl.get("pods"))


def started(kubectl, node):
    return len(kubectl.get("pods", f"--field-selector=spec.nodeName={node},status.phase=Running"))


def state(kubectl, node):
    return profiles(kubectl).get(node, {}).get("state")
