"""The effects of what Place policies answer with. Every task named must have been offered in this cycle."""

from __future__ import annotations

from eclectus.cluster.devices import device_milli
from eclectus.engine.effects.checks import validate_row, validate_task
from eclectus.engine.node_dispatch import NodeDispatch
from eclectus.engine.scheduling_cycle import SchedulingCycle
from eclectus.engine.state import State
from eclectus.framework import Bind, Defer, Enqueue, Reason, ReserveMany, Unschedulable
from eclectus.model.errors import PolicyError
from eclectus.model.grant import NO_GRANT, Grant
from eclectus.model.objects import Task


class Placing:
    """Two methods for each action: `validate_…`, which changes nothing, and the one that applies it."""

    def __init__(self, state: State, node_dispatch: NodeDispatch) -> None:
        self._state, self._node_dispatch = state, node_dispatch

    # -- Place -------------------------------------------------------------------------------------

    def validate_place(self, cycle: SchedulingCycle, place: Bind) -> None:
        """The task must fit beside what the node holds, and on the devices of its grant if there are some.

        What is only planned for other waiting tasks does not count: they are planned anew if it is taken.
        """
        state, task, row, grant = self._state, place.task, place.row, place.grant
        _validate_offered(cycle, task)
        task_class = state.view.task_class(task)
        if not (
            task_class.scalars.fits_now[validate_row(state, task, row)]
            or task_class.fits_beside_held(int(row))
        ):
            raise PolicyError(f"{task} does not fit on node {state.cluster.names[row]} now")
        if grant is not NO_GRANT:
            self._validate_grant(task, row, grant)

    def _validate_grant(self, task: Task, row: int, grant: object) -> None:
        if not isinstance(grant, Grant):
            raise PolicyError(f"{grant!r} is no grant for {task}")
        devices = grant.devices
        if not isinstance(devices, tuple) or not all(isinstance(device, int) for device in devices):
            raise PolicyError(f"{devices!r} are no devices for {task}")
        cluster, requests = self._state.cluster, task.spec.requests
        if devices and (cluster.devices is None or not cluster.devices.admits(row, requests, grant)):
            name, milli = cluster.names[row], device_milli(requests)
            raise PolicyError(f"devices {devices!r} of node {name} have no room for the {milli} of {task}")

    def place(self, cycle: SchedulingCycle, place: Bind) -> None:
        """The task is bound."""
        cycle.place(place.task, int(place.row), place.grant)

    # -- Defer -------------------------------------------------------------------------------------

    def validate_defer(self, cycle: SchedulingCycle, defer: Defer) -> None:
        """The node, if it names one, must be feasible, and the end of the wait lie in the future."""
        state, task, row, until = self._state, defer.task, defer.row, defer.until
        _validate_offered(cycle, task)
        feasible = state.view.task_class(task).scalars.feasible
        if row is not None and not feasible[validate_row(state, task, row)]:
            raise PolicyError(f"node {state.cluster.names[row]} may never run {task}")
        if not until > state.now:  # nan too; a time in the past would be a busy loop
            raise PolicyError(f"{task} cannot be deferred until {until}: it is {state.now} now")

    def defer(self, cycle: SchedulingCycle, defer: Defer) -> None:
        """The task waits in its class queue, for the node if the policy names one."""
        cycle.defer(defer.task, None if defer.row is None else int(defer.row), defer.until)
        self._state.waits(defer.task)

    # -- Enqueue -----------------------------------------------------------------------------------

    def validate_enqueue(self, cycle: SchedulingCycle, enqueue: Enqueue) -> None:
        """The task may wait in the queue of this node."""
        _validate_offered(cycle, enqueue.task)
        self._validate_wait(enqueue.task, enqueue.row)

    def enqueue(self, cycle: SchedulingCycle, enqueue: Enqueue) -> None:
        """The task joins the node queue, and starts at once if it is first and fits."""
        cycle.remove(enqueue.task)
        self._node_dispatch.enqueue(enqueue.task, int(enqueue.row))
        self._state.waits(enqueue.task)

    # -- ReserveMany -------------------------------------------------------------------------------

    def validate_reserve_many(self, cycle: SchedulingCycle, reserve: ReserveMany) -> None:
        """The tasks are different ones of one class and profile and may wait in each of the node queues."""
        if not reserve.tasks or not reserve.rows:
            raise PolicyError(f"reservations need tasks and rows, not {reserve!r}")
        first = reserve.tasks[0]
        for task in reserve.tasks:
            _validate_offered(cycle, task)
            if (task.spec, task.workload, task.profile) != (first.spec, first.workload, first.profile):
                raise PolicyError(
                    f"{first} and {task} behind one reservation are not of one class and profile"
                )
        if len({task.uid for task in reserve.tasks}) < len(reserve.tasks):
            raise PolicyError(f"a task is named twice behind the reservation of {first}")
        for row in set(reserve.rows):
            self._validate_wait(first, row)

    def reserve_many(self, cycle: SchedulingCycle, reserve: ReserveMany) -> None:
        """The tasks wait behind reservations; those that are first and fit start at once."""
        for task in reserve.tasks:
            cycle.remove(task)
        rows = [int(row) for row in reserve.rows]
        state = self._state
        state.enqueue_at_nodes(state.node_queues.reserve(reserve.tasks, rows, reserve.sticky, state.now))
        for row in rows:
            self._node_dispatch.dispatch(row)
        state.waits(reserve.tasks[0])

    def _validate_wait(self, task: Task, row: int) -> None:
        state = self._state
        if not state.view.classes.cached((task.spec, task.workload)).may_wait(validate_row(state, task, row)):
            raise PolicyError(f"node {state.cluster.names[row]} may never run {task}, or services fill it")

    # -- Unschedulable -----------------------------------------------------------------------------

    def validate_unschedulable(self, cycle: SchedulingCycle, unschedulable: Unschedulable) -> None:
        """There must be a reason."""
        task, reason = unschedulable.task, unschedulable.reason
        _validate_offered(cycle, task)
        if not isinstance(reason, Reason):
            raise PolicyError(f"{reason!r} is no Reason for {task}")

    def unschedulable(self, cycle: SchedulingCycle, unschedulable: Unschedulable) -> None:
        """The task's class waits for the cluster to change."""
        cycle.mark_unschedulable(unschedulable.task, unschedulable.reason.message)


def _validate_offered(cycle: SchedulingCycle, task: object) -> None:
    task = validate_task(task)
    at_hand = cycle.offered.get(task.uid)
    if at_hand is None or (at_hand.task is not task and at_hand.task != task):
        raise PolicyError(f"{task} was not offered in this scheduling cycle, or is answered already")
