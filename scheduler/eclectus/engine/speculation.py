"""Asks Speculate policies which running pods are late, at most once a second, and marks those worth a copy.

Whether or not pods wait; but a pool of which a first attempt waits gets no copies: room that is left is for
that. A mark is a condition on the pod (model/commands.py), by which the operator makes the copy: so it is a
level, and a restart of either loses nothing. Of a pod of a Job it may say that the pod is to be ended, so
that the Job makes another: once for each task of the Job. It is taken back when the pod is not late any more
and has no copy yet, or when its copy is gone, so that no second one is made.

Why a pod that is late gets no copy, `RunningAttempt.refusal`, is for people and metrics.
"""

from collections.abc import Iterable
from math import inf

from msgspec.structs import replace

from eclectus.engine.attempts import Attempts, RunningAttempt
from eclectus.engine.learner_feed import LearnerFeed
from eclectus.engine.state import State
from eclectus.framework import SpeculateTraits, Straggler
from eclectus.maths.stragglers import copies_help, copies_most, copies_of_job_most
from eclectus.model.commands import StragglingReason
from eclectus.model.objects import Task

ASK_SECONDS = 1.0  # between two questions, at least
LOOKS_MOST = 256  # attempts that are looked at in one of them, of all namespaces in turn
MARKS_MOST = 32  # pods that are marked in one: each is a write
WRITE_AGAIN_SECONDS = 30.0  # after which a mark that is not seen on its pod is written again


class Speculation:
    """What is late, and what is done about it."""

    def __init__(self, state: State, attempts: Attempts, learner: LearnerFeed) -> None:
        self._state = state
        self._attempts = attempts
        self._learner = learner
        self._asked_at = -inf

    @property
    def next_due(self) -> float:
        """When to ask next, seconds; inf while no pod that has opted in runs."""
        return max(self._attempts.due.next_due(), self._asked_at + ASK_SECONDS)

    def ask(self) -> None:
        """Look at the attempts that are due; those that are late get marks, as far as bounds allow."""
        state, attempts = self._state, self._attempts
        self._asked_at = attempts.now = state.now
        late = list[tuple[Straggler, RunningAttempt]]()
        for uid in attempts.due.take(state.now, LOOKS_MOST):
            attempt = attempts.running[uid]
            attempt.row = state.cluster.rows.get(attempt.task.node, -1)
            straggler = self._judge(attempt)
            attempt.teaches = self._learner.attempt_runs(attempt.task)
            if straggler is not None:
                late.append((straggler, attempt))
            attempts.look_again(attempt)
        if late:
            self._mark(late)

    def _judge(self, attempt: RunningAttempt) -> Straggler | None:
        """Whether it is late and not marked yet; a mark that does not hold any more is taken back."""
        state, attempts, uid = self._state, self._attempts, attempt.task.uid
        profile = state.profiles.get(attempt.task.profile)
        if profile is None or attempt.row < 0 or not profile.speculate.traits.copies:
            return None
        if attempts.copy_of(attempt.task) is not None:
            return None
        if attempts.has_had_copy(uid):
            if uid in attempts.marks:
                self._take_back(attempt, "CopyGone", "its copy is gone, and no second one is made")
            return None
        if not attempt.teaches:
            task_class = state.view.task_class(attempt.task)
            attempt.usual_rate = state.view.speeds(task_class).rate.item(attempt.row)
        straggler = state.guarded(profile.speculate, profile.speculate.late, state.view, attempt)
        if straggler is not None and straggler.restart and attempts.was_restarted(attempt.task):
            straggler = None
        mark = attempts.marks.get(uid)
        if straggler is None:
            attempt.refusal = ""
            if mark is not None:
                self._take_back(attempt, "NoLongerLate", "it is expected to end as soon as a copy would")
            return None
        if mark is not None and (attempt.task.straggling or state.now < mark.at + WRITE_AGAIN_SECONDS):
            return None
        return straggler

    def _mark(self, late: Iterable[tuple[Straggler, RunningAttempt]]) -> None:
        """Those with the most time left first."""
        attempts, marked = self._attempts, 0
        waiting = self._pools_that_wait()
        for straggler, attempt in sorted(late, key=lambda each: (-each[0].left, each[1].task.uid)):
            uid = attempt.task.uid
            traits = self._state.profiles[attempt.task.profile].speculate.traits
            refusal = "" if uid in attempts.marks else self._refusal(attempt.task, traits, waiting)
            if refusal and refusal != attempt.refusal:
                self._state.counters.copies.refused[refusal] += 1
            attempt.refusal = refusal
            if refusal or marked == MARKS_MOST:
                attempts.due.set(attempt.task.namespace, uid, self._state.now + 2 * ASK_SECONDS)
                continue
            marked += 1
            attempts.mark(attempt, straggler)
            other = "a new pod" if straggler.restart else "a copy"
            message = (
                f"expected to need {straggler.left:.0f} s more, {other} {straggler.elsewhere:.0f} s: "
                f"{straggler.why}"
            )
            reason: StragglingReason = "WorthRestarting" if straggler.restart else "ExpectedToEndLate"
            self._state.mark_straggling(attempt.task, reason, message)

    def _refusal(self, task: Task, traits: SpeculateTraits, waiting: set[tuple[str, str]]) -> str:
        """Why it gets no copy although it is late; empty if it gets one."""
        attempts = self._attempts
        if (task.profile, task.pool) in waiting:
            return "firstAttemptsWait"
        if self._state.has_pools and self._state.pools.limit_on(replace(task, uid="")) is not None:
            return "poolLimit"
        if attempts.marked_of_pool(task) >= copies_most(attempts.slots(task), traits.pool_share):
            return "poolCopies"
        most = copies_of_job_most(
            attempts.running_of_job(task),
            traits.job_share,
            least=traits.job_least,
            slots=attempts.slots(task),
            slots_share=traits.slots_share,
        )
        if attempts.marked_of_job(task) >= most:
            return "jobCopies"
        return "" if copies_help(*attempts.settled_of_job(task)) else "copiesLose"

    def _pools_that_wait(self) -> set[tuple[str, str]]:
        """Profile and pool of all first attempts that wait and could run on some node; O(pods that wait)."""
        state = self._state
        found = {
            (task.profile, task.pool)
            for pending in state.class_queues
            if not pending.never_feasible
            for task in pending
            if not task.copy_of
        }
        for queue in state.node_queues.by_row.values():
            found.update(
                (task.profile, task.pool) for each in queue for task in each.tasks if not task.copy_of
            )
        return found

    def _take_back(self, attempt: RunningAttempt, reason: StragglingReason, message: str) -> None:
        self._attempts.unmark(attempt)
        self._state.mark_straggling(attempt.task, reason, message)
