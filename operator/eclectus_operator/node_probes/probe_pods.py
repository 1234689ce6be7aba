"""From a run to its pod.

The pod is not bound here but by the scheduler, with a required node affinity to its node: so taints are
respected, and what it requests is accounted for. As a rule that is nothing but one of the node's `pods`: a
pod without requests takes nothing from what a scheduler may give to real pods. If a real pod comes to run
beside it, the kernel prefers that one: the CPU weight of a container that requests no CPU is 2, of one that
requests a core 1024. What the probe would have requested are its notional requests, in an annotation: the
probe starts only where so much is left, and its run time counts only while it is. What cannot be used
without a request, such as devices and huge pages, a probe requests like any other pod.

The pod meets the `restricted` Pod Security standard, and is owned by its NodeProbe, so that Kubernetes
deletes it together with that. It has no ServiceAccount token, unless it is the copy of a pod
(recent_pods.py): then it has the account and the users of its original.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from eclectus.api import names
from eclectus.api.node_probe import Deadlines, NodeProbe, ProbeClass, ProbeId, Run, SingleContainer, Unit
from eclectus.kube.requests import annotated_room, room_annotation
from eclectus.model.objects import Amounts
from eclectus_operator import convert
from eclectus_operator.copied_pods import node_affinity
from eclectus_operator.observed import Pod, controlled_by
from eclectus_operator.pod_requests import CONTAINERS, shareable_requests, with_zero_requests
from eclectus_operator.settings import Settings

Object = dict[str, Any]

# Notional requests of the built-in benchmark: a whole core, since a share of one would measure the share.
UNIT_REQUESTS: Mapping[str, Mapping[str, str]] = {
    "cpu": {"cpu": "1", "memory": "64Mi"},
    "memory": {"cpu": "1", "memory": "320Mi"},
    "disk": {"cpu": "500m", "memory": "128Mi", "ephemeral-storage": "256Mi"},
}
SCRATCH = "/scratch"  # the disk benchmark's folder, and an emptyDir of half the storage it asks for
GRACE_SECONDS = 1  # a benchmark has nothing to save, and has to yield quickly
# Unless a template names another.
NOBODY: Object = {"runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532}
# What the `restricted` standard asks for. On each container too, because its word goes before the pod's.
NON_ROOT: Object = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
UNPRIVILEGED: Object = {
    **NON_ROOT,
    "privileged": False,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
}


@dataclass(frozen=True)
class Original:
    """A pod of which a run is a copy: its name, and what the copy has of its spec."""

    name: str
    spec: Object


def run_id(probe_uid: str) -> str:
    """The part of a pod's name that identifies its NodeProbe: a hash of the uid.

    A NodeProbe that is deleted and created again counts from 0, and must not take over its old pods.
    """
    return hashlib.sha256(probe_uid.encode()).hexdigest()[:12]


def identity(probe: NodeProbe, run: Run, instance: str) -> ProbeId:
    """The identity of a run's pod."""
    return ProbeId(instance, run_id(probe.metadata.uid), run.number)


def recorded(probe: NodeProbe, instance: str) -> list[ProbeId]:
    """The identities of the pods that should exist: those of the recorded runs."""
    return [identity(probe, run, instance) for run in probe.status.runs]


def of_probe(pods: Iterable[Pod], probe: NodeProbe) -> list[Pod]:
    """The pods whose label or name could be that of a run of this NodeProbe."""
    run = run_id(probe.metadata.uid)
    return [
        pod
        for pod in pods
        if pod.metadata.labels.get(names.RUN_ID_LABEL) == run or f"-{run}-" in pod.metadata.name
    ]


def pod(
    probe: NodeProbe, run: Run, work: ProbeClass, settings: Settings, original: Original | None = None
) -> Object:
    """The pod of a run, ready to be created; `original`: of which it is a copy."""
    template = template_of(work, settings, original, is_idle=not probe.spec.reserve_room)
    metadata, spec = template.get("metadata", {}), template["spec"]
    annotations = {**metadata.get("annotations", {}), names.NODE_ANNOTATION: run.node}
    if original is not None:
        annotations[names.ORIGINAL] = original.name
    if not probe.spec.reserve_room:
        annotations[names.ROOM_ANNOTATION] = room_annotation(shareable_requests(spec))
        spec = with_zero_requests(spec)
    one = identity(probe, run, settings.instance)
    own_labels = {**one.labels, names.CLASS_LABEL: work.name, names.PROBE_LABEL: probe.metadata.name}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": one.name,
            "namespace": settings.namespace,
            "labels": {**metadata.get("labels", {}), **own_labels},
            "annotations": annotations,
            "ownerReferences": [controlled_by(names.NODE_PROBE, probe.metadata.name, probe.metadata.uid)],
        },
        "spec": _spec(spec, probe, run.node, settings, is_copy=original is not None),
    }


