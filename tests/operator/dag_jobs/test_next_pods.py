"""Which pods are created next, and which are deleted."""

from msgspec import structs

from dag_jobs import NOW, dag_job, diamond, stage, stored, task_pod
from eclectus.api.dag_job import DagJobStatus, FailedTasks, StageStatus
from eclectus_operator.dag_jobs.tasks import MOST_WRITES, assess, assess_job, next_steps


def assessed(job, recorded=(), pods=()):
    known = {each.name: each for each in recorded}
    return {
        each.name: assess(
            each,
            known.get(each.name, StageStatus(each.name)),
            [pod for pod in pods if pod.stage == each.name],
            NOW + 1000,
        )
        for each in job.spec.stages
    }


def next_pods(job, tasks, most=100, blocked=()):
    return next_steps(job, tasks, most, 100, blocked).create


def wanted(job, recorded=(), pods=(), most=100, blocked=()):
    found = next_pods(job, assessed(job, recorded, pods), most, blocked)
    return [(each.stage.name, each.index, each.attempt) for each in found]


JOB = stored(dag_job(stages=diamond()))
JOB_STAGES = [stage("a", tasks=5)]
A = StageStatus("a", completed_indexes="0-1")
B = StageStatus("b", completed_indexes="0-1")


def test_a_stage_starts_when_all_tasks_of_its_parents_have_succeeded():
    assert wanted(JOB) == [("a", 0, 0), ("a", 1, 0)]
    assert wanted(JOB, [StageStatus("a", completed_indexes="0")]) == [("a", 1, 0)]
    assert wanted(JOB, [A]) == [("b", 0, 0), ("b", 1, 0), ("c", 0, 0)]
    assert wanted(JOB, [A, B]) == [("c", 0, 0)]
    assert wanted(JOB, [A, B, StageStatus("c", completed_indexes="0")]) == [("d", 0, 0)]


def test_a_task_with_a_pod_gets_no_other():
    assert wanted(JOB, pods=[task_pod(0), task_pod(1, phase="Running")]) == []


def test_a_bounded_number_of_pods_waits_and_those_that_run_do_not_count():
    wide = stored(dag_job(stages=[stage("a", tasks=10)]))
    assert len(wanted(wide, most=3)) == 3
    assert len(wanted(wide, most=3, pods=[task_pod(0), task_pod(1)])) == 1
    assert len(wanted(wide, most=3, pods=[task_pod(0, phase="Running"), task_pod(1)])) == 2
    assert wanted(wide, most=3, pods=[task_pod(i) for i in range(5)]) == []


def test_stages_that_are_ready_share_the_number_so_that_none_stops_the_others():
    both = stored(dag_job(stages=[stage("a", tasks=10), stage("b", tasks=10)]))
    assert [name for name, _, _ in wanted(both, most=4)] == ["a", "a", "b", "b"]
    assert [name for name, _, _ in wanted(both, most=4, pods=[task_pod(i) for i in range(4)])] == ["b", "b"]
    assert [name for name, _, _ in wanted(both, most=1)] == ["a", "b"], "each stage at least one"


def test_one_sync_creates_a_bounded_number():
    wide = stored(dag_job(stages=[stage("a", tasks=10_000)]))
    assert len(wanted(wide, most=10_000)) == MOST_WRITES


def test_a_stage_whose_pods_are_refused_waits_alone():
    both = stored(dag_job(stages=[stage("a"), stage("b")]))
    assert wanted(both, blocked={"a"}) == [("b", 0, 0)]
    assert wanted(both, blocked={"a", "b"}) == []


def test_the_next_attempt_has_the_number_of_failures_and_the_memory_of_the_one_before():
    killed = task_pod(phase="Failed", killed=("main",))
    (new, _) = next_pods(JOB, assessed(JOB, pods=[killed]), 100)
    assert (new.attempt, new.memory_factors, new.before) == (1, {"main": 2}, killed)


def test_a_task_that_was_preempted_gets_a_pod_of_another_name_of_the_same_attempt():
    name = next_pods(JOB, assessed(JOB), 100)[0].name
    lost = task_pod(name=name, phase="Failed", is_disrupted=True)
    again = next_pods(JOB, assessed(JOB, pods=[lost]), 100)[0]
    assert (again.attempt, again.name) == (0, f"{name}-r1")


def test_outputs_are_needed_until_the_stage_that_reads_them_has_finished():
    reads = stage("b", "a", inputs=[{"stage": "a", "lostWithNode": True}])
    job = stored(dag_job(stages=[stage("a"), reads, stage("c", "a", inputs=[{"stage": "a"}])]))
    order = [job.spec.find_stage(name) for name in "abc"]

    def succeeded(*complete):
        known = [StageStatus(name, completed_indexes="0") for name in complete]
        tasks = assess_job(job, order, known, [], NOW)
        return {name for name, each in tasks.items() if each.is_complete}

    assert succeeded("a") == set(), "its pod is gone, and b has not read it"
    assert succeeded("a", "b") == {"a", "b"}
    assert succeeded("a", "c") == {"c"}


class TestSurplus:
    JOB = stored(dag_job(stages=JOB_STAGES))
    READ = stored(
        dag_job(stages=[*JOB_STAGES, stage("b", "a", inputs=[{"stage": "a", "lostWithNode": True}])])
    )

    def surplus(self, pods, status, job=JOB, kept=2):
        tasks = assessed(job, [status], pods)
        written = structs.replace(job, status=DagJobStatus(stages=(status,)))
        return [pod.name for pod in next_steps(written, tasks, 100, kept).delete]

    def test_the_oldest_go_and_only_those_that_are_recorded(self):
        pods = [task_pod(i, phase="Succeeded", ended=NOW - i) for i in range(5)]
        assert self.surplus(pods, StageStatus("a", completed_indexes="0-4")) == ["p-4-0", "p-3-0", "p-2-0"]
        assert self.surplus(pods, StageStatus("a", completed_indexes="0-2")) == ["p-2-0"]
        assert self.surplus(pods, StageStatus("a", completed_indexes="0-1")) == []

    def test_results_that_are_needed_stay(self):
        pods = [task_pod(i, phase="Succeeded") for i in range(5)]
        assert self.surplus(pods, StageStatus("a", completed_indexes="0-4"), self.READ) == []

    def test_of_failed_pods_the_last_one_stays_and_what_is_not_recorded(self):
        pods = [task_pod(0, attempt, "Failed") for attempt in range(3)]
        recorded = StageStatus("a", failed_tasks=(FailedTasks(3, "0"),))
        assert self.surplus(pods, recorded, kept=0) == ["p-0-0", "p-0-1"]
        assert self.surplus(pods, StageStatus("a"), kept=0) == []
