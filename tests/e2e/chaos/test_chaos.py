"""Stories keep all promises, a seed replays to the byte, and each promise is broken by some defect."""

import asyncio
import json
from concurrent.futures import Future

import pytest

from eclectus.accounts.pools import Bound
from eclectus.api.names import API_VERSION, COPY_OF_LABEL, DAG_JOB, STAGE_LABEL, TASK_INDEX_LABEL
from eclectus.engine.event_handlers import EventHandlers
from eclectus.engine.pod_specs.late_pods import Fuel
from eclectus.kubeclient import election
from eclectus.kubeclient.api_errors import StaleError, UnsureError
from eclectus.kubeclient.election import Election
from eclectus.live.watch.reflector import LIST_SECONDS, ObjectStore, Reflector
from eclectus.maths.copies import Step, next_step
from eclectus_e2e.chaos import command, copies, promptness
from eclectus_e2e.chaos.flow_control import FlowControl
from eclectus_e2e.chaos.hostile import KINDS
from eclectus_e2e.chaos.kubelets import FAILS, JOBS, SECONDS
from eclectus_e2e.chaos.network import _Watch
from eclectus_e2e.chaos.oracles import LEASE, LEASES, OPERATOR_LEASE
from eclectus_e2e.chaos.story import ACTIONS, Action, Story, drawn, shrunk
from eclectus_e2e.chaos.tenants import Tenants
from eclectus_e2e.chaos.world import Outcome, World, play
from eclectus_operator import program
from eclectus_operator.copies import copy_controller
from eclectus_operator.dag_jobs import job_copies, job_sync, task_pods, tasks
from eclectus_operator.dag_jobs.dag_controller import DagController

BUDGET = range(1, 25)  # seeds of every test run; `make chaos` goes on from there


def story(*actions, seed=1):
    """(time, name, which, amount, seconds) of each action."""
    return Story(seed, tuple(Action(*each) for each in actions))


def broken_by(monkeypatch, module, name, defect, *stories):
    """The promise that the first of these stories to break one breaks with a defect, and only with it."""
    with monkeypatch.context() as patched:
        patched.setattr(module, name, defect)
        found = next(((broken, each) for each in stories if (broken := play(each).broken)), None)
    if found is None:
        return ""
    assert play(found[1]).broken == ""
    return found[0]


@pytest.mark.parametrize("seed", BUDGET)
def test_a_story_breaks_no_promise(seed):
    outcome = play(drawn(seed))
    assert outcome.broken == "", f"again: python -m eclectus_e2e chaos --seed {seed} --seeds 1"


def test_a_seed_replays_to_the_byte():
    assert play(drawn(7)) == play(drawn(7))
    assert play(drawn(7)).digest != play(drawn(8)).digest


def test_every_kind_of_action_is_drawn():
    found = {action.name for seed in BUDGET for action in drawn(seed).actions}
    assert found == set(ACTIONS)


# -- sabotage: each promise fails with a defect that it is there for -----------------------------------

BUSY = tuple((10.0 + at, "submit", 1, 0.99, 40.0) for at in range(8))


def test_a_scheduler_that_forgets_what_it_has_bound_over_commits(monkeypatch):
    seen = EventHandlers._task_seen

    def forgets(self, event):
        return None if event.task.node else seen(self, event)

    killed = story(*BUSY, (20.0, "kill", 0, 0, 0), (20.1, "kill", 1, 0, 0), (60.0, "submit", 2, 0.99, 40.0))
    assert "over-committed" in broken_by(monkeypatch, EventHandlers, "_task_seen", forgets, killed)


def test_a_watch_that_skips_what_it_missed_leaves_pods_waiting(monkeypatch):
    apply = ObjectStore.apply

    def goes_on(self, line, now):
        try:
            return apply(self, line, now)
        except StaleError as error:
            self.resource_version = "1000000"
            raise UnsureError("WATCH", 410) from error

    cuts = [(20.0, "cut", at, 0, 2.5) for at in (0, 1)]  # shorter than the Lease: nothing is listed again
    compacted = story(*cuts, (21.0, "submit", 1, 0.3, 20.0), (21.5, "compact", 0, 0, 0))
    monkeypatch.setattr(promptness, "SOON_SECONDS", 1e9)  # it would be seen first
    assert "waits, and node" in broken_by(monkeypatch, ObjectStore, "apply", goes_on, compacted)