def _spec(spec: Object, probe: NodeProbe, node: str, settings: Settings, *, is_copy: bool) -> Object:
    """The template's spec with everything that the operator sets."""
    tolerations = [*spec.get("tolerations", []), *map(convert.written, probe.spec.tolerations)]
    body: Object = {
        **spec,
        "schedulerName": probe.spec.scheduler_name,
        "affinity": {"nodeAffinity": node_affinity(spec, "In", node)},
        "tolerations": tolerations,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "activeDeadlineSeconds": active_deadline_seconds(probe.spec.deadlines),
        "securityContext": {**({} if is_copy else NOBODY), **spec.get("securityContext", {}), **NON_ROOT},
        **{kind: [_restricted(each) for each in spec[kind]] for kind in CONTAINERS if kind in spec},
    }
    if settings.priority_class:
        body["priorityClassName"] = settings.priority_class
    return body if is_copy else {**body, **_of_namespace(settings)}


def _of_namespace(settings: Settings) -> Object:
    """What a benchmark without an original has of its namespace: the operator's pull secrets alone."""
    found: Object = {"automountServiceAccountToken": False, "enableServiceLinks": False}
    if settings.pull_secrets:
        found["imagePullSecrets"] = [{"name": name} for name in settings.pull_secrets.split(",")]
    return found


def notional_requests(
    probe: NodeProbe, work: ProbeClass, settings: Settings, original: Original | None = None
) -> Amounts:
    """What must be left on a node for a probe with zero requests; empty for one that reserves its room."""
    if probe.spec.reserve_room:
        return ()
    return shareable_requests(template_of(work, settings, original)["spec"])


def room_of(probe: NodeProbe, run: Run, work: ProbeClass, settings: Settings) -> Amounts:
    """The notional requests of a run, whose pod may be gone. Raises FieldError."""
    if work.recent is None:
        return notional_requests(probe, work, settings)
    return annotated_room({names.ROOM_ANNOTATION: run.room} if run.room else {})


def active_deadline_seconds(deadlines: Deadlines) -> int:
    """All that a pod may take on its node: the kubelet ends it then, even while no operator runs."""
    return int(deadlines.pulling_seconds + deadlines.starting_seconds + deadlines.running_seconds)


def template_of(
    work: ProbeClass, settings: Settings, original: Original | None = None, *, is_idle: bool = False
) -> Object:
    """The pod template of a class; `is_idle`: the built-in benchmark leaves the processor to all others.

    The programs of other images are run as given: what is in an image to change their class is not known.
    """
    if original is not None:
        return {"spec": original.spec}
    if work.unit is not None:
        return {"spec": _unit(work.unit, settings.unit_image, is_idle=is_idle)}
    if work.run is not None:
        return {"spec": {"containers": [container(work.run)]}}
    template: Object = work.template or {}
    return template


def container(run: SingleContainer) -> Object:
    """One container. Without command or args the image's own are used; only `shell` wraps the command."""
    body: Object = {"name": "main", "image": run.image}
    if run.command is not None:
        body["command"] = ["/bin/sh", "-c", *run.command] if run.shell else list(run.command)
    if run.args is not None:
        body["args"] = list(run.args)
    if run.requests:
        body["resources"] = {"requests": dict(run.requests)}
    return body


def _unit(unit: Unit, image: str, *, is_idle: bool) -> Object:
    requests = dict(UNIT_REQUESTS[unit.kind])
    limits = {name: amount for name, amount in requests.items() if name != "cpu"}
    main: Object = {
        "name": "unit",
        "image": image,
        "args": [unit.kind, "--units", str(unit.units), *(["--idle"] if is_idle else [])],
        "resources": {"requests": requests, "limits": limits},
        "securityContext": {"readOnlyRootFilesystem": True},
    }
    spec: Object = {"containers": [main]}
    if unit.kind == "disk":
        main["args"] += ["--folder", SCRATCH]
        main["volumeMounts"] = [{"name": "scratch", "mountPath": SCRATCH}]
        spec["volumes"] = [{"name": "scratch", "emptyDir": {"sizeLimit": "128Mi"}}]
    return spec


def _restricted(one: Object) -> Object:
    """A container without privileges, with a termination message: its own, or the end of its log."""
    return {
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **one,
        "securityContext": {**one.get("securityContext", {}), **UNPRIVILEGED},
    }
