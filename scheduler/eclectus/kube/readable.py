"""Nodes and pods of which a part cannot be read: the rest of them still counts.

A cordon, a taint, the room that a pod takes and its end must be seen whatever else the object says. An amount
that cannot be read counts as none. A pending pod with such a part is not placed, and its report says why.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from msgspec.structs import replace

from eclectus.kube.objects import (
    Container,
    ContainerStatus,
    Node,
    Pod,
    PodSpec,
    PodStatus,
    Requirements,
    Resources,
)
from eclectus.kube.requests import FieldError, parsed
from eclectus.kube.translate import task_from
from eclectus.model.errors import MalformedError
from eclectus.model.objects import Task


def readable_node(node: Node) -> Node:
    """The node without the amounts that cannot be read."""
    return replace(node, status=replace(node.status, allocatable=_readable(node.status.allocatable)))


def readable_task(pod: Pod, error: MalformedError, shared: AbstractSet[str] = frozenset()) -> Task:
    """The pod as a task without what cannot be read; `error` is what task_from raised, `shared` as there.

    Its spec asks for a feature that is not supported, which names the field. Raises MalformedError if the pod
    has no name or no uid.
    """
    task = task_from(replace(pod, spec=_spec(pod.spec), status=_status(pod.status)), shared=shared)
    feature = f"what cannot be read ({error.field}: {error.problem})"
    return replace(task, spec=replace(task.spec, unsupported=(*task.spec.unsupported, feature)))


def _spec(spec: PodSpec) -> PodSpec:
    affinity = spec.affinity
    return replace(
        spec,
        containers=tuple(map(_container, spec.containers)),
        init_containers=tuple(map(_container, spec.init_containers)),
        resources=_requirements(spec.resources),
        overhead=_readable(spec.overhead),
        # It matters only for pods that may be placed.
        affinity=None if affinity is None else replace(affinity, node_affinity=None),
    )


def _status(status: PodStatus) -> PodStatus:
    return replace(
        status,
        container_statuses=tuple(map(_container_status, status.container_statuses)),
        init_container_statuses=tuple(map(_container_status, status.init_container_statuses)),
        resources=_requirements(status.resources),
        allocated_resources=_readable(status.allocated_resources),
    )


def _container(container: Container) -> Container:
    return replace(container, resources=_requirements(container.resources))


def _container_status(status: ContainerStatus) -> ContainerStatus:
    allocated = _readable(status.allocated_resources)
    return replace(status, resources=_requirements(status.resources), allocated_resources=allocated)


def _requirements(requirements: Requirements | None) -> Requirements | None:
    return None if requirements is None else Requirements(_readable(requirements.requests))


def _readable(resources: Resources) -> Resources:
    return {name: amount for name, amount in resources.items() if _is_readable(name, amount)}


def _is_readable(name: str, amount: str | float) -> bool:
    try:
        parsed({name: amount}, "")
    except FieldError:
        return False
    return True