def test_a_leader_that_never_stops_is_seen(monkeypatch):
    paused = [story(*BUSY, (20.0, "pause", at, 0, 40.0), seed=at) for at in range(4)]

    def leads(self, now):
        self.has_led = getattr(self, "has_led", False) or self._sent_at is not None
        return self.has_led

    assert "leads" in broken_by(monkeypatch, Election, "leads", leads, *paused)


def test_a_bind_that_a_paused_leader_sends_late_is_seen_without_the_fence(monkeypatch):
    """The next leader has the Lease and is in a long step when the paused one wakes."""
    slow = [(19.0, "slow-steps", at, 0.2, 60.0) for at in (0, 1)]
    paused = [
        story(*slow, (20.0, "pause-in-write", at, 0, 7.0), (20.5, "submit", 1, 0.1, 30.0), seed=seed)
        for at in (0, 1)
        for seed in range(3)
    ]
    assert "leads" in broken_by(monkeypatch, World, "_bind_fence", lambda *_: None, *paused)


def test_a_lease_acquired_by_a_clock_that_is_behind_fences_nothing(monkeypatch):
    """So a Lease is acquired later than its former leader's, whatever the clocks say."""
    slow = [(19.0, "slow-steps", at, 0.2, 60.0) for at in (0, 1)]
    paused = [
        story(
            *[(1.0 + other, "step-clock", other, 1.0 if other == at else 0.0, 0) for other in (0, 1)],
            (5.0, "terminate", at, 0, 0),  # the next leader acquires its Lease with its clock of now
            (12.0, "terminate", 1 - at, 0, 0),
            *slow,
            (20.0, "pause-in-write", at, 0, 7.0),
            (20.5, "submit", 1, 0.1, 30.0),
            seed=seed,
        )
        for at in (0, 1)
        for seed in range(4)
    ]
    by_its_clock = lambda wall, _: election.micro_time(wall)  # noqa: E731
    assert "leads" in broken_by(monkeypatch, election, "_later", by_its_clock, *paused)


def test_a_scheduler_that_forgets_a_limit_takes_the_pool_beyond_it(monkeypatch):
    limited = story((5.0, "limit-pool", 1, 0.2, 60.0), (10.0, "submit", 1, 0.5, 60.0))
    forgets = Bound, "limit", lambda *_: None
    assert "their pool allows 2" in broken_by(monkeypatch, *forgets, limited)


def test_an_operator_by_the_clock_of_its_machine_leaves_jobs_waiting(monkeypatch):
    set_back = [
        story((8.0, "submit-dag-job", 3, 0.7, 1.0), (12.0, "step-clock", at, 0.0, 1.0), seed=seed)
        for at in (2, 3)
        for seed in range(4)
    ]
    by_its_clock = program, "steady_clock", lambda: program.time.time
    assert "has not ended" in broken_by(monkeypatch, *by_its_clock, *set_back)


def test_a_new_leader_that_does_not_catch_up_over_commits(monkeypatch):
    """Its watches are late: it knows of the pods, and not of what was bound last."""
    in_time = _Watch._at_its_time

    def late(self, callback):
        self.arrives_at = max(self.arrives_at, self.network.loop.time() + 3.0)
        in_time(self, callback)

    async def believes(self):
        return bool(self._store.resource_version)

    monkeypatch.setattr(_Watch, "_at_its_time", late)
    pods = [*[(10.0, "submit", 1, 0.99, 40.0)] * 4, *[(10.04, "submit-urgent", 2, 0.99, 40.0)] * 6]
    resigned = [story(*pods, (13.06, "terminate", 0, 0, 0), seed=seed) for seed in range(4)]
    assert "over-committed" in broken_by(monkeypatch, Reflector, "_catch_up", believes, *resigned)


