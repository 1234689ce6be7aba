"""What a learner is informed of: nodes, and what becomes of tasks."""

from functools import partial

from msgspec.structs import replace

from eclectus.engine.state import State
from eclectus.framework import Completion, Speeds
from eclectus.model.learned import LearnedNode
from eclectus.model.objects import Amounts, Task


class LearnerFeed:
    """Informs the learner of nodes, completions, arrivals, starts and departures of tasks.

    A learner that does not need an optional hook is not called for it. An exception in a learner becomes a
    Fault; it costs the learner one piece of information, and nothing else anything.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._learn = state.learn
        self._call = partial(state.guarded, state.learn)
        self._needs = state.learn.traits.needs
        self._probe_validity = state.probe_validity
        # Namespace and uid of a pod -> uid of its copy, which is on a node.
        self._copies: dict[tuple[str, str], str] = {}
        self._running: dict[str, str] = {}  # attempts of which was said that they run on -> their workload
        self._lost = set[str]()  # attempts of which was said that they would have run on

    def node_recalled(self, learned: LearnedNode) -> None:
        """What was learned of a node before, or by another process."""
        if learned.node in self._state.cluster.rows:
            self._call(self._learn.recall, replace(learned, at=min(learned.at, self._state.now)))

    def task_arrived(self, task: Task) -> None:
        """A task that ends is pending here, or was bound by another scheduler; once a task."""
        if "task arrivals" in self._needs:
            self._call(self._learn.arrived, task.workload, self._state.now)

    def task_on_node(self, task: Task) -> None:
        """The task was seen on its node and is counted there."""
        if task.copy_of:
            self._copies[task.namespace, task.copy_of] = task.uid
        if task.notional_requests or task.node in self._probe_validity.probes:
            for uid in self._probe_validity.observe(task):
                self._task_left(uid)
        if "start times" not in self._needs or task.phase != "Running" or task.spec.long_running:
            return
        row = self._state.cluster.rows.get(task.node)
        if row is not None and task.uid not in self._probe_validity:
            self._call(self._learn.started, task.uid, row, task.workload, self._state.now, _requests(task))

    def task_ended(self, task: Task) -> None:
        """The task has ended. Its time is a sample unless it failed or was an invalid probe."""
        if self._running:
            self._runs_no_more(task.uid)
        is_sample = task.phase == "Succeeded" and task.uid not in self._probe_validity
        if is_sample and task.started is not None and task.finished is not None:
            state, seconds = self._state, task.finished - task.started
            row = state.cluster.rows.get(state.placed.node_of(task.uid))
            if row is not None and seconds > 0:
                requests, is_probe = _requests(task), task.spec.probe
                bound_at = state.placed.bound_at(task.uid)
                turnaround = None if bound_at is None or is_probe else state.now - bound_at - seconds
                at_data = seconds
                if task.inputs:
                    at_data /= state.held.times(task, row)
                    if not is_probe:
                        state.held.ended(task, row, seconds, partial(self._relative_speed, task, row))
                done = Completion(
                    row, task.workload, at_data, state.now, requests, is_probe, task.uid, turnaround
                )
                self._call(self._learn.observe, done)
                if not is_probe:
                    state.service_times.observe(task.workload, seconds)
            if self._copies:
                self._overtake(task)

    def _relative_speed(self, task: Task, row: int) -> float:
        """How fast the node is for such work, relative to the mean; 1 where nodes are not known to differ."""
        speeds: Speeds | None = self._call(self._learn.known_speeds, task.workload)
        if speeds is None or not speeds.differ or row >= len(speeds.rate) or not speeds.rate[row]:
            return 1.0
        return float(speeds.rate[row] / speeds.rate[speeds.rate > 0.0].mean())

    def _overtake(self, task: Task) -> None:
        """Another attempt of the work that is done now would have run on: for how long is not known."""
        state, other = self._state, task.copy_of or self._copies.get((task.namespace, task.uid), "")
        run = state.placed.task(other) if other else None
        if run is not None and (run.namespace, run.workload) == (task.namespace, task.workload):
            self._lose(run)

    def attempt_runs(self, task: Task) -> bool:
        """A task that may have a copy has not ended yet; whether that counts in what is learned."""
        run = self._unfinished(task)
        if run is None or task.uid in self._lost:
            return False
        if self._running.get(task.uid, task.workload) != task.workload:
            self._runs_no_more(task.uid)  # its class was changed while it ran
        self._running[task.uid] = task.workload
        return bool(self._call(self._learn.runs_on, run))

    def attempt_deleted(self, task: Task) -> None:
        """A task that may have a copy, or is one, is ended before its work is done."""
        run = self._state.placed.task(task.uid)
        if run is not None:
            self._lose(run)

    def _runs_no_more(self, uid: str) -> None:
        workload = self._running.pop(uid, None)
        if workload is not None:
            self._call(self._learn.runs_no_more, uid, workload)

    def _lose(self, task: Task) -> None:
        """The task would have run on: said once of each."""
        run = self._unfinished(task)
        if run is not None and task.uid not in self._lost:
            self._lost.add(task.uid)
            self._runs_no_more(task.uid)
            self._call(self._learn.overtaken, run)

    def _unfinished(self, task: Task) -> Completion | None:
        """Its run so far, where it runs."""
        state, row, began = self._state, self._state.cluster.rows.get(task.node), task.started
        if row is None or task.phase != "Running" or began is None or began >= state.now:
            return None
        attempt = None if state.attempts is None else state.attempts.running.get(task.uid)
        times = state.held.times(task, row) if task.inputs else 1.0
        return Completion(
            row,
            task.workload,
            (state.now - began) / times,
            state.now,
            _requests(task),
            uid=task.uid,
            progress=task.progress if attempt is None else attempt.progress,
        )

    def task_gone(self, task: Task | None, uid: str) -> None:
        """The task has ended or was deleted; as it was on its node, None if it was on none."""
        if task is not None and task.copy_of and self._copies.get((task.namespace, task.copy_of)) == uid:
            del self._copies[task.namespace, task.copy_of]
        if self._lost or self._running:  # both are empty where nothing may have a copy
            self._lost.discard(uid)
            self._runs_no_more(uid)
        self._probe_validity.remove(uid)
        self._task_left(uid)

    def _task_left(self, uid: str) -> None:
        if "task ends" in self._needs:
            self._call(self._learn.left, uid, self._state.now)


def _requests(task: Task) -> Amounts:
    """What distinguishes tasks of one workload; a probe with zero requests does the work of a task."""
    return task.notional_requests or task.spec.requests
