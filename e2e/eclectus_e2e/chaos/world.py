"""One run of a story: replicas, nodes, tenants and faults on one virtual clock, and whether all held."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import logging
import os
import pickle
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from random import Random
from typing import Any

from eclectus.api.names import API_VERSION, LEADER_SINCE
from eclectus.live.watch.reflector import LIST_SECONDS
from eclectus_e2e.chaos import copies
from eclectus_e2e.chaos.api_server import ApiServer, Change, Object, Path, RefusedError
from eclectus_e2e.chaos.hostile import HostileTenant
from eclectus_e2e.chaos.kubelets import JOBS, GarbageCollector, Kubelets
from eclectus_e2e.chaos.machine import SimulatedMachine
from eclectus_e2e.chaos.network import Network
from eclectus_e2e.chaos.operators import Operator
from eclectus_e2e.chaos.oracles import (
    LEASE,
    LEASES,
    RETRIED_SECONDS,
    Oracles,
    at_last,
    holder_of,
    is_waiting,
    nothing_waits_beside_room,
    running_pods,
)
from eclectus_e2e.chaos.promptness import Promptness
from eclectus_e2e.chaos.replicas import Replica
from eclectus_e2e.chaos.schedulers import Scheduler
from eclectus_e2e.chaos.story import (
    ACTING_SECONDS,
    ACTIONS,
    OPERATORS,
    QUIET_SECONDS,
    SCHEDULERS,
    Action,
    Story,
)
from eclectus_e2e.chaos.tenants import Tenants
from eclectus_e2e.chaos.virtual_time import EPOCH_SECONDS, VirtualLoop
from eclectus_operator.settings import Settings

SETTLED_SECONDS = ACTING_SECONDS + QUIET_SECONDS + 5.0  # what has just become free is taken by then
DAG_JOBS_SECONDS = 400.0  # for the DagJobs that have not ended by then: longer than any back-off
OPERATOR_NAMESPACE = "eclectus-system"
CONFIGURATION = f"""
apiVersion: {API_VERSION}
kind: SchedulerConfiguration
leaderElection:
  resourceNamespace: eclectus-system
  resourceName: eclectus
  leaseDuration: 5s
  renewDeadline: 3500ms
  retryPeriod: 500ms
  bindFence: true
nodeProfiles: {{enabled: false}}
profiles:
- schedulerName: eclectus
  relieve: {{policy: preemption}}
"""
POOLS_ORDER = """\
  order: {policy: pools}
  place: {policy: best-fit}
"""
# As the operator does, this Order writes into the status of DagJobs.
CARBYNE = """\
  order: {policy: carbyne}
  place: {policy: best-fit}
