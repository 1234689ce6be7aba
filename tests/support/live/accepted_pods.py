"""Pods as the API server accepts them, and what they request and hold.

The truth is computed from the amounts, not from their texts, by a plain simulation of a pod's life.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Amount = tuple[str, int]
"""(as it is written, thousandths)."""
Named = Mapping[str, Amount]
"""Resource name -> amount."""

BEYOND = 2**53  # from here on an amount is not counted exactly


@dataclass(frozen=True)
class Box:
    """A container; `seen`: what the kubelet has actuated and allocated, None before it says so."""

    name: str
    requests: Named
    is_sidecar: bool = False
    seen: tuple[Named, Named] | None = None

    def spec(self) -> dict[str, Any]:
        """Its entry in the spec."""
        requests = {"requests": written(self.requests)}
        restart = {"restartPolicy": "Always"} if self.is_sidecar else {}
        return {"name": self.name, "image": "pause", "resources": requests, **restart}

    def status(self) -> dict[str, Any]:
        """Its entry in the status."""
        if self.seen is None:
            return {"name": self.name, "state": {}}
        actuated, allocated = map(written, self.seen)
        known = {"resources": {"requests": actuated}, "allocatedResources": allocated}
        return {"name": self.name, "state": {}, **known}


@dataclass(frozen=True)
class Pod:
    """A pod. `level`: requests of the pod as a whole; `metadata`, `fields` and `status`: without amounts."""

    name: str
    node: str
    phase: str
    apps: tuple[Box, ...]
    inits: tuple[Box, ...]
    level: Named
    overhead: Named
    is_infeasible: bool  # its resize
    metadata: Mapping[str, Any]
    fields: Mapping[str, Any]
    status: Mapping[str, Any]
    generation: int = 1  # of the spec

    @property
    def waits(self) -> bool:
        """Whether Eclectus has to place it, or to say why it does not."""
        is_held_back = self.fields["schedulingGates"] or "deletionTimestamp" in self.metadata
        is_ours = self.fields["schedulerName"] == "eclectus"
        return is_ours and not (self.node or self.has_ended or is_held_back)

    @property
    def has_ended(self) -> bool:
        """Whether it holds nothing any more."""
        return self.phase in ("Succeeded", "Failed")

    def body(self, version: int) -> dict[str, Any]:
        """The object."""
        infeasible = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
        identity = {"name": self.name, "namespace": "default", "uid": self.name}
        versions = {"resourceVersion": str(version), "generation": self.generation}
        return {
            "metadata": {**identity, **versions, **self.metadata},
            "spec": {
                **self.fields,
                "nodeName": self.node,
                "containers": [box.spec() for box in self.apps],
                "initContainers": [box.spec() for box in self.inits],
                "overhead": written(self.overhead),
                **({"resources": {"requests": written(self.level)}} if self.level else {}),
            },
            "status": {
                **self.status,
                "phase": self.phase,
                "conditions": [*self.status["conditions"], *([infeasible] if self.is_infeasible else [])],
                "containerStatuses": [box.status() for box in self.apps],
                "initContainerStatuses": [box.status() for box in self.inits],
            },
        }

    def requests(self) -> dict[str, int]:
        """What it requests, in the units that are counted."""
        return self._total([{box.name: box.requests for box in self._boxes}])

    def holds(self) -> dict[str, int]:
        """What it holds on its node: the largest of three sums over its containers, as in Kubernetes 1.37."""
        spec = {} if self.is_infeasible else {box.name: box.requests for box in self._boxes}
        actuated, allocated = dict(spec), dict(spec)
        for box in self._boxes:
            if box.seen is not None:
                first, second = box.seen
                actuated[box.name] = first or second or spec.get(box.name, {})
                allocated[box.name] = second or spec.get(box.name, {})
        return self._total([spec, actuated, allocated])

    @property
    def _boxes(self) -> tuple[Box, ...]:
        return (*self.apps, *self.inits)

    def _total(self, every: list[dict[str, Named]]) -> dict[str, int]:
        """The largest sum of each resource; `every`: by container."""
        total, parts = {}, [part for each in every for part in each.values()]
        for name in {name for part in (*parts, self.level, self.overhead) for name in part}:
            is_of_pod = name in self.level and (name in ("cpu", "memory") or name.startswith("hugepages-"))
            peak = _value(self.level, name) if is_of_pod else max(self._peak(name, each) for each in every)
            total[name] = counted(name, peak + _value(self.overhead, name))
        return {name: amount for name, amount in total.items() if amount}

    def _peak(self, name: str, parts: dict[str, Named]) -> int:
        """The most that runs at one moment of its life."""
        sidecars, moments = 0, []
        for box in self.inits:
            own = _value(parts.get(box.name, {}), name)
            moments.append(sidecars + own)
            if box.is_sidecar:
                sidecars += own
        return max([*moments, sidecars + sum(_value(parts.get(box.name, {}), name) for box in self.apps)])


def written(named: Named) -> dict[str, str]:
    """A resource list."""
    return {name: text for name, (text, _) in named.items()}


def counted(name: str, thousandths: int) -> int:
    """An amount in whole units, of cpu in thousandths; what is beyond float64 counts as the first such."""
    return min(thousandths if name == "cpu" else -(-thousandths // 1000), BEYOND)


def _value(named: Named, name: str) -> int:
    return named[name][1] if name in named else 0
