"""PodGroups as watched kinds, of both APIs. A cluster need not serve either, and most serve none."""

from __future__ import annotations

from msgspec import Raw

from eclectus.kube.gangs.objects import (
    COSCHEDULING,
    COSCHEDULING_VERSIONS,
    KUBERNETES,
    KUBERNETES_VERSIONS,
    POD_GROUPS,
)
from eclectus.kube.gangs.translate import POD_GROUP, coscheduling_gang_from, gang_from
from eclectus.live.watch.named import NamedKind
from eclectus.live.watch.watched import ObservedObject
from eclectus.model.events import Event, GangGone, GangSeen
from eclectus.model.gangs import GangKey

_PATHS = tuple(f"/apis/{KUBERNETES}/{version}/{POD_GROUPS}" for version in KUBERNETES_VERSIONS)


class _WatchedPodGroups(NamedKind):
    kind = POD_GROUP
    undefined = "pods that name such a PodGroup wait"
    is_expected = False
    api: str

    def gone(self, key: str) -> Event:
        """GangGone."""
        namespace, _, name = key.partition("/")
        return GangGone(GangKey(self.api, namespace, name))


class WatchedPodGroups(_WatchedPodGroups):
    """Kubernetes' PodGroups, in the newest version that the API server serves."""

    name, api = f"{POD_GROUPS}.{KUBERNETES}", KUBERNETES
    path, older_paths = _PATHS[0], _PATHS[1:]

    def observe(self, raw: Raw, now: float) -> ObservedObject:
        """GangSeen."""
        del now
        gang, version = gang_from(raw)
        return ObservedObject(self.key(raw)[0], version, GangSeen(gang))


class WatchedCoschedulingPodGroups(_WatchedPodGroups):
    """PodGroups of the coscheduling plug-in."""

    name, api = f"{POD_GROUPS}.{COSCHEDULING}", COSCHEDULING
    path = f"/apis/{COSCHEDULING}/{COSCHEDULING_VERSIONS[0]}/{POD_GROUPS}"

    def observe(self, raw: Raw, now: float) -> ObservedObject:
        """GangSeen."""
        del now
        gang, version = coscheduling_gang_from(raw)
        return ObservedObject(self.key(raw)[0], version, GangSeen(gang))
