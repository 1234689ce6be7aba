"""The specs of waiting pods, completed by what the cluster and the profile add to them, and kept up to date.

What a pod asks of nodes is not all in its manifest. Default topology spread comes from the Services and the
controller that select it; anti-affinity holds both ways, so terms of other pods count for it; what its claims
mean depends on volumes. Each source completes a spec, and names the pods for which its answer has changed.

A profile adds node affinity, and leaves out resources that do not count. kube-scheduler has both as arguments
of plugins (NodeAffinityArgs.addedAffinity, NodeResourcesFitArgs). They hold while a pod is placed. On its
node it counts with all that it requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from eclectus.cluster.nodes import Cluster
from eclectus.engine.pod_specs.anti_affinity_matches import anti_affinity_matches, preference_matches
from eclectus.engine.pod_specs.default_spread import DefaultSpreading
from eclectus.engine.pod_volumes import PodVolumes
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


class WaitingSpecs:
    """Completes the specs of pods that wait. `pending`: uid -> such a pod, as it was completed last."""

    def __init__(
        self,
        profiles: Iterable[Profile],
        cluster: Cluster,
        pending: Mapping[str, Task],
        volumes: PodVolumes,
    ) -> None:
        self._default_spread = DefaultSpreading(profiles, pending)
        self._matches = (
            anti_affinity_matches(cluster.anti_affinity, pending),
            preference_matches(cluster.preferences, pending),
        )
        self._volumes = volumes
        self._node_volumes = cluster.volumes

    def handlers(self) -> Mapping[type, Callable[[Any], None]]:
        """Type of event -> what updates a source that has events of its own."""
        return self._default_spread.handlers()

    def completed(self, task: Task) -> Task:
        """The pod with the spec that rules work with; it is followed from now on."""
        if task.labels or task.controller:  # otherwise nothing selects it
            task = self._default_spread.resolved(task)
        has_own = has_terms(task)
        for matches in self._matches:
            if has_own or matches.terms.generation:
                task = matches.with_terms(task)
        return self._volumes.resolved(task) if task.claims else task

    def discard(self, uid: str) -> None:
        """The pod waits no more: it is bound, has ended, or was deleted."""
        if uid in self._default_spread.pods:
            self._default_spread.discard(uid)
        for matches in self._matches:
            if uid in matches.pods:
                matches.discard(uid)
        if uid in self._volumes.waiting:
            self._volumes.discard(uid)

    def take_changed(self) -> Iterator[Task]:
        """The pods to be completed anew, each at once: what one source changes may concern the next."""
        if self._default_spread.has_news:
            yield from self._default_spread.take_changed()
        for matches in self._matches:
            if matches.generation != matches.terms.generation:
                yield from matches.changed()
        if self._node_volumes.storage.has_news or self._node_volumes.reach:
            yield from self._volumes.changed()

    @property
    def goes_on(self) -> bool:
        """Whether more specs are to be completed anew in the next step."""
        return self._default_spread.has_news


def has_terms(task: Task) -> bool:
    """Whether a pod has terms about other pods, required or preferred; nearly none has."""
    spec = task.spec
    required = task.anti_affinity_terms or spec.affinity_terms or spec.own_anti_affinity
    return bool(required or spec.preferred_terms)