def test_a_scheduler_that_believes_what_a_restored_etcd_has_forgotten_leaves_pods_waiting(monkeypatch):
    """A standby knows pods as bound, and the list that it makes as the next leader says that they wait."""
    short = [(10.0, "submit", 1, 0.99, 8.0) for _ in range(8)]
    restored = [story(*short, (26.0, "restore-etcd", 0, 0.2, 0.0), seed=at) for at in range(3)]
    defect = EventHandlers, "_pods_listed", lambda *_: None
    assert "beside room" in broken_by(monkeypatch, *defect, *restored)


def test_a_bind_that_is_forgotten_may_be_made_again(found):
    """With each kind of restore; its revision goes on from the backup's, or by so many further."""
    for bump in (0, 1000):
        found.add_node("a")
        found.tenants.submit("d", 1, 1.0)
        (key,) = found.server.stored("pods")
        found.server.back_up()
        backed_up = found.server.revision
        bind(found, key, "a")
        found.restore_etcd(0.0, 1.0, bump)
        assert found.server.revision == backed_up + bump
        assert "nodeName" not in found.server.stored("pods")[key]["spec"]
        bind(found, key, "b")
        assert found.oracles.broken == ""
        bind(found, key, "a")
        assert "is on a, and was bound to b" in found.oracles.broken
        found.oracles.broken = ""
        found.server.write("pods", key, None, "admin")


def test_a_pod_whose_job_was_gone_when_etcd_was_backed_up_is_collected_after_it_is_restored(found):
    found.server.stored("pods")["d/p"] = task_pod("Succeeded")  # no write, which would have it collected
    found.server.back_up()
    found.restore_etcd(0.0, 1.0, 0)
    found.loop.run_until_complete(asyncio.sleep(5.0))
    assert found.server.stored("pods") == {}


@pytest.mark.parametrize("is_led_again", [False, True])
def test_a_late_bind_is_held_against_what_its_leader_knew_until_the_lease_is_written(found, is_led_again):
    """Seed 31082: the leader was in a long step between the check of its Lease and the write."""
    lease = {"metadata": {}, "spec": {"holderIdentity": "scheduler-0_x"}}
    found.server.write(LEASES, LEASE, lease, "scheduler-0")
    found._sizes["a"] = {"cpu": "2", "memory": "64Gi", "pods": "20"}
    found.add_node("a")
    for name in ("ended", "late", "later"):
        spec = {"containers": [{"resources": {"requests": {"cpu": "1500m"}}}], "schedulerName": "eclectus"}
        metadata = {"uid": name, "annotations": {"chaos/seconds": "1"}}
        found.server.write("pods", f"d/{name}", {"metadata": metadata, "spec": spec}, "tenant")
    bind(found, "d/ended", "a")
    found.server.back_up()
    found.server.write("pods", "d/ended", None, "tenant")
    found.restore_etcd(0.0, 1.0, 1000)
    if is_led_again:
        found.server.write(LEASES, LEASE, lease, "scheduler-1")
    bind(found, "d/late", "a")
    assert bool(found.oracles.broken) == is_led_again
    bind(found, "d/later", "a")
    assert f"over-committed by d/late{'' if is_led_again else 'r'}:" in found.oracles.broken


@pytest.mark.parametrize("is_led_again", [False, True])
def test_a_former_leader_may_bind_after_a_restore_until_the_lease_is_written(found, is_led_again):
    """Seed 62907: it was paused before the write, and the Lease in the backup was older than its own."""
    for by in ("scheduler-0", "scheduler-1", "scheduler-0"):
        lease = {"metadata": {}, "spec": {"holderIdentity": f"{by}_x"}}
        found.server.write(LEASES, LEASE, lease, by)
    found.tenants.submit("d", 1, 1.0)
    found.add_node("a")
    found.server.back_up()
    found.restore_etcd(0.0, 1.0, 1000)
    if is_led_again:
        found.server.write(LEASES, LEASE, lease, "scheduler-0")
    (key,) = found.server.stored("pods")
    bind(found, key, "a", by="scheduler-1")
    assert ("was bound by scheduler-1" in found.oracles.broken) == is_led_again


