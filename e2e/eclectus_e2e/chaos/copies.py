"""Copies of stragglers in the simulated cluster: who asks for them, who straggles, and what must hold.

In half of the stories the operator may make copies everywhere; then some bare pods and some DagJobs ask for
them, of these some pods take long, and the scheduler looks for those, or somebody says so of any pod.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from eclectus.api.names import COPY_OF_LABEL, IDEMPOTENT, SPECULATIVE_LABEL, STRAGGLING
from eclectus_e2e.chaos.api_server import ApiServer, Change, Object, has_ended, stamp
from eclectus_e2e.chaos.kubelets import SLOW, Task, owner_of, task_of

TENANTS = tuple(f"tenant-{number}" for number in range(6))
SLOW_SHARE = 0.25  # of the pods that ask for copies take long
SPECULATE = ("none", "spark", "late")  # of the scheduler


def story_has_copies(seed: int) -> bool:
    """Whether the operator makes copies in the story of this seed."""
    return Random(f"copies {seed}").random() < 0.5


def configuration(seed: int) -> str:
    """What the scheduler's profile has beside its defaults."""
    if not story_has_copies(seed):
        return ""
    return f"  speculate: {{policy: {Random(f'speculate {seed}').choice(SPECULATE)}}}\n"


def ask(pod: Object) -> None:
    """A pod that asks for a copy, and may take long."""
    metadata = pod["metadata"]
    metadata["labels"] = {**metadata.get("labels", {}), SPECULATIVE_LABEL: "true"}
    metadata["annotations"] |= {IDEMPOTENT: "true", SLOW: f"{SLOW_SHARE}"}
    pod["spec"]["restartPolicy"] = "Never"


def straggle(server: ApiServer, rng: Random, share: float, *, is_late: bool) -> None:
    """Say of some running pods that ask for copies that they are late, or not any more."""
    for key, pod in sorted(server.stored("pods").items()):
        labels = pod["metadata"].get("labels") or {}
        asks = SPECULATIVE_LABEL in labels and COPY_OF_LABEL not in labels
        if not asks or pod.get("status", {}).get("phase") != "Running" or rng.random() > share:
            continue
        condition = {
            "type": STRAGGLING,
            "status": "True" if is_late else "False",
            "reason": "ExpectedToEndLate" if is_late else "NoLongerLate",
            "message": "somebody says so",
            "lastTransitionTime": stamp(server.now()),
        }
        path = "/api/v1/namespaces/{}/pods/{}/status".format(*key.split("/"))
        server.answer("PATCH", path, {}, {"status": {"conditions": [condition]}}, "tenants")


def is_copy(pod: Object) -> bool:
    """Whether the pod is the copy of another one."""
    return COPY_OF_LABEL in (pod["metadata"].get("labels") or {})


def may_use(pod: Object, node: str) -> bool:
    """Whether the pod may run on a node: a copy does not run on that of its original."""
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {})
    fields = (each for term in required.get("nodeSelectorTerms", ()) for each in term.get("matchFields", ()))
    return all(node not in each["values"] for each in fields if each["operator"] == "NotIn")


def second_copy(change: Change, server: ApiServer) -> str:
    """That a copy is made beside another one, or of no pod that runs; empty if it is not.

    A pod may have ended or gone while the request was on its way.
    """
    pod = change.new
    if pod is None or change.old is not None or not is_copy(pod):
        return ""
    original = pod["metadata"]["labels"][COPY_OF_LABEL]
    others = [
        key
        for key, each in server.stored("pods").items()
        if each is not pod and is_copy(each) and each["metadata"]["labels"][COPY_OF_LABEL] == original
    ]
    if others:
        return f"pod {change.key} is created, and {others[0]} is a copy of the same pod"
    if not change.by.startswith("operator"):
        return f"pod {change.key} is a copy, and made by {change.by}"
    return ""


def race_of(pod: Object) -> Task:
    """By which a pod and its copy are one: its task, or the uid of the original."""
    if owner_of(pod):
        return task_of(pod)
    return "", "", (pod["metadata"].get("labels") or {}).get(COPY_OF_LABEL, pod["metadata"]["uid"])


def races(server: ApiServer) -> Iterator[list[tuple[str, Object]]]:
    """The pods of each race with a copy, with their keys."""
    found: dict[Task, list[tuple[str, Object]]] = {}
    for key, pod in sorted(server.stored("pods").items()):
        if SPECULATIVE_LABEL in (pod["metadata"].get("labels") or {}):
            found.setdefault(race_of(pod), []).append((key, pod))
    return (pods for pods in found.values() if any(is_copy(pod) for _, pod in pods))


def no_copy_is_left_behind(server: ApiServer) -> str:
    """Which copy has not ended though its original has, or is left beside another success; empty if none."""
    for pods in races(server):
        ended = [key for key, pod in pods if has_ended(pod)]
        if ended and len(ended) < len(pods):
            return f"of {', '.join(key for key, _ in pods)} only {', '.join(ended)} has ended"
        succeeded = [key for key, pod in pods if pod["status"]["phase"] == "Succeeded"]
        if len(succeeded) > 1:
            return f"{' and '.join(succeeded)} have both succeeded, and both are left"
    return ""
