"""A tenant that creates objects which cost others much; each is valid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from eclectus_e2e.chaos.api_server import ApiServer, Object, stamp
from eclectus_e2e.chaos.oracles import POD_GROUP

NAMESPACE = "hostile"
LABELS = tuple(f"l{at}" for at in range(12))
TOO_LARGE = "500"  # cores: no node has so many, so the pod waits for ever
POD_GROUPS = "scheduling.x-k8s.io/podgroups"


@dataclass(eq=False)
class HostileTenant:
    """Creates objects in its namespace, all at once."""

    server: ApiServer
    objects: int = 0

    def terms(self, amount: float) -> None:
        """Pods that want to be away from pods of all namespaces, each from others."""
        for pod in range(10 + int(amount * 40)):
            terms = [_term(f"{self.objects}-{pod}-{at}") for at in range(8)]
            affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
            self._pod(TOO_LARGE, {"affinity": affinity})

    def services(self, amount: float) -> None:
        """Services that select subsets of one set of labels, and pods that have them all."""
        for at in range(50 + int(amount * 350)):
            selector = {label: "x" for place, label in enumerate(LABELS) if (at + 1) >> (place % 10) & 1}
            self._create("services", {"spec": {"selector": selector}})
        for at in range(20 + int(amount * 40)):
            self._pod(TOO_LARGE, labels=dict.fromkeys(LABELS, "x") | {"own": f"{at}"})

    def budgets(self, amount: float) -> None:
        """PodDisruptionBudgets that select the same pods, which run and may not be disturbed."""
        for _ in range(5):
            self._pod("250m", {}, labels=dict.fromkeys(LABELS, "x"))
        for at in range(20 + int(amount * 80)):
            spec = {"selector": {"matchLabels": {LABELS[at % len(LABELS)]: "x"}}, "minAvailable": 5}
            self._create("policy/poddisruptionbudgets", {"spec": spec, "status": {"disruptionsAllowed": 0}})

    def gangs(self, amount: float) -> None:
        """Gangs of different pods that find no room together."""
        for gang in range(3 + int(amount * 8)):
            name = f"gang-{self.objects}"
            self._create(POD_GROUPS, {"spec": {"minMember": 8}}, name)
            for pod in range(8):
                cores = TOO_LARGE if pod == 7 else f"{100 + gang * 8 + pod}m"
                self._pod(cores, labels={POD_GROUP: name})

    def _pod(self, cores: str, spec: Object | None = None, labels: dict[str, str] | None = None) -> None:
        container = {"name": "main", "image": "work", "resources": {"requests": {"cpu": _millicores(cores)}}}
        pod: Object = {
            "metadata": {"labels": labels or {}, "annotations": {"chaos/seconds": "20"}},
            "spec": {"schedulerName": "eclectus", "containers": [container], "priority": 0, **(spec or {})},
            "status": {"phase": "Pending"},
        }
        self._create("pods", pod)

    def _create(self, resource: str, found: Object, name: str = "") -> None:
        self.objects += 1
        name = name or f"h{self.objects}"
        metadata = {"name": name, "namespace": NAMESPACE, "uid": f"uid-hostile-{resource}-{name}"}
        metadata["creationTimestamp"] = stamp(self.server.now())
        found["metadata"] = metadata | found.get("metadata", {})
        self.server.write(resource, f"{NAMESPACE}/{name}", found, NAMESPACE)


KINDS: dict[str, Callable[[HostileTenant, float], None]] = {
    "terms": HostileTenant.terms,
    "services": HostileTenant.services,
    "budgets": HostileTenant.budgets,
    "gangs": HostileTenant.gangs,
}


def _millicores(cores: str) -> str:
    return cores if cores.endswith("m") else f"{cores}000m"


def _term(value: str) -> Object:
    return {
        "labelSelector": {"matchExpressions": [{"key": "k", "operator": "NotIn", "values": [value]}]},
        "namespaceSelector": {},
        "topologyKey": "kubernetes.io/hostname",
    }
