"""The lifecycle of pods on fake nodes: admission, running for work / speed seconds, termination, deletion."""

import asyncio
import logging

from eclectus_e2e.testbed.kubelet.api import Change
from eclectus_e2e.testbed.kubelet.machine import Machine, NodeState, PlacedPod
from eclectus_e2e.testbed.kubelet.objects import Pod, unix_seconds
from eclectus_e2e.testbed.kubelet.pod_times import PodRecord, PodTimes
from eclectus_e2e.testbed.kubelet.pods import status
from eclectus_e2e.testbed.kubelet.pods.admission import PodRequests, Rejection
from eclectus_e2e.testbed.kubelet.pods.status_writer import StatusWriter

LOG = logging.getLogger("kubelet.pods")
_ENDED = ("Succeeded", "Failed")
_KILLED = 137  # 128 + SIGKILL


class PodLifecycle:
    """Simulates the pods of every node on one event loop, with one timer per pod."""

    def __init__(self, machines: dict[str, Machine], writer: StatusWriter, pod_times: PodTimes) -> None:
        self._machines = machines
        self._writer = writer
        self._pod_times = pod_times
        self._loop = asyncio.get_running_loop()

    def apply(self, change: Change[Pod]) -> None:
        """Apply a change from the watch."""
        if change.kind == "deleted":
            for pod in change.items:
                self._on_deleted(pod.node, pod.metadata.uid)
            return
        if change.kind == "synced":  # deletions first, so that new pods find the freed resources
            self._drop_deleted({pod.metadata.uid for pod in change.items})
        for pod in change.items:
            self.observe(pod)

    def observe(self, pod: Pod) -> None:
        """Apply the current version of a pod."""
        machine = self._machines.get(pod.node)
        if machine is None:
            return  # bound to a node that is not simulated here
        uid = pod.metadata.uid
        if machine.state is not NodeState.UP:
            machine.deferred_pods[uid] = pod
        elif uid in machine.pods:
            self._update(machine, machine.pods[uid], pod)
        elif pod.metadata.deletion_timestamp is not None or pod.status.phase in _ENDED:
            self._finish_deletion(machine, pod)
        else:
            self._admit(machine, pod)

    def resume(self, machine: Machine) -> None:
        """After a thaw or recovery: continue every pod, then apply the changes deferred meanwhile."""
        machine.update_speeds(self._loop.time())
        for placed in machine.pods.values():
            self._set_timer(machine, placed)
            self._writer.write(machine, placed)
        deferred, machine.deferred_pods = machine.deferred_pods, {}
        for pod in deferred.values():
            self.observe(pod)

    def update_speeds(self, machine: Machine) -> None:
        """After a change of speed or state: recompute when each pod ends. Work done so far stays done."""
        machine.update_speeds(self._loop.time())
        for placed in machine.pods.values():
            self._set_timer(machine, placed)

    def fail_or_restart(self, machine: Machine) -> None:
        """A dead node recovers: pods with restartPolicy Never have failed, the others restart."""
        for placed in machine.running():
            if placed.is_terminating or placed.restart_policy == "Never":
                self._end(machine, placed, _KILLED)
            else:
                self._restart(placed)

    def _admit(self, machine: Machine, pod: Pod) -> None:
        """Admit or reject a pod that was bound to this node."""
        try:
            placed = machine.new_pod(pod, self._loop.time())
            requested = PodRequests.of(pod.spec)
        except ValueError as error:  # a quantity or a work annotation that is not a number
            LOG.error("pod %s/%s: %s", pod.metadata.namespace, pod.metadata.name, error)
            return
        rejection = machine.info.rejection(pod.spec, requested)
        if rejection:
            self._reject(machine, placed, rejection)
            return
        machine.admit(placed, requested)
        placed.started = self._pod_times.count_start()
        if pod.status.phase == "Running":
            self._adopt(placed)
        else:
            placed.pending_status = status.running(pod, placed.addresses, placed.started, placed.restarts)
        self._schedule_and_write(machine, placed)

    def _adopt(self, placed: PlacedPod) -> None:
        """A pod that ran before this process started: subtract the work it has done since its start."""
        placed.started = unix_seconds(placed.pod.status.start_time or "1970-01-01T00:00:00Z")
        placed.work.remaining -= (self._pod_times.now() - placed.started) * placed.work.speed

    def _reject(self, machine: Machine, placed: PlacedPod, rejection: Rejection) -> None:
        LOG.warning("pod %s rejected by %s: %s", placed.pod.metadata.name, machine.name, rejection.message)
        machine.pods[placed.uid] = placed  # kept, so that later changes do not admit it again
        self._record(machine, placed, rejection.reason)
        placed.pending_status = status.rejected(placed.pod, rejection.reason, rejection.message)
        self._writer.write(machine, placed)

    def _update(self, machine: Machine, placed: PlacedPod, pod: Pod) -> None:
        placed.pod = pod
        if not placed.is_terminating:
            return
        if placed.outcome:
            placed.deletion_due = placed.pod.awaits_confirmation
            self._writer.write(machine, placed)
            return
        grace_seconds = pod.metadata.deletion_grace_period_seconds or 0
        # A second deletion may shorten the grace period, never lengthen it.
        placed.kill_at = min(placed.kill_at, self._loop.time() + grace_seconds)
        self._set_timer(machine, placed)

    def _finish_deletion(self, machine: Machine, pod: Pod) -> None:
        """An unknown pod that has ended or is being deleted: confirm its deletion if one was requested."""
        if pod.awaits_confirmation:
            placed = machine.new_pod(pod, self._loop.time())
            placed.outcome, placed.deletion_due = "never ran", True
            machine.pods[placed.uid] = placed
            self._writer.write(machine, placed)

    def _set_timer(self, machine: Machine, placed: PlacedPod) -> None:
        """(Re)set the timer of a pod. There is none while its node is not up."""
        placed.cancel_timer()
        at = placed.next_event_at()
        if machine.state is NodeState.UP and at < float("inf"):
            placed.timer = self._loop.call_at(at, self._on_timer, machine, placed)

    def _on_timer(self, machine: Machine, placed: PlacedPod) -> None:
        now = self._loop.time()
        if placed.is_done(now):
            self._complete(machine, placed)
        elif now >= placed.kill_at:
            self._end(machine, placed, _KILLED)
        else:
            self._set_timer(machine, placed)

    def _complete(self, machine: Machine, placed: PlacedPod) -> None:
        if placed.restart_policy == "Always" and not placed.is_terminating:
            self._restart(placed)
            self._schedule_and_write(machine, placed)
        else:
            self._end(machine, placed, 0)

    def _restart(self, placed: PlacedPod) -> None:
        placed.restart(self._loop.time(), self._pod_times.now())
        placed.pending_status = status.running(placed.pod, placed.addresses, placed.started, placed.restarts)

    def _end(self, machine: Machine, placed: PlacedPod, exit_code: int) -> None:
        """Release the resources before the status is sent, so that a scheduler that reads it can use them."""
        machine.info.release(placed.uid)
        self._record(machine, placed, "killed" if exit_code else "succeeded")
        placed.pending_status = status.ended(
            placed.pod,
            placed.addresses,
            started=placed.started,
            finished=self._pod_times.now(),
            restarts=placed.restarts,
            exit_code=exit_code,
        )
        placed.deletion_due = placed.pod.awaits_confirmation
        placed.cancel_timer()
        self._writer.write(machine, placed)

    def _on_deleted(self, node: str, uid: str) -> None:
        """The pod's object was removed: release what the pod used."""
        machine = self._machines.get(node)
        if machine is None:
            return
        machine.deferred_pods.pop(uid, None)
        placed = machine.pods.pop(uid, None)
        if placed is None:
            return
        placed.cancel_timer()
        machine.info.release(uid)
        if not placed.outcome:
            self._record(machine, placed, "vanished")

    def _drop_deleted(self, uids: set[str]) -> None:
        for machine in self._machines.values():
            for uid in (machine.pods.keys() | machine.deferred_pods.keys()) - uids:
                self._on_deleted(machine.name, uid)

    def _schedule_and_write(self, machine: Machine, placed: PlacedPod) -> None:
        self._set_timer(machine, placed)
        self._writer.write(machine, placed)

    def _record(self, machine: Machine, placed: PlacedPod, outcome: str) -> None:
        placed.outcome = outcome
        meta = placed.pod.metadata
        record = PodRecord(
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
            node=machine.name,
            klass=placed.pod.klass,
            work_seconds=placed.work_seconds,
            started=placed.started,
            finished=self._pod_times.now(),
            outcome=outcome,
        )
        self._pod_times.add(record)
