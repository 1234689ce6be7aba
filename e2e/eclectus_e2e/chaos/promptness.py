"""The promise about time: without a fault a pod that has room is bound soon, whatever a tenant creates."""

from __future__ import annotations

from dataclasses import dataclass, field

from eclectus_e2e.chaos.api_server import ApiServer, Change, Object, has_ended
from eclectus_e2e.chaos.copies import is_copy
from eclectus_e2e.chaos.hostile import NAMESPACE
from eclectus_e2e.chaos.oracles import cpu_of, is_waiting

SOON_SECONDS = 20.0  # longer than any back-off, and than the room of evicted pods is held for another
RECOVERY_SECONDS = 45.0  # after a fault: clients wait for up to 30 s until they try again
START_SECONDS = 15.0


@dataclass(eq=False)
class Promptness:
    """Looks each second. A bind of another pod is progress, but not one of the hostile tenant's."""

    server: ApiServer
    faults_end: float = START_SECONDS - RECOVERY_SECONDS
    since: dict[int, float] = field(default_factory=dict)  # millicores -> since when a pod waits beside room

    def __post_init__(self) -> None:
        self.server.watchers.append(self._progress)

    def look(self, now: float) -> str:
        """Which pod has waited for too long beside room; empty if none has."""
        if now < self.faults_end + RECOVERY_SECONDS:
            self.since.clear()
            return ""
        pods = self.server.stored("pods").items()
        waiting = {cpu_of(pod): key for key, pod in pods if _is_first(key, pod) and is_waiting(pod)}
        most = self._most_free() if waiting else 0
        self.since = {cpu: self.since.get(cpu, now) for cpu in waiting if cpu <= most}
        late = [cpu for cpu, since in self.since.items() if now - since > SOON_SECONDS]
        return f"pod {waiting[late[0]]} has waited for {SOON_SECONDS:g} s beside room" if late else ""

    def _most_free(self) -> int:
        """The most millicores that are free on one node that takes another pod."""
        free: dict[str, tuple[int, int]] = {}
        for name, node in self.server.stored("nodes").items():
            if not node["spec"].get("unschedulable"):
                room = node["status"]["allocatable"]
                free[name] = int(room["cpu"]) * 1000, int(room["pods"])
        for pod in self.server.stored("pods").values():
            name = pod["spec"].get("nodeName")
            if name in free and not has_ended(pod):
                free[name] = free[name][0] - cpu_of(pod), free[name][1] - 1
        return max((cpu for cpu, pods in free.values() if pods > 0), default=0)

    def _progress(self, change: Change) -> None:
        """A pod of another tenant is bound."""
        if change.resource == "pods" and change.new is not None and change.old is not None:
            is_bound = change.new["spec"].get("nodeName") and not change.old["spec"].get("nodeName")
            if is_bound and _is_plain(change.key):
                self.since.clear()


def _is_first(key: str, pod: Object) -> bool:
    """Whether it is a pod of another tenant, and no copy, which may wait for a node that is not its own."""
    return _is_plain(key) and not is_copy(pod)


def _is_plain(key: str) -> bool:
    """Whether the pod of this key is another tenant's."""
    return not key.startswith(f"{NAMESPACE}/")
