"""What a pod requests of a node, computed as Kubernetes does.

Source: k8s.io/component-helpers/resource, whose computation is part of the API. This does not share
code with the scheduler: admission detects the scheduler's mistakes, and would share them too.
"""

from typing import Any

from eclectus_e2e.testbed.kubelet.quantities import amounts

Json = dict[str, Any]
HostPort = tuple[str, str, int]  # address, protocol, port
_ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - compared with, never bound
_POD_LEVEL = ("cpu", "memory")  # and hugepages-*: what spec.resources may set


def requests(spec: Json) -> dict[str, int]:
    """Total requests of a pod: containers and sidecars, init containers, pod level, overhead."""
    running: dict[str, int] = {}
    for container in spec.get("containers", ()):
        _add(running, _own(container))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.get("initContainers", ()):
        own = _own(container)
        if container.get("restartPolicy") == "Always":
            _add(sidecars, own)
            own = {}
        _raise_to(peak, _sum(own, sidecars))  # an init container runs beside the sidecars before it
    total = _sum(running, sidecars)
    _raise_to(total, peak)
    for name, value in amounts(spec.get("resources", {}).get("requests")).items():
        if name in _POD_LEVEL or name.startswith("hugepages-"):
            total[name] = value
    _add(total, amounts(spec.get("overhead")))
    return total


def host_ports(spec: Json) -> set[HostPort]:
    """The ports of the node itself that a pod uses."""
    sidecars = [one for one in spec.get("initContainers", ()) if one.get("restartPolicy") == "Always"]
    return {
        (port.get("hostIP") or _ANY_ADDRESS, port.get("protocol") or "TCP", port["hostPort"])
        for container in [*spec.get("containers", ()), *sidecars]
        for port in container.get("ports", ())
        if port.get("hostPort")
    }


def ports_collide(one: HostPort, other: HostPort) -> bool:
    """Same port and protocol, on the same address or on every address."""
    return one[1:] == other[1:] and (one[0] == other[0] or _ANY_ADDRESS in (one[0], other[0]))


def _own(container: Json) -> dict[str, int]:
    return amounts(container.get("resources", {}).get("requests"))


def _add(total: dict[str, int], more: dict[str, int]) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + value


def _sum(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    total = dict(one)
    _add(total, other)
    return total


def _raise_to(total: dict[str, int], floor: dict[str, int]) -> None:
    for name, value in floor.items():
        total[name] = max(total.get(name, 0), value)
