"""What a profile makes of the specs of its pending pods: added node affinity, resources that do not count.

kube-scheduler has both as arguments of plugins (NodeAffinityArgs.addedAffinity, NodeResourcesFitArgs). They
hold while a pod is placed. On its node it counts with all that it requests.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from eclectus.framework import Profile, ProfileSettings
from eclectus.model.objects import Spec, Task


class ProfileRules:
    """Costs nothing for pods of profiles without such settings."""

    def __init__(self, profiles: Iterable[Profile]) -> None:
        self._settings = {each.scheduler_name: each.settings for each in profiles if _matter(each.settings)}

    def applied(self, task: Task) -> Task:
        """A pending pod as its profile wants it placed; `task` is the pod as it was seen."""
        settings = self._settings.get(task.profile)
        return task if settings is None else replace(task, spec=_applied(settings, task.spec))


def _matter(settings: ProfileSettings) -> bool:
    return bool(settings.added_affinity or settings.ignored_resources or settings.ignored_resource_groups)


def _applied(settings: ProfileSettings, spec: Spec) -> Spec:
    requests = tuple(each for each in spec.requests if not settings.ignores(each[0]))
    added = settings.added_affinity
    if added is None:
        return replace(spec, requests=requests)
    preferences = (*spec.preferences, *added.preferred)
    return replace(spec, requests=requests, preferences=preferences, enforced_affinity=added.required)
