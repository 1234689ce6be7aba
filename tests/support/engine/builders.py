"""Tasks, nodes, clusters and engines in one line: `make_task("a", cpu=2)`, `make_node("n", cpu=8)`."""

from __future__ import annotations

from typing import Any

import numpy as np

from eclectus.cluster.nodes import Cluster
from eclectus.engine.engine import Engine
from eclectus.framework import Completion, Learn, LearnedCell, Place, Profile, ProfileSettings, Speeds
from eclectus.model.objects import Amounts, Node, Spec, Task
from eclectus.policies.hold.none import NoHold
from eclectus.policies.learn.none import Unlearned
from eclectus.policies.line.fifo import FifoLine
from eclectus.policies.order.fifo import FifoOrder
from eclectus.policies.relieve.none import NoRelief
from eclectus.policies.rosella import Rosella
from eclectus.policies.speculate.none import NoCopies

GIB = 2**30


def amounts(cpu: float = 0, memory: float = 0, **others: int) -> Amounts:
    """Amounts in the smallest units, from cores and GiB; other resources as given, with `_` for `-`."""
    named = {"cpu": int(cpu * 1000), "memory": int(memory * GIB)}
    named |= {name.replace("_", "-"): amount for name, amount in others.items()}
    return tuple(sorted((name, amount) for name, amount in named.items() if amount))


def make_spec(cpu: float = 1, memory: float = 0, gpus: int = 0, device_milli: int = 0, **fields: Any) -> Spec:
    """A spec that requests this many cores, GiB, `gpu`s and thousandths of shared devices."""
    score = (int(cpu * 1000) or 100, int(memory * GIB) or 200 * 2**20)
    asked = amounts(cpu, memory, gpu=gpus, gpu_milli=device_milli)
    return Spec(requests=asked, score_requests=score, **fields)


def make_task(name: str = "a", cpu: float = 1, *, spec: Spec | None = None, **fields: Any) -> Task:
    """A pending pod of this scheduler. Keyword arguments are fields of Spec or of Task."""
    of_spec = {key: fields.pop(key) for key in list(fields) if key in _SPEC_FIELDS}
    spec = make_spec(cpu, **of_spec) if spec is None else spec
    return Task(uid=f"uid-{name}", namespace="default", name=name, spec=spec, **fields)


_SPEC_FIELDS = {*Spec.__struct_fields__, "memory", "gpus", "device_milli"} - {"requests", "score_requests"}


def make_node(name: str = "n", cpu: float = 4, memory: float = 64, pods: int = 110, **fields: Any) -> Node:
    """A node with this many cores, GiB, `gpus` and shared `devices`; labels may be a dict."""
    fields["labels"] = tuple(sorted(dict(fields.get("labels", ())).items()))
    gpus, devices = fields.pop("gpus", 0), fields.pop("devices", 0)
    offered = amounts(cpu, memory, gpu=gpus, gpu_milli=1000 * devices, pods=pods)
    return Node(name=name, allocatable=offered, **fields)


class ExactSpeeds(Learn):
    """A learner with known rates: node name -> tasks a second in one slot."""

    def __init__(self, rates: dict[str, float], otherwise: float = 1.0) -> None:
        self._rates, self._otherwise = rates, otherwise
        self._rate, self._epoch = np.ones(0), 0
        self.seen: list[Completion] = []

    def add_node(self, row: int, node: str, capacity: int) -> None:
        self._rate = np.pad(self._rate, (0, capacity - len(self._rate)), constant_values=self._otherwise)
        self._rate[row] = self._rates.get(node, self._otherwise)
        self._epoch += 1

    def remove_node(self, row: int) -> None:
        self._rate[row] = self._otherwise

    def observe(self, done: Completion) -> None:
        self.seen.append(done)

    def speeds(self, workload: str) -> Speeds:
        del workload
        return Speeds(self._rate, max([self._otherwise, *self._rates.values()]), self._epoch)

    def learned_cells(self, after: str = "") -> Any:
        return iter(LearnedCell(node, "", rate, 1) for node, rate in self._rates.items())


def make_profile(place: Place | None = None, name: str = "eclectus", **roles: Any) -> Profile:
    """A profile with fifo order and node queues, and the given Place policy (default rosella)."""
    fields = {"order": FifoOrder(), "line": FifoLine(), "place": place or Rosella(), "relieve": NoRelief()}
    fields |= {"speculate": NoCopies(), "hold": NoHold()}
    settings = {key: roles.pop(key) for key in list(roles) if key in ProfileSettings.__dataclass_fields__}
    return Profile(name, **fields | roles, settings=ProfileSettings(**settings))


def make_engine(
    place: Place | None = None, learn: Learn | None = None, seed: int = 0, **roles: Any
) -> Engine:
    """An engine with one profile; it has not received Resumed yet."""
    return Engine([make_profile(place, **roles)], learn or Unlearned(), seed)


def make_cluster(*nodes: Node) -> Cluster:
    """A cluster of these nodes."""
    cluster = Cluster()
    for node in nodes:
        cluster.set_node(node)
    return cluster
