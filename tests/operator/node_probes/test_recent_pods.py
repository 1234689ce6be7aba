"""Benchmarks that are copies of recent pods: which are copied, what of them, and what is said of others."""

from copy import deepcopy

import kubernetes_validate
import pytest
from msgspec import convert

from eclectus.api.common import time_text
from eclectus.api.names import BENCHMARK_LABEL, CLASS_LABEL, COPY_OF_LABEL, IDEMPOTENT, ORIGINAL, RUN_ID_LABEL
from eclectus.kube.objects import Pod
from eclectus.kube.translate import task_from
from eclectus_operator.node_probes.recent_pods import PODS_MOST
from fake_api import PODS, PROFILES
from probe_world import created, node_probe, real, world_with

SECURE = {
    "runAsNonRoot": True,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
LABELS = {BENCHMARK_LABEL: "true", CLASS_LABEL: "train", "app": "trainer"}
RECENT = node_probe(classes=[{"name": "train", "recent": {"withinSeconds": 3600}}], limits={"running": 1})
TOKEN = {
    "name": "kube-api-access-x7k2p",
    "projected": {
        "sources": [
            {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "ns", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
        ]
    },
}


def container(**fields):
    return {
        "name": "main",
        "image": "registry.example.com/train:3",
        "command": ["train"],
        "args": ["--epochs", "1"],
        "resources": {"requests": {"cpu": "1", "memory": "64Mi"}, "limits": {"memory": "64Mi"}},
        "securityContext": SECURE,
        **fields,
    }


def original(world, name="a", *, ago=60.0, seconds=20.0, metadata=None, status=None, **spec):
    """A pod as the API server has it, which ended so many seconds ago."""
    ended = world.api.now - ago
    state = {"exitCode": 0, "startedAt": time_text(ended - seconds), "finishedAt": time_text(ended)}
    given = {"labels": dict(LABELS), "annotations": {IDEMPOTENT: "true", "sidecar.example.com/inject": "yes"}}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j-1", "controller": True}
    body = {
        "metadata": {
            "name": name,
            "namespace": "probes",
            "ownerReferences": [owner],
            **given,
            **(metadata or {}),
        },
        "spec": {
            "nodeName": "elsewhere",
            "containers": [container()],
            "restartPolicy": "OnFailure",
            "schedulerName": "eclectus",
            "priority": 100,
            "priorityClassName": "high",
            "preemptionPolicy": "PreemptLowerPriority",
            "serviceAccount": "trainer",
            "serviceAccountName": "trainer",
            "enableServiceLinks": True,
            "dnsPolicy": "ClusterFirst",
            "terminationGracePeriodSeconds": 30,
            "securityContext": {"fsGroup": 7},
            **spec,
        },
        "status": {
            "phase": "Succeeded",
            "containerStatuses": [{"name": "main", "state": {"terminated": state}}],
            **(status or {}),
        },
    }
    return world.api.put(PODS, body)


def world_of(probe=RECENT, **options):
    return world_with(deepcopy(probe), **options)


def copies(world):
    """The pods of the benchmark runs."""
    return [pod for pod in world.api.pods().values() if RUN_ID_LABEL in pod["metadata"].get("labels", {})]


def played_until_copied(world):
    for _ in range(60):
        world.sync()
        if copies(world):
            (found,) = copies(world)
            return found
        world.api.now += 1
    raise AssertionError(world.condition("Probing"))


def test_a_run_does_the_work_of_a_recent_pod_again_as_a_probe():
    world = world_of()
    volumes = [
        {"name": "keys", "secret": {"secretName": "s"}},
        {"name": "c", "configMap": {"name": "c"}},
        TOKEN,
    ]
    mounts = [{"name": "keys", "mountPath": "/keys"}]
    sources = [{"secretRef": {"name": "s"}}]
    original(world, containers=[container(volumeMounts=mounts, envFrom=sources)], volumes=volumes)
    copy = played_until_copied(world)
    kubernetes_validate.validate(copy | {"metadata": {"name": "x"}}, "1.37", strict=True)
    spec, meta = copy["spec"], copy["metadata"]
    (one,) = spec["containers"]
    assert (one["image"], one["command"], one["args"]) == (container()["image"], ["train"], ["--epochs", "1"])
    assert (one["volumeMounts"], one["envFrom"], spec["volumes"]) == (mounts, sources, volumes)
    assert spec["serviceAccountName"] == "trainer"
    assert "automountServiceAccountToken" not in spec, "as its ServiceAccount says, as of its original"
    assert one["securityContext"] == {**SECURE, "privileged": False}
    assert "runAsUser" not in spec["securityContext"], "the image's own, as of its original"
    assert (spec["restartPolicy"], spec["activeDeadlineSeconds"]) == ("Never", 780)
    assert (spec["priorityClassName"], spec["terminationGracePeriodSeconds"]) == ("low", 1)
    assert not spec.keys() & {"priority", "preemptionPolicy", "nodeName", "serviceAccount"}
    assert meta["annotations"][ORIGINAL] == "a"
    assert not any("example.com" in key for key in meta["annotations"])
    assert meta["labels"].keys().isdisjoint({"app", BENCHMARK_LABEL, COPY_OF_LABEL})
    (owner,) = meta["ownerReferences"]
    assert owner["kind"] == "NodeProbe"


def test_it_runs_as_any_probe_does_and_its_original_stays():
    world = world_of()
    original(world)
    world.play(120)
    assert world.status()["succeeded"] >= 1
    assert world.status()["failed"] == 0
    assert PODS + "/a" in world.api.objects
    assert {world.api.created[path] for path in created(world)} == {1}
    assert any("lastProbe" in each["status"] for path, each in world.api.objects.items() if PROFILES in path)


@pytest.mark.parametrize("reserves", [False, True])
def test_to_the_scheduler_it_is_a_sample_of_the_same_work_with_the_same_requests(reserves):
    probe = node_probe(classes=RECENT["spec"]["classes"], limits={"running": 1}, reserveRoom=reserves)
    world = world_of(probe)
    first = task_from(convert(original(world), Pod))
    copy = task_from(convert(played_until_copied(world), Pod))
    assert copy.workload == first.workload == "probes/train"
    assert copy.spec.probe
    assert bool(copy.notional_requests) is not reserves
    assert dict(copy.notional_requests or copy.spec.requests) == dict(first.spec.requests)


def test_its_pin_is_added_to_the_nodes_that_its_original_may_use_and_other_pods_do_not_count():
    world = world_of()
    zone = [{"key": "zone", "operator": "In", "values": ["a"]}]
    required = {"nodeSelectorTerms": [{"matchExpressions": zone}]}
    apart = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "kubernetes.io/hostname"}]}
    affinity = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required},
        "podAntiAffinity": apart,
    }
    spread = [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]
    original(world, affinity=affinity, nodeSelector={"disk": "ssd"}, topologySpreadConstraints=spread)
    spec = played_until_copied(world)["spec"]
    assert spec["affinity"].keys() == {"nodeAffinity"}
    (term,) = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert term["matchExpressions"] == zone
    assert term["matchFields"][0]["operator"] == "In"
    assert spec["nodeSelector"] == {"disk": "ssd"}
    assert "topologySpreadConstraints" not in spec


