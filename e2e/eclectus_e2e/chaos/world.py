"""One run of a story: replicas, nodes, tenants and faults on one virtual clock, and whether all held."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import pickle
import traceback
from collections import Counter
from dataclasses import dataclass
from http import HTTPStatus
from random import Random

from eclectus.api.names import API_VERSION, LEADER_SINCE
from eclectus_e2e.chaos.api_server import ApiServer, Change, Object, Path, RefusedError, has_ended, stamp
from eclectus_e2e.chaos.network import Network
from eclectus_e2e.chaos.oracles import LEASE, LEASES, Oracles, is_waiting, nothing_waits_beside_room
from eclectus_e2e.chaos.replicas import Replica, SimulatedMachine
from eclectus_e2e.chaos.story import ACTING_SECONDS, ACTIONS, QUIET_SECONDS, REPLICAS, Story
from eclectus_e2e.chaos.virtual_time import EPOCH_SECONDS, VirtualLoop

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
        self.server.watchers.append(self._kubelets)
        self._digest = hashlib.sha256()
        self.server.watchers.append(self._note)
        self._numbers = Counter[str]()
        self.replicas = [
            Replica(f"scheduler-{number}", self.loop, self.network, CONFIGURATION, self.rng)
            for number in range(REPLICAS)
        ]

    def run(self) -> Outcome:
        """Play the story, let everything settle, and judge."""
        with SimulatedMachine(self.loop, self.rng):
            asyncio.set_event_loop(self.loop)
            try:
                for number in range(self.rng.randint(2, 6)):
                    self.add_node(f"node-{number}")
                for replica in self.replicas:
                    self.network.later(self.rng.uniform(0.0, 1.0), replica.start)
                for action in self.story.actions:
                    self.network.later(action.at, ACTIONS[action.name].act, self, action)
                self.loop.run_until_complete(self._until_settled())
            finally:
                asyncio.set_event_loop(None)
        return Outcome(self._verdict(), self._digest.hexdigest()[:16], self._counts())

    async def _until_settled(self) -> None:
        end = ACTING_SECONDS + QUIET_SECONDS
        while self.loop.time() < end and not self.oracles.broken:  # noqa: ASYNC110 — time is virtual
            await asyncio.sleep(1.0)

    def _verdict(self) -> str:
        if self.oracles.broken:
            return self.oracles.broken
        for replica in self.replicas:
            if replica.crashes:
                return f"{replica.name} has crashed: {replica.crashes[0]!r}"
        return nothing_waits_beside_room(self.server)

    def _counts(self) -> Counter[str]:
        pods = self.server.stored("pods").values()
        return self.oracles.counts + Counter(
            {
                "pods": self._numbers["pods"],
                "requests": self.network.requests,
                "steps": sum(each.steps for each in self.replicas),
                "still waiting": sum(is_waiting(pod) for pod in pods),
                "writes": self.server.revision,
            }
        )

    # -- what tenants and admins do ------------------------------------------------------------------

    def add_node(self, name: str) -> None:
        """A node joins."""
        cores = self.rng.choice([2, 4, 8])
        size = {"cpu": str(cores), "memory": "64Gi", "pods": str(self.rng.choice([5, 20]))}
        node: Object = {"metadata": {"name": name, "uid": f"uid-{name}-{self.server.revision}"}, "spec": {}}
        node["status"] = {"allocatable": size, "conditions": [{"type": "Ready", "status": "True"}]}
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
                self.server.write("pods", key, None, "garbage-collector")
        self.network.later(seconds, self.add_node, name)

    def cordon(self, which: int, seconds: float) -> None:
        """A node takes no pods for a while."""
        names = sorted(self.server.stored("nodes"))
        name = names[which % len(names)]

        def write(is_cordoned: bool) -> None:
            node = self.server.stored("nodes").get(name)
            if node is not None:
                new = json.loads(json.dumps(node))
                new["spec"]["unschedulable"] = is_cordoned
                self.server.write("nodes", name, new, "admin")

        write(True)
        self.network.later(seconds, write, False)

    def submit(self, namespace: str, count: int, seconds: float, priority: int = 0) -> None:
        """Some equal pods, each of which runs for so long."""
        millicores = self.rng.choice([250, 500, 1000, 2000])
        for _ in range(count):
            self._numbers["pods"] += 1
            name = f"p{self._numbers['pods']}"
            container = {
                "name": "main",
                "image": "work",
                "resources": {"requests": {"cpu": f"{millicores}m"}},
            }
            pod: Object = {
                "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}"},
                "spec": {"schedulerName": "eclectus", "containers": [container], "priority": priority},
                "status": {"phase": "Pending"},
            }
            pod["metadata"] |= {
                "creationTimestamp": stamp(self.server.now()),
                "annotations": {"chaos/seconds": f"{seconds * self.rng.uniform(0.5, 1.5):.3f}"},
            }
            self.server.write("pods", f"{namespace}/{name}", pod, namespace)

    def delete_pods(self, namespace: str, share: float) -> None:
        """A tenant deletes some of its pods."""
        for key in sorted(self.server.stored("pods")):
            if key.startswith(f"{namespace}/") and self.rng.random() < share:
                path = "/api/v1/namespaces/{}/pods/{}".format(*key.split("/"))
                self.server.answer("DELETE", path, {}, {}, namespace)

    # -- the chart's ValidatingAdmissionPolicy ---------------------------------------------------------

    def _bind_fence(self, method: str, what: Path, body: Object, by: str) -> None:
        """Refuse the bind of a former leader, as charts/eclectus/templates/bindfence.yaml does."""
        if what.sub != "binding":
            return
        lease = self.server.stored(LEASES).get(LEASE)
        since = body["metadata"].get("annotations", {}).get(LEADER_SINCE, "")
        if lease is not None and since < lease["spec"]["acquireTime"]:
            raise RefusedError(HTTPStatus.UNPROCESSABLE_ENTITY, f"its leader led since {since}")

    # -- kubelets ------------------------------------------------------------------------------------

    def _kubelets(self, change: Change) -> None:
        """Start a pod that is bound, end it when its time is over, remove it when it is deleted."""
        pod = change.new
        if change.resource != "pods" or pod is None or not pod["spec"].get("nodeName"):
            return
        uid = pod["metadata"]["uid"]
        if "deletionTimestamp" in pod["metadata"]:
            if change.old is None or "deletionTimestamp" not in change.old["metadata"]:
                self.network.later(self.rng.uniform(0.1, 3.0), self._remove, change.key, uid)
        elif change.old is None or not change.old["spec"].get("nodeName"):
            starts = self.rng.uniform(0.05, 1.0)
            ends = starts + float(pod["metadata"]["annotations"]["chaos/seconds"])
            self.network.later(starts, self._phase, change.key, uid, "Running")
            self.network.later(ends, self._phase, change.key, uid, "Succeeded")

    def _phase(self, key: str, uid: str, phase: str) -> None:
        found = self.server.stored("pods").get(key)
        if found is None or found["metadata"]["uid"] != uid or has_ended(found):
            return
        new = json.loads(json.dumps(found))
        new["status"]["phase"] = phase
        self.server.write("pods", key, new, "kubelet")

    def _remove(self, key: str, uid: str) -> None:
        found = self.server.stored("pods").get(key)
        if found is not None and found["metadata"]["uid"] == uid:
            self.server.write("pods", key, None, "kubelet")

    def _note(self, change: Change) -> None:
        line = f"{self.loop.time():.6f} {change.revision} {change.resource} {change.key} {change.by}"
        self._digest.update(line.encode())


def play(story: Story) -> Outcome:
    """Run a story in a child process: what is killed in it needs no orderly end."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
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
