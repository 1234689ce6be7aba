"""The actions with which a Place policy answers pending tasks, and a Relieve policy refused ones.

And what an Order may answer: `Wait` keeps tasks from being offered, `Nominate` keeps a node free for one.
"""

from math import inf

from msgspec import Struct

from eclectus.accounts.reclaim import Entitlement
from eclectus.maths.min_cost_flow import FlowProblem, Route
from eclectus.model.events import SolveStatus
from eclectus.model.objects import NO_GRANT, Grant, Task


class Reason(Struct, frozen=True, gc=False):
    """Why the tasks of a class are not placed."""

    message: str = ""  # empty: the engine writes kube-scheduler's FitError


NO_REASON = Reason()


class Wait(Struct, frozen=True, gc=False):
    """Why, until when and for which node tasks wait although a node may have room for them.

    An Order answers with it instead of a rank, and then nothing of the group is offered; it must give a
    reason, which users read on the pods. A Place policy answers with it in a Defer. The policy is asked again
    at `until`, and before when something has changed that its answer depends on.
    """

    reason: Reason = NO_REASON  # empty: the engine writes what it knows of the wait
    until: float = inf  # seconds, in the future; inf: only when something has changed
    row: int | None = None  # of the busy node for which the task waits; None for none in particular


class Bind(Struct, frozen=True, gc=False):
    """Bind the task to this node now. The task must fit there now.

    `grant`: without devices the engine chooses the fullest that have room, for a task that requests some.
    """

    task: Task
    row: int
    grant: Grant = NO_GRANT


class Defer(Struct, frozen=True, gc=False):
    """The task waits until the policy is asked about it again.

    That is in the next scheduling cycle or, of a policy that says so (`PlaceTraits.defers_until_change`),
    when something has changed that its answer depends on. Where the wait names no node, nothing is tentative
    for the task anywhere.
    """

    task: Task
    wait: Wait


class Enqueue(Struct, frozen=True, gc=False):
    """The task joins the queue of this node and stays there until the Line policy dispatches it.

    The node must have a slot for the class beside its services: services do not end, so a queue behind them
    would never move.
    """

    task: Task
    row: int


class ReserveMany(Struct, frozen=True, gc=False):
    """Tasks of one class wait behind one reservation in the queue of each of these nodes.

    The node that reaches its reservation first starts the next of the tasks (late binding: Sparrow, 2013).
    When all have started, the reservations left over are void. A row given twice gets two reservations.
    `sticky`: a reservation stays until all tasks have started, instead of being used up by the first.
    """

    tasks: tuple[Task, ...]
    rows: tuple[int, ...]
    sticky: bool = False


class Unschedulable(Struct, frozen=True, gc=False):
    """The task gets no node now, nor does any task of its class and profile until the cluster changes."""

    task: Task
    reason: Reason = Reason()


class Preempt(Struct, frozen=True, gc=False):
    """End pods on this node, gracefully, for an offered task, which is nominated there.

    It is bound when the room is free, and waits until then. The work of each of them must be able to begin
    anew (`restartable`), none may have a higher priority than the task or be in another pool, and no
    PodDisruptionBudget be violated.
    """

    task: Task
    row: int
    victims: tuple[Task, ...]
    wait: Wait  # until it is asked about again, if it is not bound before


class Ask(Struct, frozen=True, gc=False):
    """Have this problem solved outside of the step; the answer is `View.solution` in a later one.

    A policy has one problem at a time: to ask again voids the question before, and its answer.
    """

    problem: FlowProblem
    within: float  # seconds, after which nobody waits for the answer any more


class Solution(Struct, frozen=True, gc=False):
    """The answer to an Ask, about the cluster as it was then: what of it still holds is for who asked to say.

    `routes`: how many units go from which node by way of which other, the last before their end.
    """

    status: SolveStatus
    routes: tuple[Route, ...] = ()


class Nominate(Struct, frozen=True, gc=False):
    """Hold room for a refused task on this node and nominate it there; it is bound when the room is free.

    The node must be feasible for the task, and the task not be nominated anywhere.
    """

    task: Task
    row: int


class Evict(Struct, frozen=True, gc=False):
    """Delete a pod, gracefully, to make room for a task that is nominated to the pod's node.

    The pod must be bound there and have a lower priority than the task; or be in another pool, from which the
    task's pool takes room back. Then other pods of its gang may follow, on whatever nodes.
    """

    victim: Task
    task: Task
    claim: Entitlement | None = None  # by which its pool takes the room; None: by priority


class WouldReclaim(Struct, frozen=True, gc=False):
    """These pods would be evicted on this node for the task; but the pool that claims room only tries it out.

    Nothing is held for the task and nobody evicted. It is said on the pod.
    """

    task: Task
    row: int
    victims: tuple[Task, ...]
    claim: Entitlement


Action = Bind | Defer | Enqueue | ReserveMany | Unschedulable | Preempt | Ask
ReliefAction = Nominate | Evict | WouldReclaim