def bind(found, key, node, by="admin"):
    pod = json.loads(json.dumps(found.server.stored("pods")[key]))
    pod["spec"]["nodeName"] = node
    found.server.write("pods", key, pod, by)


HOSTILE = tuple((12.0 + at, f"hostile-{kind}", 0, 0.5, 0.0) for at, kind in enumerate(KINDS))
CALM = (*HOSTILE, (30.0, "hostile-services", 0, 0.9, 0.0), (31.0, "submit", 2, 0.5, 5.0))


def test_a_step_that_compares_more_than_its_fuel_allows_is_seen(monkeypatch):
    defect = Fuel, "lasts", lambda *_: True
    assert "comparisons" in broken_by(monkeypatch, *defect, story(*CALM))


def test_a_flood_that_takes_the_turns_of_others_keeps_their_pods_waiting(monkeypatch):
    """Otherwise the flows take turns. However many there are, no leader loses its Lease (seed 31146)."""
    floods = [(20.0, "flood", at, 0.0, 90.0) for at in (0, 1, 3, 4, 5)]
    flooded = story(*floods, (40.0, "submit", 2, 0.5, 5.0))
    assert play(flooded).counts["leaders"] == 1
    may_have_slot = FlowControl._may_have_slot

    def after_tenants(self, flow):
        is_turn = flow.startswith("tenant") or not any(map(self._queues.get, ("tenant-0", "tenant-1")))
        return is_turn and may_have_slot(self, flow)

    defect = FlowControl, "_may_have_slot", after_tenants
    assert "beside room" in broken_by(monkeypatch, *defect, flooded)


def test_a_squeezed_scheduler_is_refused_and_places_all_pods_later():
    squeezed = (story(*BUSY, (12.0, "squeeze", 1, 0.99, 40.0), seed=seed) for seed in range(4))
    found = [play(each) for each in squeezed]
    assert [each.broken for each in found] == [""] * 4
    assert any(each.counts["refused by flow control"] for each in found)


def test_a_pod_that_a_hostile_tenant_delays_is_seen(monkeypatch):
    """While pods of that tenant wait, no other is looked at."""
    seen = EventHandlers._task_seen

    def starves(self, event):
        namespaces = {each.namespace for each in self._state.pending.values()}
        if event.task.namespace == "hostile" or "hostile" not in namespaces:
            seen(self, event)

    found = broken_by(monkeypatch, EventHandlers, "_task_seen", starves, story(*CALM))
    assert "has waited for 20 s beside room" in found


@pytest.fixture
def found():
    """A world in which nothing happens but what the test writes."""
    world = World(story())
    yield world
    world.loop.close()


def test_a_pod_that_is_bound_twice_is_seen(found):
    for node in "ab":
        found.oracles.broken = ""
        spec = {"nodeName": node, "schedulerName": "eclectus", "containers": []}
        metadata = {"uid": "u", "annotations": {"chaos/seconds": "1"}}
        found.server.write("pods", "d/p", {"metadata": metadata, "spec": spec}, "admin")
    assert "is on b, and was bound to a" in found.oracles.broken


def test_an_eviction_for_no_waiting_pod_is_seen(found):
    for change in ({}, {"deletionTimestamp": "2026-01-01T00:00:00Z"}):
        metadata = {"uid": "u", "annotations": {"chaos/seconds": "1"}, **change}
        spec = {"nodeName": "a", "schedulerName": "eclectus", "containers": []}
        found.oracles.broken = ""
        found.server.write("pods", "d/p", {"metadata": metadata, "spec": spec}, "scheduler-0")
    assert "was evicted, and no waiting pod has a higher priority" in found.oracles.broken


def test_a_pod_that_lives_again_is_seen(found):
    for phase in ("Succeeded", "Running"):
        pod = {"metadata": {"uid": "u"}, "spec": {"schedulerName": "eclectus"}, "status": {"phase": phase}}
        found.server.write("pods", "d/p", pod, "kubelet")
    assert "has Succeeded, and is Running again" in found.oracles.broken


def test_a_crash_is_reported(monkeypatch):
    def crash(self, event):
        raise RuntimeError("a defect")

    found = broken_by(monkeypatch, EventHandlers, "_task_seen", crash, story((5.0, "submit", 1, 0.1, 3.0)))
    assert "has crashed: RuntimeError" in found


