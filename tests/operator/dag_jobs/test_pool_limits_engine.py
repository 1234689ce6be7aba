"""The operator and the real engine beside a pool's limit: what one says, the other understands."""

from msgspec.structs import replace

from builders import make_engine, make_node, make_task
from dag_jobs import dag_job, stage
from dag_operator_world import RUN_SECONDS, DagWorld
from eclectus.api.names import POOLS_PATH
from eclectus.model.commands import Bind, Report
from eclectus.model.events import BindConfirmed, NodeSeen, PoolSeen, Resumed, TaskSeen
from eclectus.model.pool import Pool, PoolAmounts
from eclectus.policies.order.pools import FairPools
from eclectus.policies.place.fit import BestFit
from eclectus_operator.dag_jobs.quotas import FIRST_PODS
from pool_objects import new_pool


class EngineWorld(DagWorld):
    """Pods are scheduled by an engine with a Pool of so many pods, and end after RUN_SECONDS."""

    def __init__(self, job, most):
        super().__init__(job)
        self.api.put(POOLS_PATH, new_pool("research"))
        self.start()
        self.tasks_seen = {}
        self.engine = make_engine(BestFit(), order=FairPools())
        self.engine.step([NodeSeen(make_node("n0", cpu=500, pods=500)), Resumed()], self.api.now)
        self.limit(most)

    def limit(self, most):
        pool = Pool("research", max_share=PoolAmounts((("pods", most),)), namespaces=("default",))
        self._decide([PoolSeen(pool)])

    def cluster_step(self):
        events = []
        for path, pod in list(self.pods().items()):
            task = self.tasks_seen.get(path)
            if task is None:
                task = self.tasks_seen[path] = make_task(path, 1, asked_pool="research", job="job")
                events.append(TaskSeen(task))
            elif pod.get("status", {}).get("phase") == "Running" and self._ran(pod) >= RUN_SECONDS:
                self.end(path)
                events.append(TaskSeen(replace(task, node="n0", phase="Succeeded")))
        self._decide(events)

    def _decide(self, events):
        commands = self.engine.step(events, self.api.now)
        while commands:
            answers = [answer for command in commands for answer in self._done(command)]
            commands = self.engine.step(answers, self.api.now) if answers else []

    def _done(self, command):
        if isinstance(command, Bind):
            self.run(command.name)
            task = replace(self.tasks_seen[command.name], node="n0", phase="Running")
            return [BindConfirmed(command.uid, "n0"), TaskSeen(task)]
        if isinstance(command, Report):
            condition = {"type": "PodScheduled", "status": "False", "reason": command.reason}
            self.api.touch(command.name)["status"] = {"phase": "Pending", "conditions": [condition]}
        return []


def test_few_wait_at_the_limit_and_all_start_when_it_is_lifted():
    world = EngineWorld(dag_job(stages=[stage("a", tasks=120)], pool="research"), 3)
    waiting = []
    world.play(30, each=lambda: waiting.append(world.waiting()))
    assert max(waiting) <= FIRST_PODS
    assert world.status()["stages"][0]["running"] == 3
    world.limit(0)
    world.play(20)
    assert 1 <= world.waiting() <= FIRST_PODS
    world.limit(100)
    world.play(60)
    assert world.condition("Succeeded")
