"""Several dispatchers with stale views of the queues: `dispatchers: {count: 4, age: 1s}`.

Each dispatcher is a profile of one engine with a policy of its own; jobs go to them in turn. With `age` all
dispatchers see the queues as they were at the last multiple of it; with `localCorrection` a dispatcher's view
also includes what it has placed itself since then. A policy gets an ordinary view and cannot tell.

If a node that seems to have room has none any more, the task joins the node queue.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import floor

from msgspec.structs import replace
from typing_extensions import override

from eclectus import framework
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.task_class import ClassCache
from eclectus.model.objects import Node, Task
from eclectus.model.settings import setting


@dataclass(frozen=True)
class Dispatchers:
    """The number of dispatchers, and how stale their views are."""

    count: int = setting(1, "number of dispatchers, which get jobs in turn", least=1, most=1000)
    age: float = setting(
        0.0, "interval at which the view of the queues is renewed; 0: always fresh", unit="s", least=0
    )
    local_correction: bool = setting(True, "add to the stale view what the dispatcher has placed itself")

    def names(self, profile: str) -> tuple[str, ...]:
        """The schedulerNames that jobs carry, in turn."""
        return (profile,) if self.count == 1 else tuple(f"{profile}-{at}" for at in range(self.count))

    def profiles(self, profiles: Sequence[framework.Profile]) -> tuple[framework.Profile, ...]:
        """The same profiles, with stale views if `age` is set."""
        if not self.age:
            return tuple(profiles)
        return tuple(
            replace(each, place=StaleView(each.place, self.age, self.local_correction)) for each in profiles
        )


class StaleView(framework.Place):
    """Runs a policy on a view of the queues as they were some time ago."""

    def __init__(self, policy: framework.Place, age_seconds: float, corrects: bool) -> None:
        self._policy = policy
        self._age = age_seconds
        self._corrects = corrects
        self._cluster = Cluster()
        self._classes = ClassCache(self._cluster)
        self._renew_at = 0.0
        self._shape = -1  # of the truth: how far its change log was when the nodes were copied

    @property
    @override
    def traits(self) -> framework.PlaceTraits:
        return framework.PlaceTraits(needs=self._policy.traits.needs)

    @override
    def counted_by(self, task: Task) -> str:
        return self._policy.counted_by(task)

    def place(self, view: framework.View, tasks: framework.PendingTasks) -> Iterator[framework.Action]:
        """The actions of the policy, changed where they are no longer possible."""
        for chosen in self._policy.place(self._stale_view(view), tasks):
            action: framework.Action = chosen
            if isinstance(chosen, framework.Bind):
                task, row = chosen.task, chosen.row
                task_class = view.task_class(task)
                if not task_class.fits_now[row]:
                    may_wait = task_class.may_wait(row)
                    action = framework.Enqueue(task, row) if may_wait else framework.Unschedulable(task)
            if self._corrects and isinstance(action, framework.Bind | framework.Enqueue):
                self._cluster.add_tentative(action.row, action.task.spec.requests)
            yield action

    def _stale_view(self, truth: framework.View) -> framework.View:
        """The view of this step, with nodes, classes and amounts as they were when they were last renewed."""
        if self._shape != truth.cluster.shape.head:
            self._cluster = _same_nodes(truth.cluster)
            self._classes = ClassCache(self._cluster)
            self._shape, self._renew_at = truth.cluster.shape.head, truth.now
        if truth.now >= self._renew_at:
            self._cluster.copy_amounts(truth.cluster)
            self._renew_at = (floor(truth.now / self._age) + 1) * self._age
        self._classes.begin_cycle()
        needs_shares = "shares" in self._policy.traits.needs
        shares = {id(self._policy): truth.shares(self)} if needs_shares else {}
        return replace(truth, cluster=self._cluster, classes=self._classes, shares_by_policy=shares)


def _same_nodes(truth: Cluster) -> Cluster:
    """A cluster with the same nodes in the same rows and the same resource columns."""
    same = Cluster(truth.capacity)
    same.open_columns(truth.columns)
    for row, name in enumerate(truth.names):
        same.set_node(truth.node(name) or Node(f"hole {row}"))
    for row, name in enumerate(truth.names):
        if not name:
            same.drop_node(f"hole {row}")
    return same