# -- sabotage of the operator --------------------------------------------------------------------------

MANY_JOBS = tuple((10.0 + at, "submit-dag-job", at % 3, at / 12, 1.0) for at in range(12))


def dag_job(conditions=(), completed=""):
    stages = [{"name": "s", "completedIndexes": completed}]
    status = {"conditions": list(conditions), "stages": stages}
    return {"metadata": {"uid": "j"}, "spec": {"stages": [{"name": "s", "retries": 0}]}, "status": status}


def task_pod(phase="Pending", uid="p"):
    labels = {STAGE_LABEL: "s", TASK_INDEX_LABEL: "0"}
    metadata = {"uid": uid, "labels": labels, "ownerReferences": [{"uid": "j"}]}
    spec = {"schedulerName": "eclectus", "containers": []}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


def test_a_dag_job_whose_end_is_undone_is_seen(found):
    for status in ("True", "False"):
        end = {"type": "Succeeded", "status": status, "reason": "AllTasksSucceeded"}
        found.server.write(JOBS, "d/j", dag_job([end]), "operator-0")
    assert "had ended ('Succeeded', 'AllTasksSucceeded'), and is ('', '') now" in found.oracles.broken


def test_a_task_that_runs_again_because_its_pod_is_gone_is_seen(found):
    found.server.write("pods", "d/p", task_pod("Succeeded"), "kubelet")
    found.server.write("pods", "d/p", None, "tenant")
    found.server.write(JOBS, "d/j", dag_job(completed="0"), "tenant")
    lease = {"metadata": {}, "spec": {"holderIdentity": "operator-0_x"}}
    found.server.write(LEASES, OPERATOR_LEASE, lease, "operator-0")
    found.server.write("pods", "d/q", task_pod(uid="q"), "operator-0")
    assert "is created, and its task is recorded as done" in found.oracles.broken


def test_a_pod_of_a_task_beside_one_that_has_succeeded_is_seen(monkeypatch):
    none = property(lambda pod: False)
    broken = broken_by(monkeypatch, task_pods.TaskPod, "has_succeeded", none, story(*MANY_JOBS))
    assert "is created, and a pod of its task has succeeded" in broken


def test_a_second_pod_of_a_task_that_runs_is_seen(monkeypatch):
    none = lambda own, failures, has_succeeded: (None, [])  # noqa: E731
    monkeypatch.setattr(task_pods.NewPod, "name", property(lambda pod: f"p-{pod.index}-{len(pod.others)}"))
    monkeypatch.setattr(tasks, "_not_before", lambda own, now, began: 0.0)
    broken = broken_by(monkeypatch, tasks, "_active", none, story(*MANY_JOBS[:1]))
    assert "is created, and another pod of its task has not ended" in broken


def test_a_dag_job_that_is_stuck_is_seen(monkeypatch):
    """Its task, each pod of which fails, waits for ever after the first one."""
    template = {
        "metadata": {"annotations": {SECONDS: "1.0", FAILS: "1.0"}},
        "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "250m"}}}]},
    }
    stages = [{"name": "s", "tasks": 1, "retries": 1, "template": template}]
    job = {"apiVersion": API_VERSION, "kind": DAG_JOB, "metadata": {"name": "j"}, "spec": {"stages": stages}}
    # Not drawn: which tasks fail would be another with each request that is sent before.
    monkeypatch.setattr(Tenants, "_drawn_job", lambda *_: job)
    assert play(story(*MANY_JOBS[:1])).counts["DagJobs that have failed"] == 1
    never = lambda own, now, began: float("inf") if own else 0.0  # noqa: E731
    assert "has not ended" in broken_by(monkeypatch, tasks, "_not_before", never, story(*MANY_JOBS[:1]))


def test_a_dag_job_that_fails_for_what_kubernetes_did_is_seen(monkeypatch):
    deleted = story(*MANY_JOBS[:6], *((12.0 + at, "delete-pods", at % 3, 0.9, 0) for at in range(40)))
    failed = property(lambda pod: pod.phase == "Failed")
    broken = broken_by(monkeypatch, task_pods.TaskPod, "has_failed", failed, deleted)
    assert "has failed, and no task has failed so often" in broken


