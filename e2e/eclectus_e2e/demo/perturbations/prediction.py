"""How long learning, recovery and the verdict on a frozen node should take, from settings alone. Pure.

Learning after a change (rosella.md 5.5: learning time + backlog / spare capacity), D samples being what the
alarm takes (demo/alarm.py):

    learning = t (1 + D / c)                             t: seconds of the longest work on the slowest node
                                                         that is believed fast, c: its slots
    recovery = learning + learning * a / (1 - a) = learning / (1 - a)

t until the first task begun after the change has ended, then D more at c a time; and at worst all that comes
meanwhile waits, and is worked off with what the load a leaves.

Silence (maths/liveness.py of the scheduler): j tasks that stand still bound a node's speed by n^(x/j) / y,
y being how many times their expected seconds they have run. It counts as dead when that is below the
cut-off's share of its speed s, c0 (1 - a) m / s, m being the mean speed. The longest tasks take longest to
say so, and the biggest are fewest, so with w the longest work, and j the biggest tasks that fit,

    cut-off = n^(x/j) w / (c0 (1 - a) m)
"""

from dataclasses import dataclass
from math import exp
from statistics import mean

from eclectus.maths.window import unlikelihood
from eclectus.policies.rosella import RosellaLearn
from eclectus_e2e.demo.alarm import samples_until_alarm
from eclectus_e2e.demo.perturbations.plan import Layout, Settings
from eclectus_e2e.demo.workload.mixed import SPEEDS
from eclectus_e2e.testbed.kubelet.quantities import amount


@dataclass(frozen=True)
class Prediction:
    """Seconds."""

    learning: float
    recovery: float
    cut_off: float


def predict(plan: Settings, cast: Layout) -> Prediction:
    """What the settings promise of this act."""
    learn, classes = RosellaLearn(**plan.learn), plan.mix.classes  # type: ignore[arg-type]
    work, biggest = max(kind.work_seconds for kind in classes), max(kind.cpu_millicores for kind in classes)
    cores = amount("cpu", cast.nodes[0].allocatable["cpu"])  # all nodes are of one size
    slots = cores / sum(kind.share * kind.cpu_millicores for kind in classes)
    learning = work / SPEEDS[0] * (1 + samples_until_alarm(learn, len(classes)) / slots)
    silence = exp(unlikelihood(len(cast.nodes), learn.certainty) / (cores // biggest))
    limit = learn.spare_share * (1 - plan.load) * mean(node.speed for node in cast.workers)
    return Prediction(learning, learning / (1 - plan.load), silence * work / limit)
