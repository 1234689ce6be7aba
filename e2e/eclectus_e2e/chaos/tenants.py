"""What tenants do: they submit and delete pods and DagJobs, and suspend DagJobs for a while.

And what the admin does with the pool that they share. Their requests always arrive.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from eclectus.api.names import API_VERSION, DAG_JOB, DAG_JOBS, POOL, POOLS_PATH
from eclectus_e2e.chaos import copies
from eclectus_e2e.chaos.api_server import Object, has_ended, stamp
from eclectus_e2e.chaos.kubelets import FAILS, JOBS, REFUSED, SECONDS, SLOW
from eclectus_e2e.chaos.network import Network
from eclectus_e2e.chaos.oracles import POOLS_RESOURCE

MOST_STAGES, MOST_TASKS, MOST_SECONDS = 3, 4, 12.0
POOL_KEY = "default"  # of all pods: no namespace names another
COPIES_SHARE = 0.5  # of the pods and DagJobs, where there are copies
MOST_PODS = 12  # that a pool may hold


@dataclass(eq=False)
class Tenants:
    """The users of all namespaces. `pods` is how many they have submitted."""

    network: Network
    rng: Random
    has_copies: bool = False  # whether some pods and DagJobs ask for copies
    pods: int = 0
    jobs: int = 0

    # -- pods --------------------------------------------------------------------------------------

    def submit(self, namespace: str, count: int, seconds: float, priority: int = 0) -> None:
        """Some equal pods, each of which runs for so long."""
        millicores = self.rng.choice([250, 500, 1000, 2000])
        for _ in range(count):
            self.pods += 1
            name = f"p{self.pods}"
            pod: Object = {
                "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}"},
                "spec": {"schedulerName": "eclectus", "containers": [_container(millicores)]},
                "status": {"phase": "Pending"},
            }
            pod["spec"]["priority"] = priority
            pod["metadata"] |= {
                "creationTimestamp": stamp(self.network.server.now()),
                "annotations": {SECONDS: f"{seconds * self.rng.uniform(0.5, 1.5):.3f}"},
            }
            if self.has_copies and self.rng.random() < COPIES_SHARE:
                copies.ask(pod)
            self.network.server.write("pods", f"{namespace}/{name}", pod, namespace)

    def delete_pods(self, namespace: str, share: float) -> None:
        """A tenant deletes some of its pods."""
        for key in sorted(self.network.server.stored("pods")):
            if key.startswith(f"{namespace}/") and self.rng.random() < share:
                path = "/api/v1/namespaces/{}/pods/{}".format(*key.split("/"))
                self.network.server.answer("DELETE", path, {}, {}, namespace)

    def give_up_pods(self) -> None:
        """All tenants delete the pods that belong to no DagJob, and the operator their copies."""
        for key, pod in sorted(self.network.server.stored("pods").items()):
            if not pod["metadata"].get("ownerReferences") and not has_ended(pod) and not copies.is_copy(pod):
                path = "/api/v1/namespaces/{}/pods/{}".format(*key.split("/"))
                self.network.server.answer("DELETE", path, {}, {}, "tenants")

    # -- DagJobs -----------------------------------------------------------------------------------

    def submit_dag_job(self, namespace: str, amount: float) -> None:
        """A DagJob. One of the same name goes before, so that a new one has its name at once."""
        name, server = f"job-{int(amount * 4)}", self.network.server
        if f"{namespace}/{name}" in server.stored(JOBS):
            server.answer("DELETE", _job_path(namespace, name), {}, {}, namespace)
        self.jobs += 1
        server.answer("POST", _job_path(namespace), {}, self._drawn_job(name), namespace)

    def delete_dag_job(self, namespace: str, amount: float) -> None:
        """A tenant deletes one of its DagJobs, half of the time in the foreground."""
        if name := self._chosen(namespace, amount):
            policy = "Foreground" if amount * 100 % 2 < 1 else "Background"
            options = {"propagationPolicy": policy}
            self.network.server.answer("DELETE", _job_path(namespace, name), {}, options, namespace)

    def suspend_dag_job(self, namespace: str, amount: float, seconds: float) -> None:
        """A tenant suspends one of its DagJobs for a while, or for good."""
        if name := self._chosen(namespace, amount):
            uid = self.network.server.stored(JOBS)[f"{namespace}/{name}"]["metadata"]["uid"]
            self._suspend(namespace, name, uid, is_suspended=True)
            if amount * 100 % 4 < 3:
                self.network.later(seconds, self._resume, namespace, name, uid)

    def _resume(self, namespace: str, name: str, uid: str) -> None:
        self._suspend(namespace, name, uid, is_suspended=False)

    def _suspend(self, namespace: str, name: str, uid: str, *, is_suspended: bool) -> None:
        found = self.network.server.stored(JOBS).get(f"{namespace}/{name}")
        if found is not None and found["metadata"]["uid"] == uid:
            patch = {"spec": {"suspend": is_suspended}}
            self.network.server.answer("PATCH", _job_path(namespace, name), {}, patch, namespace)

    # -- copies ------------------------------------------------------------------------------------

    def straggle(self, share: float, *, is_late: bool) -> None:
        """Somebody says of some pods that they are late, or not any more."""
        copies.straggle(self.network.server, self.rng, share, is_late=is_late)

    # -- pools -------------------------------------------------------------------------------------

    def limit_pool(self, amount: float, seconds: float) -> None:
        """All tenants together may hold so many pods, for a while; then the pool goes."""
        server, pods = self.network.server, int(amount * MOST_PODS)
        spec: Object = {"maxShare": {"amounts": {"pods": pods}}}
        if POOL_KEY in server.stored(POOLS_RESOURCE):
            server.answer("PATCH", f"{POOLS_PATH}/{POOL_KEY}", {}, {"spec": spec}, "admin")
        else:
            pool = {"apiVersion": API_VERSION, "kind": POOL, "metadata": {"name": POOL_KEY}, "spec": spec}
            server.answer("POST", POOLS_PATH, {}, pool, "admin")
        self.network.later(seconds, self.drop_pool)

    def drop_pool(self) -> None:
        """The pool goes, if there is one."""
        if POOL_KEY in self.network.server.stored(POOLS_RESOURCE):
            self.network.server.answer("DELETE", f"{POOLS_PATH}/{POOL_KEY}", {}, {}, "admin")

    def _chosen(self, namespace: str, amount: float) -> str:
        """The name of one of the tenant's DagJobs; empty if it has none."""
        found = [key for key in sorted(self.network.server.stored(JOBS)) if key.startswith(f"{namespace}/")]
        return found[int(amount * len(found))].partition("/")[2] if found else ""

    def _drawn_job(self, name: str) -> Object:
        names = [f"stage-{number}" for number in range(self.rng.randint(1, MOST_STAGES))]
        spec: Object = {"stages": [self._stage(at, names) for at in range(len(names))]}
        spec["suspend"] = self.rng.random() < 0.1
        if self.rng.random() < 0.1:
            spec["deadlineSeconds"] = self.rng.randint(20, 90)
        if self.has_copies and self.rng.random() < COPIES_SHARE:
            spec["speculative"] = True
            for stage in spec["stages"]:
                stage["template"]["metadata"]["annotations"][SLOW] = f"{copies.SLOW_SHARE}"
        if self.rng.random() < 0.2:
            spec["ttlSecondsAfterFinished"] = self.rng.randint(0, 20)
        return {"apiVersion": API_VERSION, "kind": DAG_JOB, "metadata": {"name": name}, "spec": spec}

    def _stage(self, at: int, names: list[str]) -> Object:
        rng = self.rng
        annotations = {SECONDS: f"{rng.uniform(0.5, MOST_SECONDS):.3f}"}
        annotations[FAILS] = f"{rng.choice([0.0, 0.0, 0.2, 0.4])}"
        annotations[REFUSED] = f"{rng.choice([0.0, 0.0, 0.0, 0.2])}"
        spec = {"containers": [_container(rng.choice([250, 500, 1000]))], "priority": rng.choice([0, 0, 10])}
        return {
            "name": names[at],
            "tasks": rng.randint(1, MOST_TASKS),
            "dependsOn": [each for each in names[:at] if rng.random() < 0.6],
            "retries": rng.randint(0, 3),
            "template": {"metadata": {"annotations": annotations}, "spec": spec},
        }


def _container(millicores: int) -> Object:
    return {"name": "main", "image": "work", "resources": {"requests": {"cpu": f"{millicores}m"}}}


def _job_path(namespace: str, name: str = "") -> str:
    return f"/apis/{API_VERSION}/namespaces/{namespace}/{DAG_JOBS}" + (f"/{name}" if name else "")
