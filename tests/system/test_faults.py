"""No pod is lost or started twice when a scheduler or an API server is killed, frozen or restarted."""

import signal
import threading
from collections import Counter

import pytest

from live_cluster import QUICK_LEASE, Admin, Scheduler, pod, wait

pytestmark = [pytest.mark.live, pytest.mark.slow]


def names(count: int, prefix: str = "p") -> list[str]:
    return [f"{prefix}{i}" for i in range(count)]


def stream(admin: Admin, count: int, prefix: str = "p") -> None:
    """Pods of several sizes, so that an over-commit of a node of four cores is detected."""
    sizes = ("100m", "400m", "900m", "1500m")
    admin.create(pod(name, cpu=sizes[i % 4], work=0.5) for i, name in enumerate(names(count, prefix)))


def bound_so_far(admin: Admin) -> int:
    return len(admin.bound())


def check_all_ran_once(kubelet, count: int) -> None:
    """Every pod ran to its end exactly once, and no kubelet has refused one."""
    entries = kubelet.pod_times()
    assert Counter(entry.outcome for entry in entries) == {"succeeded": count}
    assert len({entry.uid for entry in entries}) == count


def test_five_sigkills_while_pods_are_created(admin, kubelet, scheduler):
    running = scheduler(lease=QUICK_LEASE).wait_deciding()
    for kill in range(1, 6):
        before = bound_so_far(admin)
        stream(admin, 60, f"wave{kill}-")
        wait("some of the wave are bound", lambda before=before: bound_so_far(admin) >= before + 20)
        running.kill()
        running.start()
    admin.wait_succeeded(300)
    check_all_ran_once(kubelet, 300)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["drained", "killed"])
def test_the_api_server_restarts_while_pods_are_created(admin, kubelet, scheduler, control_plane, how):
    # A server that drains is unreachable for more than ten seconds, in which the default lease would be lost.
    running = scheduler(lease={"leaseDuration": "60s", "renewDeadline": "50s"}).wait_deciding()
    feeding = threading.Thread(target=stream, args=(admin, 300))
    feeding.start()
    wait("some pods are bound", lambda: len(running.lines("bound")) >= 50)
    control_plane.restart_apiserver(how)
    feeding.join()
    admin.wait_succeeded(300)
    check_all_ran_once(kubelet, 300)
    assert running.code is None, "the scheduler should have kept running"
    assert running.stop() == 0


def two_replicas(scheduler) -> tuple[Scheduler, Scheduler]:
    """The leader and the standby."""
    leader = scheduler(name="a", lease=QUICK_LEASE).wait_deciding()
    standby = scheduler(name="b", lease=QUICK_LEASE)
    wait("the standby has listed the pods", lambda: standby.lines("pods listed"))
    return leader, standby


def test_a_standby_takes_over_from_a_killed_leader(admin, kubelet, scheduler):
    leader, standby = two_replicas(scheduler)
    stream(admin, 100, "first-")
    wait("the leader binds", lambda: bound_so_far(admin) >= 40)
    assert not standby.lines("bound")
    leader.kill()
    stream(admin, 100, "second-")
    admin.wait_succeeded(200)
    check_all_ran_once(kubelet, 200)
    assert standby.lines("bound")


def test_a_frozen_leader_binds_nothing_after_its_lease_has_expired(admin, kubelet, scheduler):
    leader, standby = two_replicas(scheduler)
    stream(admin, 100, "first-")
    wait("the leader binds", lambda: bound_so_far(admin) >= 20)
    leader.signal(signal.SIGSTOP)
    standby.wait_deciding()
    stream(admin, 100, "second-")
    wait("the new leader binds", lambda: standby.lines("bound"))
    frozen_with = len(leader.lines("bound"))
    leader.signal(signal.SIGCONT)
    wait("the old leader leaves", lambda: leader.code is not None)
    assert leader.code == 1
    assert leader.lines("lost the lease")
    admin.wait_succeeded(200)
    check_all_ran_once(kubelet, 200)
    # After the thaw it logs binds that were in flight, answered or found by reading the pod. Reading also
    # confirms a bind of the new leader, if both had chosen the same node.
    nodes = {line["pod"]: line["node"] for line in standby.lines("bound")}
    logged = {line["pod"]: line["node"] for line in leader.lines("bound")[frozen_with:]}
    assert {pod: nodes.get(pod, node) for pod, node in logged.items()} == logged


def test_a_watch_from_a_version_that_is_too_old_lists_again(admin, kubelet, scheduler, control_plane):
    running = scheduler(lease={"leaderElect": False}).wait_deciding()
    admin.create([pod("before"), pod("goes", nodeSelector={"no": "where"})])
    wait("the first is bound", lambda: "before" in admin.bound())
    running.signal(signal.SIGSTOP)
    # Killed twice: the first kill ends the frozen scheduler's watches, so that no later event is buffered in
    # them; after the second the server no longer has the version that the scheduler will ask for.
    control_plane.restart_apiserver(signal.SIGKILL)
    admin.send("DELETE", f"/api/v1/namespaces/{admin.namespace}/pods/goes")
    stream(admin, 20)
    control_plane.restart_apiserver(signal.SIGKILL)
    running.signal(signal.SIGCONT)
    admin.wait_succeeded(21)
    check_all_ran_once(kubelet, 21)
    too_old = [line["msg"] for line in running.lines("pods: list again") if "too old" in line["msg"]]
    assert too_old