"""

BACKUP_SECONDS = 5.0  # between two backups of etcd


@dataclass(frozen=True)
class Outcome:
    """How a run has ended. `broken` is the promise that did not hold; empty if all did."""

    broken: str
    digest: str  # of all writes: equal for equal runs
    counts: Counter[str]


class World:
    """Everything of one run."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.loop = VirtualLoop()
        self.rng = Random(f"world {story.seed}")
        self.server = ApiServer(now=lambda: EPOCH_SECONDS + self.loop.time())
        self.network = Network(self.loop, self.server, self.rng)
        self.server.admission = self._bind_fence
        self.oracles = Oracles(self.server)
        self.garbage_collector = GarbageCollector(self.network, self.rng)
        self.kubelets = Kubelets(self.network, self.rng)
        self.server.watchers += [self.kubelets, self.garbage_collector]
        self._digest = hashlib.sha256()
        self._numbers = Counter[str]()
        self.server.watchers.append(self._note)
        self._sizes: dict[str, Object] = {}  # of nodes by name
        self.tenants = Tenants(self.network, self.rng, copies.story_has_copies(story.seed))
        self.hostile = HostileTenant(self.server)
        self.prompt = Promptness(self.server)
        parts = self.loop, self.network, self.rng
        configuration = CONFIGURATION + self.rng.choice(
            ["", Random(f"order {story.seed}").choice(["", POOLS_ORDER]), CARBYNE]
        )
        configuration += copies.configuration(story.seed)
        self.schedulers = [
            Scheduler(
                f"scheduler-{number}",
                *parts,
                configuration_text=configuration,
                on_step=self.oracles.step_has_ended,
            )
            for number in range(SCHEDULERS)
        ]
        settings = Settings(
            "chaos",
            OPERATOR_NAMESPACE,
            dag_jobs=True,
            look_seconds=self.rng.choice([20.0, 60.0]),
            dag_waiting=self.rng.choice([2, 100]),
            dag_kept=self.rng.choice([0, 2, 200]),
            copies=",".join(copies.TENANTS) if self.tenants.has_copies else "",
            copy_requests="same",
        )
        operators = [Operator(f"operator-{number}", *parts, settings=settings) for number in range(OPERATORS)]
        self.replicas: list[Replica] = [*self.schedulers, *operators]

    def run(self) -> Outcome:
        """Play the story, let everything settle, and judge."""
        with SimulatedMachine(self.network, self.rng):
            asyncio.set_event_loop(self.loop)
            self.loop.set_exception_handler(self._failed)
            try:
                for number in range(self.rng.randint(2, 6)):
                    self.add_node(f"node-{number}")
                for replica in self.replicas:
                    self.network.later(self.rng.uniform(0.0, 1.0), replica.start)
                self.network.later(0.0, self._back_up)
                for action in self.story.actions:
                    self.network.later(action.at, self._act, action)
                broken = self.loop.run_until_complete(self._until_settled())
            finally:
                asyncio.set_event_loop(None)
        return Outcome(broken, self._digest.hexdigest()[:16], self._counts())

    def _failed(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """An action or a kubelet has raised an exception; those of replicas are theirs."""
        if "handle" in context:
            error = context.get("exception")
            lines = traceback.format_exception(error) if isinstance(error, Exception) else [repr(error)]
            self.oracles.broken = self.oracles.broken or f"the simulation has failed: {''.join(lines)}"

    def _act(self, action: Action) -> None:
        kind = ACTIONS[action.name]
        if kind.is_fault:  # a list that is lost is given up at its time limit
            self.oracles.retried_seconds = RETRIED_SECONDS
            end = self.loop.time() + action.seconds + (LIST_SECONDS if kind.loses else 0.0)
            self.prompt.faults_end = max(self.prompt.faults_end, end)
        kind.act(self, action)

    def _back_up(self) -> None:
        self.server.back_up()
        self.network.later(BACKUP_SECONDS, self._back_up)

    async def _until_settled(self) -> str:
        """The promise that is broken; empty if all hold to the end."""
        await self._until(ACTING_SECONDS, lambda: False)
        self.tenants.drop_pool()  # a restored etcd may have brought it back
        await self._until(ACTING_SECONDS + QUIET_SECONDS, lambda: False)
        await self._until(SETTLED_SECONDS, lambda: not nothing_waits_beside_room(self.server))
        if broken := self._verdict() or nothing_waits_beside_room(self.server):
            return broken
        self.tenants.give_up_pods()  # now there is room for all DagJobs
        await self._until(SETTLED_SECONDS + DAG_JOBS_SECONDS, lambda: not at_last(self.server))
        return self._verdict() or at_last(self.server)

    async def _until(self, end: float, is_over: Callable[[], bool]) -> None:
        """Wait until then, or until it is over or a promise is broken."""
        while self.loop.time() < end and not self.oracles.broken and not is_over():
            await asyncio.sleep(1.0)
            self.oracles.broken = self.oracles.broken or self.prompt.look(self.loop.time())

    def _verdict(self) -> str:
        for replica in self.replicas:  # a crash explains what else is broken
            if replica.crashes:
                return f"{replica.name} has crashed: {replica.crashes[0]!r}"
        return self.oracles.broken

    def _counts(self) -> Counter[str]:
        pods = self.server.stored("pods").values()
        return self.oracles.counts + Counter(
            {
                "DagJobs": self.tenants.jobs,
                "hostile objects": self.hostile.objects,
                "pods": self.tenants.pods,
                "refused by flow control": sum(self.network.flows.refused.values()),
                "requests": self.network.requests,
                "steps": sum(each.steps for each in self.schedulers),
                "still waiting": sum(is_waiting(pod) for pod in pods),
                "writes": self._numbers["writes"],
            }
        )

    # -- what tenants and admins do ------------------------------------------------------------------

    def add_node(self, name: str) -> None:
        """A node joins, unless a restored etcd has it already.

        One that comes again has its former size: a scheduler would hear of a smaller one too late.
        """
        if name in self.server.stored("nodes"):
            return
        if name not in self._sizes:
            cores, pods = self.rng.choice([2, 4, 8]), self.rng.choice([5, 20])
            self._sizes[name] = {"cpu": str(cores), "memory": "64Gi", "pods": str(pods)}
        node: Object = {"metadata": {"name": name, "uid": f"uid-{name}-{self.server.revision}"}, "spec": {}}
        node["status"] = {
            "allocatable": self._sizes[name],
            "conditions": [{"type": "Ready", "status": "True"}],
        }
        self.server.write("nodes", name, node, "admin")

    def remove_node(self, which: int, seconds: float) -> None:
        """A node goes with its pods, and comes again."""
        names = sorted(self.server.stored("nodes"))
        if len(names) < 2:
            return
        name = names[which % len(names)]
        self.server.write("nodes", name, None, "admin")
        for key, pod in list(self.server.stored("pods").items()):
            if pod["spec"].get("nodeName") == name:
                self.garbage_collector.end(key, pod)
        self.network.later(seconds, self.add_node, name)

    def cordon(self, which: int, seconds: float) -> None:
        """A node takes no pods for a while."""
        names = sorted(self.server.stored("nodes"))
        name = names[which % len(names)]

        def write(is_cordoned: bool) -> None:
            node = self.server.stored("nodes").get(name)
            if node is not None:
                spec = {**node["spec"], "unschedulable": is_cordoned}
                self.server.write("nodes", name, {**node, "spec": spec}, "admin")

        write(True)
        self.network.later(seconds, write, False)

    def restore_etcd(self, age_seconds: float, down_seconds: float, bump: int) -> None:
        """Restore the last backup that is so old. Without a bump all replicas are restarted.

        A watch from a revision that is to come again would miss what happens until then; so the documentation
        of Kubernetes asks for one or the other.
        """
        holder, nodes = holder_of(self.server), dict(self.server.stored("nodes"))
        running = running_pods(self.server)
        self.network.go_down(down_seconds)
        self.server.restore(self.server.now() - age_seconds, bump)
        self._digest.update(f"restored {self.server.revision}".encode())
        self.oracles.etcd_is_restored(holder, running)
        if not bump:
            for replica in self.replicas:
                replica.kill()
        for name in sorted(nodes.keys() - self.server.stored("nodes").keys()):  # kubelets register again
            self.server.write("nodes", name, nodes[name], "kubelet")
        for key, pod in self.server.stored("pods").items():
            restored = Change(self.server.revision, "pods", key, None, pod, "etcd")
            self.kubelets(restored)
            self.garbage_collector(restored)
        for key, job in self.server.stored(JOBS).items():
            self.garbage_collector(Change(self.server.revision, JOBS, key, job, job, "etcd"))

    # -- the chart's ValidatingAdmissionPolicy ---------------------------------------------------------

    def _bind_fence(self, method: str, what: Path, body: Object, by: str) -> None:
        """Refuse the bind of a former leader, as charts/eclectus/templates/bindfence.yaml does."""
        if what.sub != "binding":
            return
        lease = self.server.stored(LEASES).get(LEASE)
        since = body["metadata"].get("annotations", {}).get(LEADER_SINCE, "")
        if lease is not None and since < lease["spec"]["acquireTime"]:
            raise RefusedError(HTTPStatus.UNPROCESSABLE_ENTITY, f"its leader led since {since}")

    def _note(self, change: Change) -> None:
        self._numbers["writes"] += 1
        line = f"{self.loop.time():.6f} {change.revision} {change.resource} {change.key} {change.by}"
        self._digest.update(line.encode())


def play(story: Story) -> Outcome:
    """Run a story in a child process: what is killed in it needs no orderly end."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        gc.disable()  # it would take a tenth of the time, and close what killed processes have left open
        try:
            os.write(writing, pickle.dumps(_played(story)))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    outcome: Outcome = pickle.loads(answer)  # noqa: S301 — our own child wrote it
    return outcome


def _played(story: Story) -> Outcome:
    logging.disable(logging.CRITICAL)
    try:
        return World(story).run()
    except Exception:
        return Outcome(f"the simulation has failed: {traceback.format_exc()}", "", Counter())
