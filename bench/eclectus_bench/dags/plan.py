"""What is run: graphs of steps, the same for every contestant, and the nodes for their pods."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from eclectus.api.names import API_VERSION, WORK_SECONDS
from eclectus_e2e.testbed.kubelet.nodes import NodeSpec

Object = dict[str, Any]
WIDTH = 3  # steps side by side in a diamond
WORK_SECONDS_OF_A_STEP = (
    0.1  # the engine is measured, so no more than the kubelet needs to show the pod running
)
ARGO_API_VERSION = "argoproj.io/v1alpha1"
ENTRY, LEAF = "graph", "step"  # templates of a Workflow
# Argo asks a registry for the entry point of a container without a command.
CONTAINER = {
    "name": "main",
    "image": "registry.k8s.io/pause:3.10",
    "command": ["/pause"],
    "resources": {"requests": {"cpu": "50m", "memory": "16Mi"}},
}
_WORK = {"annotations": {WORK_SECONDS: f"{WORK_SECONDS_OF_A_STEP:g}"}}


@dataclass(frozen=True)
class Step:
    """One container, which runs when the steps that it is `after` have succeeded."""

    name: str
    after: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sizes:
    """How much is run: in each run so many graphs, all submitted at once."""

    graphs: int
    diamonds: int  # of each graph, one after the other
    nodes: int
    pairs: int  # of runs, one by each contestant

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of one graph."""
        return tuple(diamonds(self.diamonds))

    def node_specs(self) -> list[NodeSpec]:
        """Nodes that are all alike, with room for all that can run at a time."""
        return [
            NodeSpec(name=f"node-{number:02d}", group="all", speed=1.0) for number in range(1, self.nodes + 1)
        ]


FULL = Sizes(graphs=100, diamonds=2, nodes=30, pairs=5)
QUICK = Sizes(graphs=20, diamonds=2, nodes=6, pairs=1)


def diamonds(count: int) -> Iterator[Step]:
    """A step, then WIDTH side by side and one that waits for these, and so on."""
    last = "begin"
    yield Step(last)
    for number in range(1, count + 1):
        sides = tuple(f"side-{number}-{place}" for place in range(1, WIDTH + 1))
        yield from (Step(name, (last,)) for name in sides)
        last = f"join-{number}"
        yield Step(last, sides)


def dag_job(name: str, steps: Sequence[Step]) -> Object:
    """A DagJob with a stage of one task for each step."""
    template = {"metadata": _WORK, "spec": {"containers": [CONTAINER]}}
    stages = [{"name": each.name, "dependsOn": list(each.after), "template": template} for each in steps]
    return {
        "apiVersion": API_VERSION,
        "kind": "DagJob",
        "metadata": {"name": name},
        "spec": {"stages": stages},
    }


def workflow(name: str, steps: Sequence[Step]) -> Object:
    """A Workflow with a task of its graph for each step."""
    tasks = [{"name": each.name, "template": LEAF, "dependencies": list(each.after)} for each in steps]
    templates = [
        {"name": ENTRY, "dag": {"tasks": tasks}},
        {"name": LEAF, "metadata": _WORK, "container": CONTAINER},
    ]
    return {
        "apiVersion": ARGO_API_VERSION,
        "kind": "Workflow",
        "metadata": {"name": name},
        "spec": {"entrypoint": ENTRY, "templates": templates},
    }
