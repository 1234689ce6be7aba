"""The life of pods on the nodes: taken or refused, run for work / speed seconds, ended, forgotten."""

import asyncio
import logging

from eclectus_e2e.testbed.kubelet.api import Change
from eclectus_e2e.testbed.kubelet.machine import Machine, NodeState, Resident
from eclectus_e2e.testbed.kubelet.objects import Pod, unix_seconds
from eclectus_e2e.testbed.kubelet.pod_times import Entry, Journal
from eclectus_e2e.testbed.kubelet.pods import status
from eclectus_e2e.testbed.kubelet.pods.admission import Demand, Refusal
from eclectus_e2e.testbed.kubelet.pods.status_writer import Writer

LOG = logging.getLogger("kubelet.pods")
_ENDED = ("Succeeded", "Failed")
_KILLED = 137  # 128 + SIGKILL


class Pods:
    """Plays every node's pods on one event loop, with one timer a pod."""

    def __init__(self, machines: dict[str, Machine], writer: Writer, journal: Journal) -> None:
        self._machines = machines
        self._writer = writer
        self._journal = journal
        self._loop = asyncio.get_running_loop()

    def apply(self, change: Change[Pod]) -> None:
        """Take in what the watch says."""
        if change.kind == "deleted":
            for pod in change.items:
                self._gone(pod.node, pod.metadata.uid)
            return
        if change.kind == "synced":  # first what is gone, so that newcomers find its room
            self._forget_all_but({pod.metadata.uid for pod in change.items})
        for pod in change.items:
            self.observe(pod)

    def observe(self, pod: Pod) -> None:
        """A pod as it is now."""
        machine = self._machines.get(pod.node)
        if machine is None:
            return  # a real node's
        uid = pod.metadata.uid
        if machine.state is not NodeState.UP:
            machine.waiting[uid] = pod
        elif uid in machine.pods:
            self._update(machine, machine.pods[uid], pod)
        elif pod.metadata.deletion_timestamp is not None or pod.status.phase in _ENDED:
            self._unmet(machine, pod)
        else:
            self._meet(machine, pod)

    def resume(self, machine: Machine) -> None:
        """After a thaw or recovery: go on with every pod, then look at what came meanwhile."""
        machine.rescale(self._loop.time())
        for resident in machine.pods.values():
            self._arm(machine, resident)
            self._writer.write(machine, resident)
        waiting, machine.waiting = machine.waiting, {}
        for pod in waiting.values():
            self.observe(pod)

    def rescale(self, machine: Machine) -> None:
        """After a change of speed, a freeze or a death: what is done stays done."""
        machine.rescale(self._loop.time())
        for resident in machine.pods.values():
            self._arm(machine, resident)

    def lose(self, machine: Machine) -> None:
        """A dead node comes back empty: its pods restart, or have failed if theirs is never to."""
        for resident in machine.running():
            if resident.terminating or resident.restarts_after == "Never":
                self._end(machine, resident, _KILLED)
            else:
                self._restart(resident)

    def _meet(self, machine: Machine, pod: Pod) -> None:
        """A pod bound to this node that it does not know: ask, then commit."""
        try:
            resident = machine.receive(pod, self._loop.time())
            demand = Demand.of(pod.spec)
        except ValueError as error:  # not a number where there must be one
            LOG.error("pod %s/%s: %s", pod.metadata.namespace, pod.metadata.name, error)
            return
        refusal = machine.room.refusal(pod.spec, demand)
        if refusal:
            self._refuse(machine, resident, refusal)
            return
        machine.take(resident, demand)
        resident.started = self._journal.start()
        if pod.status.phase == "Running":
            self._adopt(resident)
        else:
            resident.unwritten = status.running(pod, resident.where, resident.started, resident.restarts)
        self._go_on(machine, resident)

    def _adopt(self, resident: Resident) -> None:
        """A pod that ran before this process: it has been at work since its start."""
        resident.started = unix_seconds(resident.pod.status.start_time or "1970-01-01T00:00:00Z")
        resident.work.remaining -= (self._journal.now() - resident.started) * resident.work.speed

    def _refuse(self, machine: Machine, resident: Resident, refusal: Refusal) -> None:
        LOG.warning("pod %s refused by %s: %s", resident.pod.metadata.name, machine.name, refusal.message)
        machine.pods[resident.uid] = resident  # remembered, so that it is not asked again
        self._note(machine, resident, refusal.reason)
        resident.unwritten = status.refused(resident.pod, refusal.reason, refusal.message)
        self._writer.write(machine, resident)

    def _update(self, machine: Machine, resident: Resident, pod: Pod) -> None:
        resident.pod = pod
        if not resident.terminating:
            return
        if resident.outcome:
            resident.deletion_due = True
            self._writer.write(machine, resident)
            return
        grace_seconds = pod.metadata.deletion_grace_period_seconds or 0
        # A second deletion may shorten the grace period, never lengthen it.
        resident.kill_at = min(resident.kill_at, self._loop.time() + grace_seconds)
        self._arm(machine, resident)

    def _unmet(self, machine: Machine, pod: Pod) -> None:
        """A pod that never ran here and never will; if it is to be deleted, nothing stands against it."""
        if pod.metadata.deletion_timestamp is not None:
            resident = machine.receive(pod, self._loop.time())
            resident.outcome, resident.deletion_due = "never ran", True
            machine.pods[resident.uid] = resident
            self._writer.write(machine, resident)

    def _arm(self, machine: Machine, resident: Resident) -> None:
        """(Re)set the one timer of a pod. A node that is not up does nothing, so it needs none."""
        resident.disarm()
        at = resident.next_at()
        if machine.state is NodeState.UP and at < float("inf"):
            resident.timer = self._loop.call_at(at, self._due, machine, resident)

    def _due(self, machine: Machine, resident: Resident) -> None:
        now = self._loop.time()
        if resident.done(now):
            self._complete(machine, resident)
        elif now >= resident.kill_at:
            self._end(machine, resident, _KILLED)
        else:
            self._arm(machine, resident)

    def _complete(self, machine: Machine, resident: Resident) -> None:
        if resident.restarts_after == "Always" and not resident.terminating:
            self._restart(resident)
            self._go_on(machine, resident)
        else:
            self._end(machine, resident, 0)

    def _restart(self, resident: Resident) -> None:
        resident.begin_again(self._loop.time(), self._journal.now())
        resident.unwritten = status.running(resident.pod, resident.where, resident.started, resident.restarts)

    def _end(self, machine: Machine, resident: Resident, exit_code: int) -> None:
        """Free the room first, then tell: a scheduler that reads the news finds it true."""
        machine.room.free(resident.uid)
        self._note(machine, resident, "killed" if exit_code else "succeeded")
        resident.unwritten = status.ended(
            resident.pod,
            resident.where,
            started=resident.started,
            finished=self._journal.now(),
            restarts=resident.restarts,
            exit_code=exit_code,
        )
        resident.deletion_due = resident.terminating
        resident.disarm()
        self._writer.write(machine, resident)

    def _gone(self, node: str, uid: str) -> None:
        """The pod's object is gone, and with it every claim to the node."""
        machine = self._machines.get(node)
        if machine is None:
            return
        machine.waiting.pop(uid, None)
        resident = machine.pods.pop(uid, None)
        if resident is None:
            return
        resident.disarm()
        machine.room.free(uid)
        if not resident.outcome:
            self._note(machine, resident, "vanished")

    def _forget_all_but(self, uids: set[str]) -> None:
        for machine in self._machines.values():
            for uid in (machine.pods.keys() | machine.waiting.keys()) - uids:
                self._gone(machine.name, uid)

    def _go_on(self, machine: Machine, resident: Resident) -> None:
        self._arm(machine, resident)
        self._writer.write(machine, resident)

    def _note(self, machine: Machine, resident: Resident, outcome: str) -> None:
        resident.outcome = outcome
        meta = resident.pod.metadata
        entry = Entry(
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
            node=machine.name,
            klass=resident.pod.klass,
            work_seconds=resident.work_seconds,
            started=resident.started,
            finished=self._journal.now(),
            outcome=outcome,
        )
        self._journal.end(entry)