def test_a_success_that_a_signal_has_caused_is_seen(monkeypatch):
    """Many programs exit with 0 on SIGTERM."""
    deleted = story(*MANY_JOBS[:6], *((12.0 + at, "delete-pods", at % 3, 0.9, 0) for at in range(20)), seed=3)
    never = lambda pod, ended: False  # noqa: E731
    broken = broken_by(monkeypatch, task_pods, "_is_disrupted", never, deleted)
    assert "is recorded as succeeded, and no pod has done it" in broken


def test_a_success_that_is_deleted_before_it_is_recorded_is_seen(found):
    found.server.write(JOBS, "d/j", dag_job(), "tenant")
    found.server.write("pods", "d/p", task_pod("Succeeded"), "kubelet")
    found.server.write("pods", "d/p", None, "operator-0")
    assert "is deleted, and its success is not recorded" in found.oracles.broken


def test_a_pod_that_outlives_its_dag_job_is_seen(monkeypatch):
    """Nothing deletes it: it does not say to whom it belongs."""
    deleted = story(*MANY_JOBS[:3], *((11.5 + at, "delete-dag-job", at, 0.1, 0) for at in range(3)))
    body = task_pods.NewPod.body

    def anonymous(self, hints):
        found = body(self, hints)
        found["metadata"]["ownerReferences"] = []
        return found

    broken = broken_by(monkeypatch, task_pods.NewPod, "body", anonymous, deleted)
    assert "is there, and its DagJob is deleted" in broken


# -- sabotage of copies --------------------------------------------------------------------------------

# All who ask for one are said to straggle again and again.
LATE = tuple((8.0 + 2.0 * at, "straggle", 1, 1.0, 0) for at in range(30))
BARE = (*((10.0 + at, "submit", at % 3, 0.3, 3.0) for at in range(6)), *LATE)
JOBS_THAT_LAG = (*MANY_JOBS[:6], *LATE)


def with_copies(*actions, after=0):
    seed = next(each for each in range(after + 1, 100) if copies.story_has_copies(each))
    return story(*actions, seed=seed)


@pytest.mark.parametrize("actions", [BARE, JOBS_THAT_LAG], ids=["bare", "jobs"])
def test_stories_of_copies_have_races(actions):
    outcome = play(with_copies(*actions))
    assert outcome.broken == ""
    assert outcome.counts["copies"] > 3


def test_a_copy_that_is_left_behind_is_seen(monkeypatch):
    """Nobody ends the one that has lost."""

    def goes_on(*pods, **options):
        step = next_step(*pods, **options)
        return Step.WAIT if step in (Step.LOSE, Step.WIN) else step

    broken = broken_by(monkeypatch, copy_controller, "next_step", goes_on, with_copies(*BARE))
    assert "have both succeeded, and both are left" in broken


def test_a_copy_of_a_task_that_is_left_behind_is_seen(monkeypatch):
    async def settles_nothing(self, tasks):
        pass

    # The end of a job settles races too; and where no ended pod is kept, none is left.
    monkeypatch.setattr(job_sync, "second_successes", lambda pods: [])
    lag = [with_copies(*JOBS_THAT_LAG, after=seed) for seed in range(0, 12, 2)]
    broken = broken_by(monkeypatch, job_copies.JobCopies, "settle", settles_nothing, *lag)
    assert "have both succeeded, and both are left" in broken


def test_a_success_without_another_one_that_is_deleted_is_seen(monkeypatch):
    """Whoever ends first has lost."""

    def other_wins(*pods, **options):
        step = next_step(*pods, **options)
        return {Step.WIN: Step.LOSE, Step.LOSE: Step.WIN}.get(step, step)

    broken = broken_by(monkeypatch, copy_controller, "next_step", other_wins, with_copies(*BARE))
    assert "has succeeded, and is deleted with no other success" in broken


