"""What must hold of every write, whatever happens; each promise is a method, and `PROMISES` is their table.

They look at the API server's own order of writes: what a process believes does not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf

from eclectus.api.dag_job import FINISHED
from eclectus.api.names import DAG_JOB_LABEL, GROUP, POOLS
from eclectus_e2e.chaos.api_server import ApiServer, Change, Object, has_ended, stamp
from eclectus_e2e.chaos.copies import is_copy, may_use, no_copy_is_left_behind, race_of, second_copy
from eclectus_e2e.chaos.kubelets import JOBS, Task, owner_of, task_of

LEASES = "coordination.k8s.io/leases"
LEASE = "eclectus-system/eclectus"
POOLS_RESOURCE = f"{GROUP}/{POOLS}"
RETRIED_SECONDS = 60.0  # longer than any fault lasts
LISTED_AGAIN_SECONDS = 60.0  # after a restore of etcd: until a leader knows what it has brought back
OVERDUE_SECONDS = 60.0  # of a pod that is being deleted, as the operator has it
OPERATOR_LEASE = "eclectus-system/eclectus-operator"
POD_GROUP = "scheduling.x-k8s.io/pod-group"  # a label
FUEL_MOST = 20_000  # comparisons of one namespace in a step
ONE_POD_MOST = 2_000  # that the last pod costs: 8 terms (hostile.py) beside 250 waiting pods that differ
ON_ITS_WAY_SECONDS = 0.05  # a request and an event, while the network was never slow


class BrokenPromiseError(Exception):
    """A promise does not hold; the message says which, for which object."""


@dataclass
class Oracles:
    """Watches one server. `counts` says how often something happened that promises speak of."""

    server: ApiServer
    counts: Counter[str] = field(default_factory=Counter)
    nodes_of: dict[str, str] = field(default_factory=dict)  # uid of a pod -> the node to which it was bound
    ended: dict[str, str] = field(default_factory=dict)  # uid of a pod -> the phase in which it ended
    ended_jobs: dict[str, tuple[str, str]] = field(default_factory=dict)  # uid -> how it ended
    failures: Counter[Task] = field(default_factory=Counter)  # of pods that have failed by themselves
    done: set[Task] = field(default_factory=set)  # tasks of which a pod has succeeded by itself
    waited: list[tuple[float, int]] = field(
        default_factory=list
    )  # (until when, priority) of pods that waited
    limits: list[tuple[float, float]] = field(default_factory=list)  # of the pool: since when, how many pods
    on_its_way_seconds: float = ON_ITS_WAY_SECONDS
    step_seconds: float = 0.0  # that a step of a leader may have taken
    retried_seconds: float = 0.0  # for which a bind may have been sent again and again
    former_holder: str = ""  # of the Lease, when etcd was restored, until the Lease is written again
    holders: set[str] = field(default_factory=set)  # of the Lease, at any time
    brought_back: set[tuple[str, str]] = field(default_factory=set)  # (pod, node) that only the backup had
    broken: str = ""  # the first promise that did not hold

    def __post_init__(self) -> None:
        self.server.watchers.append(self.check)

    def check(self, change: Change) -> None:
        """Hold a write against all promises about its resource; only the first that is broken is kept."""
        if self.broken:
            return
        for resource, promise in PROMISES:
            if change.resource == resource:
                try:
                    promise(self, change)
                except BrokenPromiseError as error:
                    self.broken = f"at revision {change.revision}, written by {change.by}: {error}"
                    return

    def step_has_ended(self, by: str, spent: Mapping[str, int]) -> None:
        """A step spends no more on what pods' specs depend on than its fuel, and what one pod costs.

        `spent`: comparisons by namespace.
        """
        self.counts["comparisons charged"] += sum(spent.values())
        comparisons = max(spent.values(), default=0)
        if comparisons > FUEL_MOST + ONE_POD_MOST:
            problem = f"{by}: a step has cost {comparisons} comparisons of one namespace"
            self.broken = self.broken or problem

    def etcd_is_restored(self, holder: str, running: set[tuple[str, str]]) -> None:
        """What was written and is forgotten binds nobody.

        Until now `holder` had the Lease, and these were the pods that held room, with their nodes.
        """
        pods = self.server.stored("pods").values()
        self.nodes_of = {
            pod["metadata"]["uid"]: pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")
        }
        self.ended = {pod["metadata"]["uid"]: pod["status"]["phase"] for pod in pods if has_ended(pod)}
        jobs = self.server.stored(JOBS).values()
        self.ended_jobs = {job["metadata"]["uid"]: how_ended(job) for job in jobs if how_ended(job)[0]}
        self.brought_back = running_pods(self.server) - running
        self.former_holder = holder
        for pool in self.server.stored(POOLS_RESOURCE).values() or (None,):
            self._note_limit(pool, LISTED_AGAIN_SECONDS)
        self.counts["restores of etcd"] += 1

    # -- promises ----------------------------------------------------------------------------------

    def bound_once(self, change: Change) -> None:
        """A pod is bound to one node for good."""
        pod = change.new
        node = pod["spec"].get("nodeName") if pod else None
        if not pod or not node:
            return
        before = self.nodes_of.setdefault(pod["metadata"]["uid"], node)
        if before != node:
            raise BrokenPromiseError(f"pod {change.key} is on {node}, and was bound to {before}")

    def no_node_over_committed(self, change: Change) -> None:
        """What the pods of a node ask for fits into it, whoever has bound them.

        Pods that only a restored etcd brings back count once the Lease is written again. A bind comes before
        that if its leader checked the Lease before the restore, and was then paused or in a long step. No
        leader knows that pods will come back, and to a fence the term in the restored Lease is the same one.
        A fence by renewals would also refuse binds wherever an API server sees the Lease a moment late.
        """
        if not _is_bind(change):
            return
        self.counts["binds"] += 1
        name = change.new["spec"]["nodeName"] if change.new else ""
        node = self.server.stored("nodes").get(name)
        if node is None:
            self.counts["binds to nodes that are gone"] += 1
            return
        unknown = self.brought_back if self.former_holder else set()
        held = [pod for pod in pods_on(self.server, name) if (pod["metadata"]["uid"], name) not in unknown]
        cpu = sum(cpu_of(pod) for pod in held)
        room = node["status"]["allocatable"]
        if cpu > int(room["cpu"]) * 1000 or len(held) > int(room["pods"]):
            raise BrokenPromiseError(
                f"node {name} is over-committed by {change.key}: {cpu}m of {room['cpu']} cores, "
                f"{len(held)} of {room['pods']} pods"
            )

    def pool_is_known(self, change: Change) -> None:
        """Note how many pods the pool may hold from now on."""
        self._note_limit(change.new)

    def _note_limit(self, pool: Object | None, delay_seconds: float = 0.0) -> None:
        spec = {} if pool is None else pool["spec"]
        most = spec.get("maxShare", {}).get("amounts", {}).get("pods", inf)
        if not self.limits or self.limits[-1][1] != most:
            self.limits.append((self.server.now() + delay_seconds, most))
            self.counts["limits of the pool"] += most < inf

    def no_pool_beyond_its_limit(self, change: Change) -> None:
        """A bind never takes the pool of all tenants beyond what it may hold, or could until a moment ago.

        Pods that a restored etcd brings back are nobody's decision; a nominated pod has got its room before.
        """
        if not _is_bind(change) or not self.limits or self.former_holder:
            return
        if change.old is not None and change.old.get("status", {}).get("nominatedNodeName"):
            return
        begin = self.server.now() - self.on_its_way_seconds - 2 * self.step_seconds - self.retried_seconds
        before = [most for at, most in self.limits if at <= begin]
        most = max([*before[-1:], *(most for at, most in self.limits if at > begin)])
        if not before and self.limits[0][0] > begin:
            return  # there was no pool until a moment ago
        held = len(running_pods(self.server) - self.brought_back)
        if held > most:
            raise BrokenPromiseError(f"{held} pods hold room with {change.key}, and their pool allows {most}")

    def ended_for_good(self, change: Change) -> None:
        """A pod that has ended stays as it has ended."""
        if change.new is None:
            return
        uid, phase = change.new["metadata"]["uid"], change.new.get("status", {}).get("phase", "")
        before = self.ended.get(uid)
        if before and phase != before:
            raise BrokenPromiseError(f"pod {change.key} has {before}, and is {phase or 'unset'} again")
        if has_ended(change.new):
            self.ended[uid] = phase

    def evicted_for_something(self, change: Change) -> None:
        """A pod that the scheduler deletes gives way to one of higher priority.

        That one waits, or has waited until a moment ago: a request was on its way.
        """
        if change.old is not None and is_waiting(change.old) and not (change.new and is_waiting(change.new)):
            self.waited.append((self.server.now(), change.old["spec"].get("priority", 0)))
        is_eviction = (
            change.old is not None
            and change.by.startswith("scheduler")
            and "deletionTimestamp" not in change.old["metadata"]
            and (change.new is None or "deletionTimestamp" in change.new["metadata"])
        )
        if not is_eviction or change.old is None:
            return
        self.counts["evictions"] += 1
        priority = change.old["spec"].get("priority", 0)
        waiting = [
            pod["spec"].get("priority", 0) for pod in self.server.stored("pods").values() if is_waiting(pod)
        ]
        lately = [each for until, each in self.waited if until >= self.server.now() - self.on_its_way_seconds]
        if not any(each > priority for each in waiting + lately):
            raise BrokenPromiseError(
                f"pod {change.key} was evicted, and no waiting pod has a higher priority"
            )

    def lease_is_known(self, change: Change) -> None:
        """Note that the Lease is written: it says again who leads."""
        if change.key == LEASE:
            self.former_holder = ""
            pair = (change.old, change.new)
            before, after = (each["spec"].get("holderIdentity", "") if each else "" for each in pair)
            self.holders.add(after)
            self.counts["leaders"] += bool(after) and after != before

    def one_leader(self, change: Change) -> None:
        """Nothing is bound by a process that is not the holder of the Lease at that revision.

        Where etcd was restored, any that has held it may have been paused before a bind, until the Lease is
        written again: that in the backup may be of an earlier term, which refuses no later one.
        """
        if not _is_bind(change) or not change.by.startswith("scheduler"):
            return
        holder = self.former_holder or holder_of(self.server)
        may_bind = {holder, *(self.holders if self.former_holder else ())}
        if not any(each.startswith(change.by + "_") for each in may_bind):
            raise BrokenPromiseError(f"pod {change.key} was bound by {change.by}; {holder or 'nobody'} leads")

    def job_ended_for_good(self, change: Change) -> None:
        """A DagJob that has succeeded or failed stays so."""
        if change.new is None:
            return
        uid, end = change.new["metadata"]["uid"], how_ended(change.new)
        before = self.ended_jobs.setdefault(uid, end) if end[0] else self.ended_jobs.get(uid, end)
        if end != before:
            raise BrokenPromiseError(f"DagJob {change.key} had ended {before}, and is {end} now")

    def retries_are_given(self, change: Change) -> None:
        """A DagJob fails for its tasks only after one has failed by itself more often than it may."""
        if change.resource == "pods":
            if change.new and owner_of(change.new) and has_failed(change.new) and not is_copy(change.new):
                is_first = change.old is None or not has_ended(change.old)
                self.failures[task_of(change.new)] += is_first
            return
        job = change.new
        if job is None or how_ended(job)[1] != "RetriesExceeded" or (change.old and how_ended(change.old)[0]):
            return
        self.counts["DagJobs that have failed"] += 1
        retries = {(job["metadata"]["uid"], each["name"]): each["retries"] for each in job["spec"]["stages"]}
        if not any(times > retries.get(task[:2], times) for task, times in self.failures.items()):
            raise BrokenPromiseError(f"DagJob {change.key} has failed, and no task has failed so often")

    def success_is_earned(self, change: Change) -> None:
        """A task is recorded as succeeded only after a pod of it has ended well, not asked to stop."""
        new = change.new
        if new is None:
            return
        if change.resource == "pods":
            if owner_of(new) and has_succeeded(new):
                self.done.add(task_of(new))
            return
        ends = [how_ended(each or {})[0] for each in (change.old, new)]
        self.counts["DagJobs that have succeeded"] += ends == ["", "Succeeded"]
        for stage in new.get("status", {}).get("stages", ()):
            for index in indexes(stage.get("completedIndexes", "")):
                if (new["metadata"]["uid"], stage["name"], str(index)) not in self.done:
                    task = f"task {index} of {stage['name']} of DagJob {change.key}"
                    raise BrokenPromiseError(f"{task} is recorded as succeeded, and no pod has done it")

    def no_success_is_thrown_away(self, change: Change) -> None:
        """The operator deletes no pod whose success is not recorded, while its DagJob goes on."""
        old = change.old
        if change.new is not None or old is None or not change.by.startswith("operator"):
            return
        if not owner_of(old) or not has_succeeded(old):
            return
        task = task_of(old)
        job = self.job_of(task)
        if job and not how_ended(job)[0] and not is_recorded(job, task):
            raise BrokenPromiseError(f"pod {change.key} is deleted, and its success is not recorded")

    def job_of(self, task: Task) -> Object:
        """The DagJob of a task; empty if it is gone."""
        jobs = self.server.stored(JOBS).values()
        return next((each for each in jobs if each["metadata"]["uid"] == task[0]), {})

    def no_task_runs_again(self, change: Change) -> None:
        """No pod is created for a task that has succeeded, as the status or a pod says, or that still runs.

        A pod that is being deleted, and is overdue, counts as gone: its node is silent.

        A former leader's late request may: its pod is deleted as one that nobody needs.
        """
        pod = change.new
        if pod is None or change.old is not None or not owner_of(pod) or is_copy(pod):
            return
        self.counts["pods of DagJobs"] += 1
        lease = self.server.stored(LEASES).get(OPERATOR_LEASE)
        if not ((lease or {}).get("spec", {}).get("holderIdentity") or "").startswith(change.by + "_"):
            self.counts["pods of DagJobs by a former leader"] += 1
            return
        task = task_of(pod)
        pods = self.server.stored("pods").values()
        others = [each for each in pods if each is not pod and task_of(each) == task]
        if any(has_succeeded(each) for each in others):
            raise BrokenPromiseError(f"pod {change.key} is created, and a pod of its task has succeeded")
        overdue = stamp(self.server.now() - OVERDUE_SECONDS)
        if any(
            not has_ended(each) and each["metadata"].get("deletionTimestamp", "Z") > overdue
            for each in others
        ):
            raise BrokenPromiseError(
                f"pod {change.key} is created, and another pod of its task has not ended"
            )
        if is_recorded(self.job_of(task), task):
            raise BrokenPromiseError(f"pod {change.key} is created, and its task is recorded as done")

    def one_copy_of_a_pod(self, change: Change) -> None:
        """The operator alone makes copies, and no second one of a pod."""
        self.counts["copies"] += change.old is None and change.new is not None and is_copy(change.new)
        if broken := second_copy(change, self.server):
            raise BrokenPromiseError(broken)

    def no_race_is_lost_by_all(self, change: Change) -> None:
        """The operator deletes a bare pod that has succeeded only beside a copy that has, or its original."""
        old = change.old
        if change.new is not None or old is None or not change.by.startswith("operator"):
            return
        if owner_of(old) or old.get("status", {}).get("phase") != "Succeeded":
            return
        pods = self.server.stored("pods").values()
        if not any(has_succeeded(each) for each in pods if race_of(each) == race_of(old)):
            raise BrokenPromiseError(f"pod {change.key} has succeeded, and is deleted with no other success")
        self.counts["races of bare pods with two successes"] += 1


PROMISES: tuple[tuple[str, Callable[[Oracles, Change], None]], ...] = (
    (LEASES, Oracles.lease_is_known),
    ("pods", Oracles.one_leader),
    ("pods", Oracles.bound_once),
    ("pods", Oracles.no_node_over_committed),
    (POOLS_RESOURCE, Oracles.pool_is_known),
    ("pods", Oracles.no_pool_beyond_its_limit),
    ("pods", Oracles.ended_for_good),
    ("pods", Oracles.evicted_for_something),
    (JOBS, Oracles.job_ended_for_good),
    ("pods", Oracles.success_is_earned),
    (JOBS, Oracles.success_is_earned),
    (JOBS, Oracles.retries_are_given),
    ("pods", Oracles.retries_are_given),
    ("pods", Oracles.no_task_runs_again),
    ("pods", Oracles.no_success_is_thrown_away),
    ("pods", Oracles.one_copy_of_a_pod),
    ("pods", Oracles.no_race_is_lost_by_all),
)


def nothing_waits_beside_room(server: ApiServer) -> str:
    """Which pod still waits though a node has room for it; empty if none does."""
    nodes = [node for node in server.stored("nodes").values() if not node["spec"].get("unschedulable")]
    for key, pod in sorted(server.stored("pods").items()):
        if not is_waiting(pod) or POD_GROUP in pod["metadata"].get("labels", {}):
            continue  # a gang may need more room than one node has
        for node in nodes:
            if not may_use(pod, node["metadata"]["name"]):
                continue
            held = pods_on(server, node["metadata"]["name"])
            free = int(node["status"]["allocatable"]["cpu"]) * 1000 - sum(cpu_of(each) for each in held)
            if cpu_of(pod) <= free and len(held) < int(node["status"]["allocatable"]["pods"]):
                return f"pod {key} waits, and node {node['metadata']['name']} has {free}m cores free"
    return ""


def every_job_has_ended(server: ApiServer) -> str:
    """Which DagJob has not ended, though nobody suspends it and there is room for all of its pods."""
    for key, job in sorted(server.stored(JOBS).items()):
        if not job["spec"].get("suspend") and not how_ended(job)[0]:
            return f"DagJob {key} has not ended: {job.get('status')}"
    return ""


def no_pod_outlives_its_job(server: ApiServer) -> str:
    """Which pod of a DagJob is there, though the job is deleted; or runs, though it has ended or waits."""
    alive = {job["metadata"]["uid"]: job for job in server.stored(JOBS).values()}
    for key, pod in sorted(server.stored("pods").items()):
        if DAG_JOB_LABEL not in (pod["metadata"].get("labels") or {}):
            continue
        job = alive.get(owner_of(pod))
        if job is None:
            return f"pod {key} is there, and its DagJob is deleted"
        if not has_ended(pod) and (how_ended(job)[0] or job["spec"].get("suspend")):
            return f"pod {key} has not ended, and its DagJob is suspended or has ended"
    return ""


AT_LAST: tuple[Callable[[ApiServer], str], ...] = (
    every_job_has_ended,
    no_pod_outlives_its_job,
    no_copy_is_left_behind,
)


def at_last(server: ApiServer) -> str:
    """Which promise about DagJobs does not hold at the end; empty if all do."""
    return next(filter(None, (promise(server) for promise in AT_LAST)), "")


def how_ended(job: Object) -> tuple[str, str]:
    """The type and reason of the condition by which a DagJob has ended; empty if it has not."""
    for each in job.get("status", {}).get("conditions", ()):
        if each["type"] in FINISHED and each["status"] == "True":
            return each["type"], each["reason"]
    return "", ""


def has_failed(pod: Object) -> bool:
    """Whether the pod has failed by itself: nobody had asked it to stop, and its node had accepted it."""
    status = pod.get("status", {})
    is_target = any(each["type"] == "DisruptionTarget" for each in status.get("conditions", ()))
    is_deleted = "deletionTimestamp" in pod["metadata"]
    return status.get("phase") == "Failed" and not (is_target or is_deleted or status.get("reason"))


def has_succeeded(pod: Object) -> bool:
    """Whether the pod has done its work: it has ended well, and was not being deleted.

    A condition stops nothing: a scheduler or an operator marks a pod before it deletes it, and the pod may
    end between the two.
    """
    is_deleted = "deletionTimestamp" in pod["metadata"]
    return pod.get("status", {}).get("phase") == "Succeeded" and not is_deleted


def is_recorded(job: Object, task: Task) -> bool:
    """Whether the status says that the task has succeeded."""
    stages = job.get("status", {}).get("stages", ())
    done = (each.get("completedIndexes", "") for each in stages if each["name"] == task[1])
    return any(int(task[2]) in indexes(each) for each in done)


def indexes(text: str) -> set[int]:
    """The numbers of a text such as `0-5,7`."""
    ranges = (part.partition("-") for part in text.split(",") if part)
    return {each for first, _, last in ranges for each in range(int(first), int(last or first) + 1)}


def holder_of(server: ApiServer) -> str:
    """Who holds the Lease; empty if nobody does."""
    lease = server.stored(LEASES).get(LEASE)
    return (lease or {}).get("spec", {}).get("holderIdentity") or ""


def is_waiting(pod: Object) -> bool:
    """Whether the pod is to be placed by Eclectus."""
    return (
        not pod["spec"].get("nodeName")
        and not has_ended(pod)
        and "deletionTimestamp" not in pod["metadata"]
        and pod["spec"]["schedulerName"] == "eclectus"
    )


def running_pods(server: ApiServer) -> set[tuple[str, str]]:
    """The uid and the node of each pod that holds room."""
    return {
        (pod["metadata"]["uid"], pod["spec"]["nodeName"])
        for pod in server.stored("pods").values()
        if pod["spec"].get("nodeName") and not has_ended(pod)
    }


def pods_on(server: ApiServer, node: str) -> list[Object]:
    """The pods that hold room of a node."""
    return [
        pod
        for pod in server.stored("pods").values()
        if pod["spec"].get("nodeName") == node and not has_ended(pod)
    ]


def cpu_of(pod: Object) -> int:
    """Millicores that the pod asks for."""
    return sum(int(each["resources"]["requests"]["cpu"].rstrip("m")) for each in pod["spec"]["containers"])


def _is_bind(change: Change) -> bool:
    was_on = change.old["spec"].get("nodeName") if change.old else None
    return change.new is not None and not was_on and bool(change.new["spec"].get("nodeName"))
