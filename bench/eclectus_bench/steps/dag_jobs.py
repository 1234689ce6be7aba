"""DAG jobs under Carbyne on a full cluster, whose tasks end one by one, alone or with their stage.

Every job has a wide stage, of which some tasks run and two wait, and beside it a stage of one task, which
runs, before one of four. When that one ends, the shares of all jobs are computed again.
"""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from eclectus.model.events import JobSeen, PoolSeen, TaskSeen
from eclectus.model.job import Job, JobStage
from eclectus.model.objects import Task
from eclectus.model.pool import Pool
from eclectus.policies.carbyne import Carbyne
from eclectus.policies.learn.none import Unlearned
from eclectus.policies.place.fit import BestFit
from eclectus_bench.steps.driver import Driver, ended, make_node, make_spec, make_task, running

CORES = 32  # of a node, and tasks that it runs
WAITING = 2  # pods of each job
TO_START = 20  # tasks of its wide stage
WIDE, GATE, AFTER = "wide", "gate", "after"
NAMESPACE = "bench"
SECONDS = 60.0  # estimated, of each task
SPEC = make_spec()


class DagJobs:
    """So many jobs, on as many nodes as each of them has two tasks running at least.

    `pools`: so many Pools with about as many jobs each; 0: none.
    """

    def __init__(self, jobs: int, nodes: int, pools: int = 0) -> None:
        self._pools = pools
        self._nodes = [make_node(at, cpu=CORES * 1_000) for at in range(max(nodes, -(-2 * jobs // CORES)))]
        self.driver = Driver(Carbyne(), self._nodes, place=BestFit(), learn=Unlearned())
        self._running = {WIDE: list[Task](), GATE: list[Task]()}
        wide = CORES * len(self._nodes) // jobs + TO_START
        self.driver.step(*(PoolSeen(Pool(_pool(at, pools), namespaces=(NAMESPACE,))) for at in range(pools)))
        seen = (replace(_job(at, wide), pool=_pool(at, pools)) for at in range(jobs))
        self.driver.step(*map(JobSeen, seen))
        self.driver.step(*map(TaskSeen, self._fill(jobs)))
        waiting = (
            make_task(f"waiting-{at}", SPEC, **self._of(at % jobs, WIDE)) for at in range(WAITING * jobs)
        )
        self.driver.wait(*waiting)

    def _fill(self, jobs: int) -> Iterator[Task]:
        for at in range(CORES * len(self._nodes)):
            stage = GATE if at < jobs else WIDE
            task = running(f"running-{at}", self._nodes[at // CORES], **self._of(at % jobs, stage))
            self._running[stage].append(task)
            yield task

    def _of(self, number: int, stage: str) -> dict[str, Any]:
        asked = _pool(number, self._pools)
        return {"job": f"uid-job-{number}", "stage": stage, "estimate": SECONDS, "asked_pool": asked}

    def end_one(self, stage: str, number: int) -> None:
        """A task of this stage ends, of another job each time, and one that waits is bound: two steps."""
        self.driver.bind_one(TaskSeen(ended(self._running[stage][number], self.driver.now)))


def _job(number: int, wide: int) -> Job:
    stages = (
        JobStage(WIDE, wide, SPEC, seconds=SECONDS),
        JobStage(GATE, 1, SPEC, seconds=SECONDS),
        JobStage(AFTER, 4, SPEC, seconds=SECONDS, parents=(1,)),
    )
    return Job(f"uid-job-{number}", NAMESPACE, f"job-{number}", stages)


def _pool(number: int, pools: int) -> str:
    return f"pool-{number % pools}" if pools else ""
