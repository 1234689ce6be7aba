"""What a tenant with the role `edit` in one namespace can do: objects cheap to create and dear to schedule.

The API server accepts each of them. By each kind one tenant once made the steps of the scheduler long, or its
memory large, for all others; what bounds them is in docs/security.md.
"""

import asyncio
import random
from collections.abc import Iterator
from itertools import chain, count, repeat
from typing import Any

from eclectus_bench.load import Load, pod
from eclectus_bench.soak.sizes import Sizes
from eclectus_bench.soak.traffic import paced
from eclectus_e2e.testbed.kubelet.api import MERGE

NAMESPACE = "attacker"
SCHEDULER, NOBODY = "eclectus", "nobody"  # schedulerName of its pods: one that runs, and one that does not
PATCH_SECONDS = 3.0  # between changes of a Service, each of which concerns all pods of the namespace
LABELS = {f"l{at:02}": "v" for at in range(40)}
TERMS_OF_POD = 8  # with a namespaceSelector, as many as one pod may have
TOLERATIONS = 700  # of a pod: nearly as many as count of one
LARGE_BYTES = 1_300_000  # of a pod; the API server takes 1.5 MiB
TOO_MUCH = "3999m"  # of a node that has 4 cores, and pods

Object = dict[str, Any]


async def attack(load: Load, sizes: Sizes) -> None:
    """Wait until it is time, create everything, and then change a Service on and on until cancelled.

    As many objects a second as pods of others arrive: what the API server costs others is not the question.
    """
    await asyncio.sleep(sizes.attack_from)
    rng, base = random.Random(2), f"/api/v1/namespaces/{NAMESPACE}"
    services = ((f"{base}/services", _service(at, rng)) for at in range(sizes.attackers * 2))
    objects = chain(services, ((f"{base}/pods", each) for each in pods(sizes)))
    async for _ in paced(repeat(1 / sizes.rate)):
        path, body = next(objects, ("", None))
        if body is None:
            break
        await load.api.request("POST", path, body)
    for number in count():
        selector = {"l00": "v", "l01": "v" if number % 2 else None}
        await load.api.request("PATCH", f"{base}/services/s0", {"spec": {"selector": selector}}, MERGE)
        await asyncio.sleep(PATCH_SECONDS)


def _service(number: int, rng: random.Random) -> Object:
    """A headless Service that selects half of the labels: no two select alike."""
    selector = dict.fromkeys(rng.sample(sorted(LABELS), len(LABELS) // 2), "v")
    spec = {"clusterIP": "None", "selector": selector, "ports": [{"port": 80}]}
    return {"kind": "Service", "metadata": {"name": f"s{number}"}, "spec": spec}


def pods(sizes: Sizes) -> Iterator[Object]:
    """Pods without room: such as many Services select, such with terms about all pods, and large ones."""
    many, scheduler = sizes.attackers, NOBODY if sizes.unserved else SCHEDULER
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