def without_label(world):
    original(world, metadata={"labels": {CLASS_LABEL: "train"}})


def of_another_class(world):
    original(world, metadata={"labels": {**LABELS, CLASS_LABEL: "serve"}})


def long_ago(world):
    original(world, ago=3601)


def failed(world):
    original(world, status={"phase": "Failed"})


def in_another_namespace(world):
    body = original(world)
    world.api.remove(f"{PODS}/a")
    world.api.put("/api/v1/namespaces/default/pods", body)


def a_probe(world):
    original(world, metadata={"labels": {**LABELS, RUN_ID_LABEL: "x"}})


def a_copy_of_a_straggler(world):
    original(world, metadata={"labels": {**LABELS, COPY_OF_LABEL: "x"}})


@pytest.mark.parametrize(
    "put",
    [
        lambda world: None,
        without_label,
        of_another_class,
        long_ago,
        failed,
        in_another_namespace,
        a_probe,
        a_copy_of_a_straggler,
    ],
)
def test_where_nothing_recent_asks_for_it_no_run_is_made_and_the_condition_says_so(put):
    world = world_of()
    put(world)
    world.play(60)
    assert world.status().get("nextNumber", 0) == 0
    assert not [path for path in created(world) if "eclectus-probe" in path]
    condition = world.condition("Probing")
    assert (condition["status"], condition["reason"]) == ("False", "NothingRecent")
    assert condition["message"] == (
        "no pod of class train with the label eclectus.dev/benchmark=true has succeeded in namespace probes "
        "in the last 3600 s"
    )


