"""What explanations say about copies: whether a running pod is late, and why it has one or has none."""

from eclectus.engine.attempts import Attempts, RunningAttempt
from eclectus.engine.state import State
from eclectus.model.objects import Task

REFUSED = {
    "firstAttemptsWait": "a pod of its pool waits that has not started, and room is left for that",
    "poolLimit": "its pool is at its limit",
    "poolCopies": "its pool has as many copies as it may have",
    "jobCopies": "its job has as many copies as it may have",
    "copiesLose": "of the last copies of its job too few have ended first",
}


def copies_of(state: State, task: Task, now: float) -> str:
    """One sentence about a pod that may have copies or is one; empty about others. `now` in seconds."""
    attempts = state.attempts
    if attempts is None or not (task.speculative or task.copy_of):
        return ""
    if task.copy_of:
        original = attempts.running.get(task.copy_of)
        is_here = original is not None and original.task.namespace == task.namespace  # a label may be forged
        return _of_copy(attempts, original if is_here else None, now)
    attempt = attempts.running.get(task.uid)
    said = "it may have a copy once it runs" if attempt is None else _of_original(attempts, attempt, now)
    if attempt is not None and attempt.progress is not None:
        said += f". Of its work {attempt.progress:.0%} is done, as it says"
    unread = task.unread_progress
    return f"{said}. Its progress is not read as written: {unread}" if unread else said


def follows(state: State, namespace: str, uid: str) -> bool:
    """Whether this pod of the namespace runs and may be found late, so that its progress counts."""
    attempt = None if state.attempts is None else state.attempts.running.get(uid)
    return attempt is not None and attempt.task.namespace == namespace


def _of_original(attempts: Attempts, attempt: RunningAttempt, now: float) -> str:
    uid, said = attempt.task.uid, "it may have a copy; it is not late, or a copy would end no sooner"
    if (copy := attempts.copy_of(attempt.task)) is not None:
        does = f"its copy {copy.task.name} does the same work"
        said = f"{does}; the one that ends first counts, and the other is deleted"
    elif attempts.has_had_copy(uid):
        said = "it has had a copy, which is gone; no second one is made"
    elif uid in attempts.marks:
        is_restart = (straggler := attempts.marks[uid].straggler) is not None and straggler.restart
        does = "end it, so that its Job makes another" if is_restart else "make a copy of it"
        said = f"it is late{_left(attempts, uid, now)}, and the operator is to {does}"
    elif attempts.was_restarted(attempt.task):
        said = "its Job has made it for one that was late; it is not restarted a second time"
    elif attempt.refusal:
        said = f"it is late, and gets no copy: {REFUSED[attempt.refusal]}"
    return said


def _of_copy(attempts: Attempts, original: RunningAttempt | None, now: float) -> str:
    if original is None:
        return "it is a copy of a pod that is gone, and does its work alone"
    left = _left(attempts, original.task.uid, now)
    return (
        f"it is a copy of {original.task.name}{left.replace(':', ', which is', 1)}; it wins if it ends first"
    )


def _left(attempts: Attempts, uid: str, now: float) -> str:
    mark = attempts.marks.get(uid)
    if mark is None or mark.straggler is None:
        return ""
    seconds = max(mark.straggler.left - (now - mark.at), 0.0)
    return f": expected to need {seconds:.0f} s more"
