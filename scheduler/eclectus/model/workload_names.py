"""Names of workloads: what is learned of a task holds for the tasks of its namespace, or of a shared class.

A name is `namespace/class` or `namespace/image,…`. Classes that the admin shares keep their bare name: they
belong to no namespace, and every pod with their label teaches them. Neither a namespace nor a class contains
a slash, so the first slash always ends the namespace.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

EVERYBODY = ""
"""Stands for the namespace where there is none: shared classes, and workloads of simulations."""


def workload_name(namespace: str, kind: str, shared: AbstractSet[str] = frozenset()) -> str:
    """The name of a kind of work (a class, or images); bare if it is one of the `shared` classes."""
    return kind if kind in shared else f"{namespace}/{kind}"


def namespace_of(workload: str) -> str:
    """Whose workload it is; EVERYBODY of a shared one."""
    return workload.partition("/")[0] if "/" in workload else EVERYBODY


def kind_of(workload: str) -> str:
    """The name without the namespace: the class, as in the label."""
    return workload.partition("/")[2] if "/" in workload else workload


def concerns(workload: str, namespace: str) -> bool:
    """Whether pods of this namespace may do such work: it is the namespace's own or shared."""
    return namespace_of(workload) in (namespace, EVERYBODY)


def in_namespace_of(workload: str, kind: str) -> str:
    """The name of another kind of work in the same namespace."""
    namespace = namespace_of(workload)
    return workload_name(namespace, kind) if namespace else kind