REFUSED = {
    'lacks the annotation eclectus.dev/idempotent: "true"': {"metadata": {"annotations": {}}},
    "restartPolicy is Always": {"restartPolicy": "Always"},
    "belongs to a pod group": {"schedulingGroup": {"podGroupName": "g"}},
    "hostname or a subdomain": {"hostname": "h"},
    "takes a port of its node": {"containers": [container(ports=[{"hostPort": 80}])]},
    "claims for devices": {"resourceClaims": [{"name": "gpu"}]},
    "claim of its own": {"volumes": [{"name": "v", "ephemeral": {}}]},
    "mounts the claim data": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]},
    "spec.volumes[v]: a probe may mount nothing but emptyDir, configMap": {
        "volumes": [{"name": "v", "hostPath": {"path": "/"}}]
    },
    "spec.hostNetwork: is not among": {"hostNetwork": True},
    "spec.hostPID: is not among": {"hostPID": True},
    "securityContext.privileged: must not be": {
        "containers": [container(securityContext={**SECURE, "privileged": True})]
    },
    "securityContext.capabilities.add: must be empty": {
        "containers": [
            container(securityContext={**SECURE, "capabilities": {"drop": ["ALL"], "add": ["SYS_ADMIN"]}})
        ]
    },
    "its securityContext lacks runAsNonRoot: true": {
        "containers": [container(securityContext={**SECURE, "runAsNonRoot": None})]
    },
    "container helper does not meet the restricted Pod Security standard": {
        "initContainers": [{"name": "helper", "image": "i"}]
    },
    "containers[main].lifecycle: is not among": {"containers": [container(lifecycle={})]},
    "reads its labels or annotations": {
        "containers": [
            container(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['x']"}}}])
        ]
    },
    "reads its labels": {
        "volumes": [
            {
                "name": "v",
                "downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.annotations"}}]},
            }
        ]
    },
    "has run for 700 s, longer than deadlines.runningSeconds allows (600)": {"seconds": 700.0},
    "at `$.spec.containers[0].env[0]`": {"containers": [container(env=[1])]},
    "cannot be read: Expected": {"metadata": {"annotations": 5}},
    "requests.cpu: 'fast'": {"containers": [container(resources={"requests": {"cpu": "fast"}})]},
}


@pytest.mark.parametrize("why", REFUSED)
def test_a_pod_that_may_not_be_copied_is_named_with_why(why):
    world = world_of()
    original(world, **deepcopy(REFUSED[why]))
    world.play(30)
    condition = world.condition("Probing")
    assert (condition["status"], condition["reason"]) == ("False", "RecentRefused")
    assert condition["message"].startswith("no recent pod of class train may be copied, of 1; a: ")
    assert why in condition["message"]
    assert not copies(world)


def test_of_several_pods_one_that_may_be_copied_is_drawn_each_in_its_turn():
    world = world_of(nodes=5)
    original(world, "refused", hostname="h")
    for name in ("b", "c"):
        original(world, name)
    drawn = set()
    for _ in range(200):
        world.cluster_step()
        world.sync()
        drawn |= {each["metadata"]["annotations"][ORIGINAL] for each in copies(world)}
        world.api.now += 5
    assert drawn == {"b", "c"}


def test_of_very_many_pods_a_bounded_number_is_looked_at():
    world = world_of()
    for number in range(PODS_MOST):
        original(world, f"refused-{number:04}", hostname="h")
    original(world, "z")
    world.play(30)
    assert f"may be copied, of {PODS_MOST};" in world.condition("Probing")["message"]


def begun_without_pod(world):
    """A run that is recorded, whose pod the crash of an operator has prevented."""
    lost = []

    def no_post(method, path):
        if (method, path) == ("POST", PODS):
            lost.append(path)
            raise BrokenPipeError

    world.api.before = no_post
    for _ in range(60):
        try:
            world.sync()
        except BrokenPipeError:
            break
        world.api.now += 1
    assert lost
    world.api.before = lambda method, path: None
    world.start()


def test_after_a_crash_the_same_pod_is_copied():
    world = world_of()
    for name in ("a", "b", "c", "d"):
        original(world, name)
    begun_without_pod(world)
    (run,) = world.status()["runs"]
    assert (run["original"] in "abcd", run["room"]) == (True, '{"cpu":"1000m","memory":"67108864"}')
    world.sync()
    (copy,) = copies(world)
    assert copy["metadata"]["annotations"][ORIGINAL] == run["original"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda world: world.api.remove(f"{PODS}/a"), "pod a, of which it was to be a copy, is gone"),
        (
            lambda world: world.api.touch(f"{PODS}/a")["metadata"].pop("annotations"),
            "pod a may not be copied any more: it lacks the annotation",
        ),
    ],
)
def test_a_run_whose_original_is_gone_before_it_is_copied_ends_with_why(change, why):
    world = world_of()
    original(world)
    begun_without_pod(world)
    change(world)
    world.sync()
    (event,) = [each for path, each in world.api.objects.items() if "/events/" in path]
    assert (event["reason"], why in event["note"]) == ("Refused", True)
    assert not copies(world)
    world.sync()
    assert world.status()["runs"] == []


def test_a_copy_yields_its_room_although_neither_it_nor_its_original_is_there_any_more():
    world = world_of(nodes=1)
    original(world)
    name = played_until_copied(world)["metadata"]["name"]
    world.bind(name)
    world.run(name)
    world.sync()
    world.api.put("/api/v1/namespaces/default/pods", real("big", "4", on="n0"))
    world.api.remove(f"{PODS}/{name}")
    world.api.remove(f"{PODS}/a")
    world.sync()
    assert world.api.objects[f"{PROFILES}/n0"]["status"]["lastProbe"]["reason"] == "Yielded"


def test_without_room_for_what_its_original_requested_it_is_not_started():
    world = world_of(nodes=1)
    original(world, containers=[container(resources={"requests": {"cpu": "5"}})])
    world.play(30)
    condition = world.condition("Probing")
    assert (condition["reason"], "enough left of cpu" in condition["message"]) == ("NoRoom", True)
