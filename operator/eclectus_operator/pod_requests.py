"""What the pods that the operator makes request: as their templates, or nothing that can be used without."""

from collections.abc import Callable

from eclectus.kube import objects as kube
from eclectus.kube.requests import SHARED, requested
from eclectus.kubeclient.client import Object
from eclectus.model.objects import Amounts
from eclectus_operator import convert

Change = Callable[[Object], Object]
"""From the `resources` of a container or a pod to its new requests."""

CONTAINERS = ("initContainers", "containers")


def shareable_requests(spec: Object) -> Amounts:
    """The requests for resources that could be used without one. Raises FieldError, ShapeError."""
    pod = convert.read({"metadata": {}, "spec": _change_requests(spec, _effective)}, kube.Pod)
    return tuple((name, amount) for name, amount in requested(pod).amounts if name in SHARED)


def with_zero_requests(spec: Object) -> Object:
    """The spec with requests of 0 for the resources that need no request."""
    return _change_requests(spec, _zero)


def _change_requests(spec: Object, change: Change) -> Object:
    """A pod's spec with the requests of each container, and of the pod if it has any, changed."""
    changed = {field: [_changed(one, change) for one in spec[field]] for field in CONTAINERS if field in spec}
    return {**(_changed(spec, change) if "resources" in spec else spec), **changed}


def _changed(one: Object, change: Change) -> Object:
    resources = one.get("resources") or {}
    return {**one, "resources": {**resources, "requests": change(resources)}}


def _effective(resources: Object) -> Object:
    """As the API server defaults them: a limit without a request is also the request."""
    return {**resources.get("limits", {}), **resources.get("requests", {})}


def _zero(resources: Object) -> Object:
    """Explicit zeros: an absent request would be filled from a limit or from the namespace's LimitRange."""
    requests = _effective(resources)
    zeroed = {name for name in requests if name in SHARED} | {"cpu", "memory"}
    return {**requests, **dict.fromkeys(sorted(zeroed), "0")}
