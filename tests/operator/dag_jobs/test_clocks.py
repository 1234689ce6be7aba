"""Clocks of nodes, API servers and this operator differ: a task neither waits for that nor runs twice."""

from eclectus.api.dag_job import Stage, StageStatus
from eclectus_operator.dag_jobs.job_sync import JobMemory
from eclectus_operator.dag_jobs.task_pods import TaskPod
from eclectus_operator.dag_jobs.tasks import OVERDUE_SECONDS, assess

NOW, HOUR, GRACE = 1_000_000.0, 3600.0, 30.0
STAGE = Stage("s", tasks=1, template={})


def not_before(memory, now, **fields):
    """When the task whose pod has these fields may run again, as seen now; None: at once."""
    (seen,) = memory.by_our_clock([TaskPod("p", "uid", "s", 0, 0, **fields)], now)
    return assess(STAGE, StageStatus("s"), [seen], now).not_before.get(0)


def test_a_failed_task_waits_for_its_back_off_by_our_clock():
    for ahead in (0.0, HOUR):
        memory = JobMemory("job")
        until = not_before(memory, NOW, phase="Failed", ended=NOW + ahead)
        assert NOW < until < NOW + HOUR
        assert not_before(memory, NOW + 1.0, phase="Failed", ended=NOW + ahead) == until
        assert not_before(memory, until, phase="Failed", ended=NOW + ahead) is None


def test_a_pod_that_is_deleted_has_its_grace_period_by_our_clock():
    for ahead in (-HOUR, 0.0, HOUR):
        memory = JobMemory("job")
        deleted = {"phase": "Running", "deletion": NOW + GRACE + ahead, "grace_seconds": GRACE}
        assert not_before(memory, NOW, **deleted) == NOW + GRACE + OVERDUE_SECONDS
        assert not_before(memory, NOW + 9.0, **deleted) == NOW + GRACE + OVERDUE_SECONDS


def test_a_pod_that_is_gone_is_forgotten():
    memory = JobMemory("job")
    not_before(memory, NOW, phase="Failed", ended=NOW)
    assert memory.seen_at == {"uid": NOW}
    memory.by_our_clock([], NOW)
    assert memory.seen_at == {}
