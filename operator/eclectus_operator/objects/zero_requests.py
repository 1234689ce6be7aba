"""A probe borrows its room: it asks for nothing, and runs in what nobody uses. Pure.

A pod that asks for nothing takes nothing from what a real pod may be given, under any scheduler. Where a real
pod comes to run beside it, the kernel prefers that: a container that asks for no processor weighs 2, one that
asks for a core 1024. What the probe would have asked for is written on it instead, as the room that it stands
for: it begins only where so much is left, and its time counts only while it is.

What cannot be had without asking, such as devices and huge pages, a probe holds like any other pod.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eclectus.kube import objects as kube
from eclectus.kube.probe_room import SHARED
from eclectus.kube.requests import requested
from eclectus.model.objects import Amounts
from eclectus_operator.objects import convert

Object = dict[str, Any]
Change = Callable[[Object], Object]
"""From the resources of a container or a pod to the requests that it is to have."""
_CONTAINERS = ("initContainers", "containers")


def room(spec: Object) -> Amounts:
    """What a pod of this spec asks for of what can be borrowed. Raises FieldError, ShapeError."""
    asking = convert.read({"metadata": {}, "spec": _each(spec, _asked)}, kube.Pod)
    return tuple((name, amount) for name, amount in requested(asking).amounts if name in SHARED)


def borrowed(spec: Object) -> Object:
    """The spec, asking for nothing that can be borrowed."""
    return _each(spec, _nothing)


def _each(spec: Object, change: Change) -> Object:
    """A pod's spec with the requests of each container, and of the pod if it has any, changed."""
    changed = {field: [_with(one, change) for one in spec[field]] for field in _CONTAINERS if field in spec}
    return {**(_with(spec, change) if "resources" in spec else spec), **changed}


def _with(one: Object, change: Change) -> Object:
    resources = one.get("resources") or {}
    return {**one, "resources": {**resources, "requests": change(resources)}}


def _asked(resources: Object) -> Object:
    """As the API server fills it in: who gives a limit alone asks for as much."""
    return {**resources.get("limits", {}), **resources.get("requests", {})}


def _nothing(resources: Object) -> Object:
    """Nothing, in so many words: what is left out, a limit or the namespace's default would fill in."""
    asked = _asked(resources)
    named = {name for name in asked if name in SHARED} | {"cpu", "memory"}
    return {**asked, **dict.fromkeys(sorted(named), "0")}