def test_a_pod_that_ends_well_after_it_was_marked_counts_beside_its_copy(found):
    """The copy had won, and the original was to be deleted: of two successes either may go."""
    marked = {"type": "DisruptionTarget", "status": "True", "reason": "OvertakenByAttempt"}
    for name, labels, conditions in (("p", {}, [marked]), ("p-copy", {COPY_OF_LABEL: "p"}, [])):
        pod = {"metadata": {"uid": name, "labels": labels, "annotations": {SECONDS: "1"}}, "spec": {}}
        pod["status"] = {"phase": "Succeeded", "conditions": conditions}
        found.server.write("pods", f"d/{name}", pod, "operator-0" if labels else "tenant")
    found.server.write("pods", "d/p-copy", None, "operator-0")
    assert found.oracles.broken == ""


def test_a_second_copy_of_a_pod_is_seen(found):
    metadata = {"labels": {COPY_OF_LABEL: "u"}, "annotations": {SECONDS: "1"}}
    for name in "ab":
        pod = {"metadata": {**metadata, "uid": name}, "spec": {"schedulerName": "eclectus"}}
        found.server.write("pods", f"d/{name}", pod, "operator-0")
    assert "is created, and d/a is a copy of the same pod" in found.oracles.broken


def test_a_crash_of_an_operator_is_reported(monkeypatch):
    def crash(self):
        raise RuntimeError("a defect")

    found = broken_by(monkeypatch, DagController, "sync", crash, story(*MANY_JOBS[:1]))
    assert "operator-" in found
    assert "has crashed: RuntimeError" in found


def test_a_pod_may_wait_for_a_list_that_a_fault_has_lost(found):
    """Seed 20536: its request was lost when a leader began, and it is given up after a minute."""
    found._act(Action(0.0, "too-many", 0, 0.5, 10.0))
    assert found.prompt.faults_end == 10.0
    found._act(Action(0.0, "lose-requests", 0, 0.5, 10.0))
    assert found.prompt.faults_end == 10.0 + LIST_SECONDS


# -- the command ---------------------------------------------------------------------------------------


def test_a_story_is_shrunken_to_what_it_needs():
    whole = drawn(3)
    needed = whole.actions[5]
    assert shrunk(whole, lambda smaller: needed in smaller.actions).actions == (needed,)


def test_a_broken_promise_is_printed_and_can_be_played_again(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    monkeypatch.setattr(command, "FOLDER", tmp_path)
    monkeypatch.setattr(command, "play", lambda found: Outcome("defect" if found.actions else "", "", {}))
    monkeypatch.setattr(command, "_outcome", lambda seed: Outcome("defect", "", {}))
    monkeypatch.setattr(command, "ProcessPoolExecutor", _InThisProcess)
    assert command.chaos(["--seeds", "1", "--seed", "9"]) == 1
    printed = capsys.readouterr().out
    assert "seed 9: defect" in printed
    assert "shrunken to 1 actions" in printed
    kept = json.loads((tmp_path / "seed-9.json").read_text())
    assert len(kept["actions"]) == 1
    assert command.chaos(["--story", str(tmp_path / "seed-9.json")]) == 1


@pytest.mark.parametrize(("most", "played"), [("1", 1), ("9", 3)])
def test_stories_are_reported_in_order_and_no_more_than_asked(monkeypatch, tmp_path, capsys, most, played):
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    monkeypatch.setattr(command, "FOLDER", tmp_path)
    monkeypatch.setattr(command, "_AHEAD", 2)
    monkeypatch.setattr(command, "_outcome", lambda seed: Outcome("" if seed % 2 else "defect", "", {}))
    monkeypatch.setattr(command, "ProcessPoolExecutor", _InThisProcess)
    command.chaos(["--seeds", "6", "--jobs", "1", "--no-shrink", "--stop-after", most])
    printed = capsys.readouterr().out
    assert [line for line in printed.splitlines() if line.startswith("seed ")] == [
        f"seed {seed}: defect" for seed in (2, 4, 6)[:played]
    ]


class _InThisProcess:
    def __init__(self, jobs):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def submit(self, function, seed):
        done = Future()
        done.set_result(function(seed))
        return done

    def shutdown(self, *, cancel_futures):
        assert cancel_futures
