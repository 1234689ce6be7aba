"""What a tenant with the role `edit` in one namespace can do: objects cheap to create and dear to schedule.

The API server accepts each of them. By each kind one tenant once made the steps of the scheduler long, or its
memory large, for all others; what bounds them is in docs/security.md.
"""

import asyncio
import random
import time
from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from operator import itemgetter
from typing import Any

from eclectus_bench.load import DELETE_NOW, Load, pod
from eclectus_bench.soak.sizes import REMOVED_A_SECOND, Attack, Sizes
from eclectus_bench.soak.traffic import paced
from eclectus_e2e.testbed.kubelet.api import MERGE

NAMESPACE = "attacker"
SERVICES, PODS = (f"/api/v1/namespaces/{NAMESPACE}/{kind}" for kind in ("services", "pods"))
CREATED_WITHIN = 0.9  # of the time of an attack
SCHEDULER, NOBODY = "eclectus", "nobody"  # schedulerName of its pods: one that runs, and one that does not
PATCH_SECONDS = 3.0  # between changes of a Service, each of which concerns all pods of the namespace
LABELS = {f"l{at:02}": "v" for at in range(40)}
TERMS_OF_POD = 8  # with a namespaceSelector, as many as one pod may have
TOLERATIONS = 700  # of a pod: nearly as many as count of one
LARGE_BYTES = 1_300_000  # of a pod; the API server takes 1.5 MiB
TOO_MUCH = "3999m"  # of a node that has 4 cores, and pods

Object = dict[str, Any]


async def attack(load: Load, sizes: Sizes) -> None:
    """Wait for the time of each attack, create and change what it has, and remove that when its time is over.

    Raises ApiError, or an ExceptionGroup of some, where a request is rejected.
    """
    began = time.monotonic()
    for each in sizes.attacks:
        begin, end = (began + at for at in each.attack)
        created = list[str]()
        for after, method, path, body in requests(sizes, each):
            await asyncio.sleep(begin + after - time.monotonic())
            if time.monotonic() > end:
                break
            if method == "PATCH":
                await load.api.request(method, path, body, MERGE)
            else:
                await load.api.request(method, path, body)
                created.append(f"{path}/{body['metadata']['name']}")
        await asyncio.sleep(end - time.monotonic())
        await _remove(load, created)


async def _remove(load: Load, paths: Sequence[str]) -> None:
    """Remove what an attack has created, at a rate at which nobody waits for it: this is no part of one."""
    remaining = iter(paths)
    async for _ in paced(repeat(1 / REMOVED_A_SECOND, len(paths))):
        await load.api.request("DELETE", next(remaining), DELETE_NOW)


def requests(sizes: Sizes, of: Attack) -> list[tuple[float, str, str, Object]]:
    """The requests of an attack by time: seconds after its begin, method, path, body.

    All kinds come mixed, over nearly all of the time: what it costs others that an API server takes fifty
    megabytes within two seconds is not the question.
    """
    rng, seconds = random.Random(2), of.attack[1] - of.attack[0]
    first, *others = ((SERVICES, _service(at, rng)) for at in range(sizes.attackers * 2))
    others += ((PODS, each) for each in pods(sizes, SCHEDULER if of.served else NOBODY))
    rng.shuffle(others)
    gap = seconds * CREATED_WITHIN / (1 + len(others))
    created = ((number * gap, "POST", path, body) for number, (path, body) in enumerate((first, *others)))
    changed = (
        (number * PATCH_SECONDS, "PATCH", f"{SERVICES}/s0", {"spec": {"selector": _changing(number)}})
        for number in range(1, int(seconds / PATCH_SECONDS))
    )
    return sorted(chain(created, changed), key=itemgetter(0))


def _changing(number: int) -> dict[str, str | None]:
    return {"l00": "v", "l01": "v" if number % 2 else None}


def _service(number: int, rng: random.Random) -> Object:
    """A headless Service that selects half of the labels: no two select alike."""
    selector = dict.fromkeys(rng.sample(sorted(LABELS), len(LABELS) // 2), "v")
    spec = {"clusterIP": "None", "selector": selector, "ports": [{"port": 80}]}
    return {"kind": "Service", "metadata": {"name": f"s{number}"}, "spec": spec}


def pods(sizes: Sizes, scheduler: str) -> Iterator[Object]:
    """Pods without room: such as many Services select, such with terms about all pods, and large ones."""
    many = sizes.attackers
    yield from (_labelled(f"labelled-{number}", scheduler) for number in range(many))
    yield from (_with_terms(f"terms-{number}", number, scheduler) for number in range(many // 2))
    for number in range(many // 25):
        gated = pod(f"gated-{number}", scheduler, TOO_MUCH)
        gated["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
        gated["metadata"]["annotations"] = {"note": "<" * 200_000}
        gated["spec"]["containers"][0]["env"] = [{"name": "E", "value": "<" * (LARGE_BYTES - 200_000)}]
        yield gated
        tolerant = pod(f"tolerant-{number}", scheduler, TOO_MUCH)
        keys = (f"a{number}-{at}" for at in range(TOLERATIONS))
        tolerant["spec"]["tolerations"] = [{"key": key, "operator": "Exists"} for key in keys]
        yield tolerant


def _labelled(name: str, scheduler: str) -> Object:
    """A pod with all labels and one of its own: those with equal labels are compared with Services once."""
    found = pod(name, scheduler, TOO_MUCH)
    found["metadata"]["labels"] = {**LABELS, "own": name}
    return found


def _with_terms(name: str, number: int, scheduler: str) -> Object:
    """A pod that keeps out of the domains of other tenants' pods, by terms that no other pod has."""
    found = _labelled(name, scheduler)
    selectors = ({"matchLabels": {"app": f"none-{number}-{at}"}} for at in range(TERMS_OF_POD))
    terms = [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": each, "namespaceSelector": {}}
        for each in selectors
    ]
    found["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return found
