"""What a pod requests and what it holds on its node, computed as Kubernetes does.

Sources: KEP-753 (sidecars), KEP-1287 (in-place resize), KEP-2837 (pod-level resources) and the package
`component-helpers/resource` of Kubernetes 1.36, whose results these equal. Sums are in thousandths;
amounts are rounded up to whole units once, at the end.

    running  = app containers + sidecars
    starting = max over init containers of (itself + the sidecars started before it)
    total    = max(running, starting); pod-level requests replace it; overhead comes on top
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from eclectus.kube.objects import Container, Pod, PodSpec, Resources
from eclectus.kube.quantity import BEYOND_MOST, thousandths, units
from eclectus.model.objects import Amounts

Total = dict[str, int]
"""Resource name -> thousandths."""

BEST_EFFORT: Total = {"cpu": 100, "memory": 200 * 1024 * 1024 * 1000}
"""The requests that scores assume for a container without any (kube-scheduler: 100m and 200 MiB)."""


class FieldError(ValueError):
    """A field has an invalid value. The caller adds the name of the object."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class Requested(NamedTuple):
    """What a pod requests: the amounts, and (cpu, memory) as scores count them."""

    amounts: Amounts
    scored: tuple[int, int]


def requested(pod: Pod) -> Requested:
    """What the pod requests, from its spec alone. Raises FieldError."""
    spec = pod.spec
    apps = [_requests(container) for container in spec.containers]
    inits = [_requests(container) for container in spec.init_containers]
    level = _pod_level_requests(spec)
    total = _total(spec, apps, inits, level)
    # With pod-level requests, only a resource that nothing requests gets the default.
    default = (
        {name: least for name, least in BEST_EFFORT.items() if name not in total} if level else BEST_EFFORT
    )
    scored = total
    if not all(default.keys() <= own.keys() for own in (*apps, *inits)):
        apps, inits = ([{**default, **own} for own in part] for part in (apps, inits))
        scored = _total(spec, apps, inits, level)
    cpu, memory = scored.get("cpu", 0), units(scored.get("memory", 0))
    return Requested(amounts(total), (min(cpu, BEYOND_MOST), min(memory, BEYOND_MOST)))


def held(pod: Pod) -> Amounts:
    """What a bound pod holds: the maximum of its spec, its allocation and what the kubelet has actuated.

    While a resize is infeasible, the spec does not count. Raises FieldError.
    """
    spec, status = pod.spec, pod.status
    counts_spec = not _resize_infeasible(pod)
    known = {each.name: each for each in (*status.container_statuses, *status.init_container_statuses)}

    def now(container: Container) -> Total:
        own, seen = _requests(container), known.get(container.name)
        if seen is None or seen.resources is None:
            return own
        return _maximum(own if counts_spec else {}, seen.resources.requests, seen.allocated_resources)

    inits = [now(init) if init.sidecar else _requests(init) for init in spec.init_containers]
    level = _pod_level_requests(spec)
    if level and status.resources is not None:
        seen = _maximum(level if counts_spec else {}, status.resources.requests, status.allocated_resources)
        level = {name: seen.get(name, 0) for name in level}
    return amounts(_total(spec, [now(each) for each in spec.containers], inits, level))


def amounts(total: Total, most: int = BEYOND_MOST) -> Amounts:
    """Thousandths as amounts: whole units, for cpu thousandths; a larger amount counts as `most`.

    What a pod asks for beyond MOST fits on no node, whose amounts count as MOST at most.
    """
    whole = ((name, total[name] if name == "cpu" else units(total[name])) for name in sorted(total))
    return tuple((name, min(amount, most)) for name, amount in whole if amount)


def parsed(resources: Resources, field: str) -> Total:
    """A resource list in thousandths, without the names that a scheduler ignores. Raises FieldError."""
    total = {}
    for name, text in resources.items():
        if counted(name):
            try:
                total[name] = thousandths(text if isinstance(text, str) else repr(text))
            except ValueError as error:
                raise FieldError(f"{field}.{name}", str(error)) from error
    return total


@lru_cache(maxsize=1024)
def counted(name: str) -> bool:
    """Whether a node must have the resource: native names, and those with a domain except quotas."""
    if "/" in name:
        return "kubernetes.io/" in name or not name.startswith("requests.")
    return name in ("pods", "cpu", "memory", "ephemeral-storage") or name.startswith(
        ("hugepages-", "attachable-volumes-")
    )


# -- the sum ---------------------------------------------------------------------------------------


def _total(spec: PodSpec, apps: Sequence[Total], inits: Sequence[Total], level: Total) -> Total:
    total: Total = {}
    for own in apps:
        _add(total, own)
    if inits:
        sidecars = (container.sidecar for container in spec.init_containers)
        _start_up(total, zip(sidecars, inits, strict=True))
    total.update(level)
    if spec.overhead:
        _add(total, parsed(spec.overhead, "spec.overhead"))
    return total


def _start_up(total: Total, inits: Iterable[tuple[bool, Total]]) -> None:
    """Raise `total` to the peak of the start, and add sidecars to it. `inits`: (is a sidecar, requests)."""
    started: Total = {}
    peak: Total = {}
    for sidecar, own in inits:
        step = {**own}
        _add(step, started)
        _raise_to(peak, step)
        if sidecar:
            _add(total, own)
            started = step
    _raise_to(total, peak)


def _add(total: Total, more: Total) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: Total, least: Total) -> None:
    for name, amount in least.items():
        total[name] = max(total.get(name, 0), amount)


# -- where the numbers come from -------------------------------------------------------------------


def _requests(container: Container) -> Total:
    requests = container.resources.requests
    return parsed(requests, f"containers[{container.name}].resources.requests") if requests else {}


def _pod_level_requests(spec: PodSpec) -> Total:
    if spec.resources is None:
        return {}
    level = parsed(spec.resources.requests, "spec.resources.requests")
    return {n: level[n] for n in level if n in ("cpu", "memory") or n.startswith("hugepages-")}


def _maximum(spec: Total, actuated: Resources, allocated: Resources) -> Total:
    most = dict(spec)
    _raise_to(most, parsed(actuated, "status.resources.requests"))
    _raise_to(most, parsed(allocated, "status.allocatedResources"))
    return most


def _resize_infeasible(pod: Pod) -> bool:
    for condition in pod.status.conditions:
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False
