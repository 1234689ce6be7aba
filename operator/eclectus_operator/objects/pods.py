"""From a run to its pod.

The pod goes through the scheduler, pinned to its node by a required affinity, instead of being bound here:
so taints are respected, and what it holds is accounted for. As a rule that is nothing but a place among the
node's pods (borrowing.py). It meets the `restricted` Pod Security standard, has no ServiceAccount token, and
is owned by its NodeProbe, so that Kubernetes removes it with it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from eclectus.kube import probe_room
from eclectus.model.objects import Amounts
from eclectus_operator.objects import resources
from eclectus_operator.objects.names import ProbeId
from eclectus_operator.objects.resources import Deadlines, NodeProbe, OneContainer, Run, Unit, Work
from eclectus_operator.objects.zero_requests import borrowed, room
from eclectus_operator.settings import Settings

CLASS = "eclectus.dev/class"
PROBE = "eclectus.dev/probe"
NODE = "eclectus.dev/node"
Object = dict[str, Any]

# What it stands for: a core to itself, since a share of one would measure the share.
UNIT_REQUESTS: Mapping[str, Mapping[str, str]] = {
    "cpu": {"cpu": "1", "memory": "64Mi"},
    "memory": {"cpu": "1", "memory": "320Mi"},
    "disk": {"cpu": "500m", "memory": "128Mi", "ephemeral-storage": "256Mi"},
}
SCRATCH = "/scratch"  # the disk benchmark's folder, and an emptyDir of half the storage it asks for
GRACE_SECONDS = 1  # a benchmark has nothing to save, and is ended when real pods need its room
UNPRIVILEGED: Object = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
}


def run_id(probe_uid: str) -> str:
    """The part of a pod's name that stands for its NodeProbe.

    By uid: a NodeProbe made anew under its old name counts from 0 again, and must not meet its old pods.
    """
    return hashlib.sha256(probe_uid.encode()).hexdigest()[:12]


def identity(probe: NodeProbe, run: Run, instance: str) -> ProbeId:
    """Which pod a run has."""
    return ProbeId(instance, run_id(probe.metadata.uid), run.number)


def pod(probe: NodeProbe, run: Run, work: Work, settings: Settings) -> Object:
    """The pod of a run, ready to be created."""
    template = given(work, settings)
    metadata, spec = template.get("metadata", {}), template["spec"]
    annotations = {**metadata.get("annotations", {}), NODE: run.node}
    if not probe.spec.reserve_room:
        annotations[probe_room.ROOM] = probe_room.to_annotation(room(spec))
        spec = borrowed(spec)
    one = identity(probe, run, settings.instance)
    labels = {**metadata.get("labels", {}), **one.labels, CLASS: work.name, PROBE: probe.metadata.name}
    body: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": one.name,
            "namespace": settings.namespace,
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [_owner(probe)],
        },
        "spec": {
            **spec,
            "schedulerName": probe.spec.scheduler_name,
            "affinity": _pinned(run.node),
            "tolerations": [*spec.get("tolerations", []), *map(resources.written, probe.spec.tolerations)],
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": GRACE_SECONDS,
            "activeDeadlineSeconds": last_net_seconds(probe.spec.deadlines),
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": _pod_security(spec),
            "containers": [_closed(each) for each in spec["containers"]],
        },
    }
    if "initContainers" in spec:
        body["spec"]["initContainers"] = [_closed(each) for each in spec["initContainers"]]
    if settings.priority_class:
        body["spec"]["priorityClassName"] = settings.priority_class
    if settings.pull_secrets and "imagePullSecrets" not in spec:
        body["spec"]["imagePullSecrets"] = [{"name": name} for name in settings.pull_secrets.split(",")]
    return body


def stands_for(probe: NodeProbe, work: Work, settings: Settings) -> Amounts:
    """What must be left on a node for a probe that holds no room; nothing for one that reserves it."""
    return () if probe.spec.reserve_room else room(given(work, settings)["spec"])


def last_net_seconds(deadlines: Deadlines) -> int:
    """For the kubelet, should the operator be away: all that a pod may take on its node."""
    return int(deadlines.pulling_seconds + deadlines.starting_seconds + deadlines.running_seconds)


def given(work: Work, settings: Settings) -> Object:
    """What a class asks for, as a pod template."""
    if work.unit is not None:
        return {"spec": _unit(work.unit, settings.unit_image)}
    if work.run is not None:
        return {"spec": {"containers": [container(work.run)]}}
    template: Object = work.template or {}
    return template


def container(run: OneContainer) -> Object:
    """One container. An absent command or args is the image's own; `shell` wraps, and nothing else does."""
    body: Object = {"name": "main", "image": run.image}
    if run.command is not None:
        body["command"] = ["/bin/sh", "-c", *run.command] if run.shell else list(run.command)
    if run.args is not None:
        body["args"] = list(run.args)
    if run.requests:
        body["resources"] = {"requests": dict(run.requests)}
    return body


def _unit(unit: Unit, image: str) -> Object:
    requests = dict(UNIT_REQUESTS[unit.kind])
    limits = {name: amount for name, amount in requests.items() if name != "cpu"}
    main: Object = {
        "name": "unit",
        "image": image,
        "args": [unit.kind, "--units", str(unit.units)],
        "resources": {"requests": requests, "limits": limits},
        "securityContext": {"readOnlyRootFilesystem": True},
    }
    spec: Object = {"containers": [main]}
    if unit.kind == "disk":
        main["args"] += ["--folder", SCRATCH]
        main["volumeMounts"] = [{"name": "scratch", "mountPath": SCRATCH}]
        spec["volumes"] = [{"name": "scratch", "emptyDir": {"sizeLimit": "128Mi"}}]
    return spec


def _closed(one: Object) -> Object:
    """A container without privileges, whose last words are kept: its own, or the end of its log."""
    return {
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **one,
        "securityContext": {**one.get("securityContext", {}), **UNPRIVILEGED},
    }


def _pod_security(spec: Object) -> Object:
    numbers = {"runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532}
    profile = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    return {**numbers, **spec.get("securityContext", {}), **profile}


def _pinned(node: str) -> Object:
    by_name = {"key": "metadata.name", "operator": "In", "values": [node]}
    term = {"nodeSelectorTerms": [{"matchFields": [by_name]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}


def _owner(probe: NodeProbe) -> Object:
    return {
        "apiVersion": resources.API_VERSION,
        "kind": "NodeProbe",
        "name": probe.metadata.name,
        "uid": probe.metadata.uid,
        "controller": True,
    }
