"""What pods that wait ask of nodes beside what their manifests say: by their profile, and by the cluster."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from msgspec.structs import replace

from eclectus.cluster.nodes import Cluster
from eclectus.engine.pod_specs.anti_affinity_matches import anti_affinity_matches, preference_matches
from eclectus.engine.pod_specs.data_sets import DataSets
from eclectus.engine.pod_specs.default_spread import DefaultSpreading
from eclectus.engine.pod_specs.late_pods import LatePods
from eclectus.engine.pod_volumes import PodVolumes
from eclectus.framework import Profile
from eclectus.model.objects import Task


class ProfileRules:
    """What profiles add to the specs of their pods, node affinity, and leave out: some resources.

    kube-scheduler has both as arguments of plugins (NodeAffinityArgs.addedAffinity, NodeResourcesFitArgs).
    They hold while a pod is placed. On its node it counts with all that it requests.
    """

    def __init__(self, profiles: Iterable[Profile]) -> None:
        self._settings = {
            each.scheduler_name: each.settings
            for each in profiles
            if each.settings.added_affinity
            or each.settings.ignored_resources
            or each.settings.ignored_resource_groups
        }

    def applied(self, task: Task) -> Task:
        """A pending pod as its profile wants it placed; `task` is the pod as it was seen."""
        settings = self._settings.get(task.profile)
        if settings is None:
            return task
        spec, added = task.spec, settings.added_affinity
        spec = replace(spec, requests=tuple(each for each in spec.requests if not settings.ignores(each[0])))
        if added is not None:
            preferences = (*spec.preferences, *added.preferred)
            spec = replace(spec, preferences=preferences, enforced_affinity=added.required)
        return replace(task, spec=spec)


class WaitingSpecs:
    """The specs of pods that wait, completed by what the cluster adds to them, and kept up to date.

    What a pod asks of nodes is not all in its manifest. Default topology spread comes from the Services and
    the controller that select it; anti-affinity holds both ways, so terms of other pods count for it; what
    its claims mean depends on volumes, and where its data sets are on labels of nodes. Each source completes
    a pod, and names those for which its answer has changed. A source is asked only where it has an answer or
    news.

    `pending`: uid -> such a pod, as it was completed last.
    """

    def __init__(
        self,
        profiles: Iterable[Profile],
        cluster: Cluster,
        pending: Mapping[str, Task],
        volumes: PodVolumes,
        data_sets: DataSets,
    ) -> None:
        self.late = LatePods()
        self.default_spread = DefaultSpreading(profiles, pending, self.late.fuel)
        self._anti_affinity = anti_affinity_matches(cluster.anti_affinity, pending)
        self._preferences = preference_matches(cluster.preferences, pending)
        self._matches = (self._anti_affinity, self._preferences)
        self._data_sets = data_sets
        self._with_data_sets, self._moved = data_sets.pods, data_sets.changed
        self._volumes = volumes
        self._storage, self._reaches = cluster.volumes.storage, cluster.volumes.reach
        self._late_tasks, self._spent = self.late.tasks, self.late.fuel.spent

    def completed(self, task: Task) -> Task:
        """The pod with the spec that rules work with; it is followed from now on."""
        if task.labels or task.controller:  # otherwise nothing selects it
            task = self.default_spread.resolved(task)
        if task.inputs:
            task = self._data_sets.follow(task)
        has_own = task.has_terms
        if has_own:
            self.late.terms.set(task)
        for matches in self._matches:
            if has_own or matches.terms.generation:
                task = matches.with_terms(task)
                self.late.fuel.spend(task.namespace, matches.compared)
        return self._volumes.resolved(task) if task.claims else task

    def discard(self, uid: str) -> None:
        """The pod waits no more: it is bound, has ended, or was deleted."""
        if uid in self._late_tasks or uid in self.late.terms.pods:
            self.late.discard(uid)
        if uid in self.default_spread.pods:
            self.default_spread.discard(uid)
        if uid in self._anti_affinity.pods:
            self._anti_affinity.discard(uid)
        if uid in self._preferences.pods:
            self._preferences.discard(uid)
        if uid in self._volumes.waiting:
            self._volumes.discard(uid)
        if uid in self._with_data_sets:
            self._data_sets.discard(uid)

    @property
    def has_news(self) -> bool:
        """Whether a source may have another answer, or pods are late."""
        if self._late_tasks or self._spent or self._moved or self.default_spread.has_news or self._reaches:
            return True
        if self._storage.has_news or self._anti_affinity.generation != self._anti_affinity.terms.generation:
            return True
        return self._preferences.generation != self._preferences.terms.generation

    def take_changed(self) -> Iterator[Task]:
        """The pods with another answer of a source; no other is asked, so terms cost no look at Services."""
        if self.default_spread.has_news:
            yield from self.default_spread.take_changed()
        yield from self._matched_anew()
        if self._storage.has_news or self._reaches:
            yield from map(self._volumes.resolved, self._volumes.changed())
        if self._moved:
            yield from self._data_sets.take_changed()

    def _matched_anew(self) -> Collection[Task]:
        """The pods that other terms match now, each once: terms of both kinds may match it."""
        found: dict[str, Task] = {}
        for matches in self._matches:
            if matches.generation != matches.terms.generation:
                for task in matches.changed():
                    before = found.get(task.uid)
                    found[task.uid] = task if before is None else matches.matched(before)
        return found.values()
