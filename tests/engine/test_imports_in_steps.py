"""No step imports a module: an import on first use stops the loop, often for tens of milliseconds."""

from __future__ import annotations

import subprocess
import sys

LIFE_OF_PODS = """
import sys
from msgspec.structs import replace
from eclectus.engine.engine import Engine
from eclectus.framework import Profile
from eclectus.model.commands import Bind
from eclectus.model.events import BindConfirmed, NodeGone, NodeSeen, Resumed, TaskGone, TaskSeen
from eclectus.model.objects import PodAffinityTerm, Node, Requirement, Spec, Task
from eclectus.policies.hold.none import NoHold
from eclectus.policies.line.fifo import FifoLine
from eclectus.policies.order.fifo import FifoOrder
from eclectus.policies.relieve.preemption import Preemption
from eclectus.policies.rosella import Rosella, RosellaLearn
from eclectus.policies.speculate.none import NoCopies

roles = FifoOrder(), Rosella(), FifoLine(), Preemption(), NoCopies(), NoHold()
engine = Engine([Profile("eclectus", *roles)], RosellaLearn())
imported = set(sys.modules)

def step(now, *events):
    commands = engine.step(events, now)
    if new := set(sys.modules) - imported:
        imported.update(new)
        print([type(event).__name__ for event in events], sorted(new))
    return [command for command in commands if isinstance(command, Bind)]

def task(name, cpu, **fields):
    spec = Spec((("cpu", cpu),), (cpu, 0))
    return Task("uid-" + name, "bench", name, spec=spec, workload="w", created=0.5, **fields)

zone = "topology.kubernetes.io/zone"
nodes = [Node(f"node-{at}", (("cpu", 4_000), ("pods", 110)), ((zone, f"zone-{at}"),)) for at in range(3)]
step(0.0, *map(NodeSeen, nodes), Resumed())
tasks = [task(f"pod-{at}", 1_000) for at in range(20)]
bound = []
for turn in range(20):
    now = 1.0 + turn
    binds = step(now, TaskSeen(tasks[turn]))
    for bind in binds:
        placed = next(each for each in tasks if each.uid == bind.uid)
        placed = replace(placed, node=bind.node, phase="Running", started=now)
        step(now + 0.1, BindConfirmed(bind.uid, bind.node), TaskSeen(placed))
        bound.append(placed)
    if turn % 3 == 2:
        ended = replace(bound.pop(0), phase="Succeeded", finished=now + 0.5)
        step(now + 0.5, TaskSeen(ended))
        step(now + 0.6, TaskGone(ended.uid))
step(30.0, TaskSeen(task("unplaceable", 9_000)))
step(40.0, NodeGone("node-2"))
step(50.0)
apart = (PodAffinityTerm(zone, (Requirement("app", "In", ("lonely",)),)),)
holder = task("holder", 100, node="node-0", phase="Running", started=55.0, anti_affinity_terms=apart)
step(60.0, TaskSeen(holder))
step(61.0, TaskSeen(task("lonely", 100, labels=(("app", "lonely"),))))
for minute in range(2, 5):
    step(60.0 * minute, TaskSeen(task(f"later-{minute}", 100)))
"""


def test_no_step_imports_a_module() -> None:
    """In a new process: here, other tests have imported everything."""
    run = subprocess.run([sys.executable, "-c", LIFE_OF_PODS], capture_output=True, text=True, check=True)
    assert run.stdout == ""
